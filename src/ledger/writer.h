// Who appends: the name that an event and its file carry.
#pragma once

#include <string>
#include <string_view>

namespace reckon::ledger {

// Lower case, [a-z0-9-]; every other run of characters becomes one '-'; none at either end; at
// most 64 characters. May be empty.
[[nodiscard]] std::string sanitize_writer(std::string_view name);

// Not empty and unchanged by sanitize_writer.
[[nodiscard]] bool is_writer_name(std::string_view name);

// $RECKON_WRITER, else user@host; sanitized; "writer" where nothing usable is known. Never empty.
[[nodiscard]] std::string default_writer();

}  // namespace reckon::ledger
