// The store of JSON lines in a folder (files.h says which files).
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "ledger/store.h"

namespace reckon::ledger {

// Creates nothing; the first append does. Usage error: the path is there and is not a folder.
[[nodiscard]] Result<std::unique_ptr<Store>> open_jsonl_store(std::string_view folder);

}  // namespace reckon::ledger
