// The table of stores, and opening one by its location.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ledger/store.h"

namespace reckon::ledger {

struct StoreKind {
  std::string_view name;
  bool (*accepts)(std::string_view location);
  Result<std::unique_ptr<Store>> (*open)(std::string_view location);
};

[[nodiscard]] std::span<const StoreKind> store_kinds();

// A folder (created by the first append) or a PostgreSQL database. Usage errors: an empty location,
// a URL whose kind this version does not have, a path that is a file.
[[nodiscard]] Result<std::unique_ptr<Store>> open_store(std::string_view location);

// The location as it may be shown, written down and typed again: a URL without its password.
[[nodiscard]] std::string shareable_location(std::string_view location);

}  // namespace reckon::ledger
