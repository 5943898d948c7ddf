#include "ledger/open.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "ledger/jsonl/jsonl_store.h"
#include "ledger/postgres/postgres_store.h"

namespace reckon::ledger {
namespace {

constexpr std::string_view kSchemeMark = "://";

bool is_folder_location(std::string_view location) {
  return !location.empty() && location.find(kSchemeMark) == std::string_view::npos;
}

constexpr std::array<StoreKind, 2> kStoreKinds{{
    {"jsonl", is_folder_location, open_jsonl_store},
    {"postgres", is_postgres_url, open_postgres_store},
}};

}  // namespace

std::span<const StoreKind> store_kinds() {
  return kStoreKinds;
}

std::string shareable_location(std::string_view location) {
  return is_postgres_url(location) ? without_password(location) : std::string(location);
}

Result<std::unique_ptr<Store>> open_store(std::string_view location) {
  for (const StoreKind& kind : kStoreKinds) {
    if (kind.accepts(location)) return kind.open(location);
  }
  if (location.empty()) return usage_error("the ledger location is empty: expected a folder");
  const std::string_view scheme = location.substr(0, location.find(kSchemeMark));
  // The rest of the URL may hold a password.
  return usage_error(fmt::format(
      "{}://... is no ledger that this version knows: give --ledger a folder or postgres://...",
      scheme));
}

}  // namespace reckon::ledger
