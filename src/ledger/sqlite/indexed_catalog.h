// A catalog that finds by the index of a folder of JSON lines (refresh.h).
//
// The index is `.reckon-index/index.sqlite` in the ledger's folder. That folder has a .gitignore of
// its own, and may be deleted at any time.
#pragma once

#include <memory>

#include "base/result.h"
#include "ledger/catalog.h"

namespace reckon::ledger::sqlite {

inline constexpr const char* kIndexFolder = ".reckon-index";

// Makes the index or brings it up to date. An error says why there can be none (a folder that does
// not exist or cannot be written to, a filesystem without locks): then read the lines. An index
// that is damaged is made anew.
[[nodiscard]] Result<std::unique_ptr<Catalog>> open_indexed_catalog(const Store& store);

}  // namespace reckon::ledger::sqlite
