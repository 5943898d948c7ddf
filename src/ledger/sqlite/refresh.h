// Brings an index up to date with the lines of its folder.
//
// What grew is read from where it ended, after the part that was read before is seen to be the same
// by its hash; anything else (a file rewritten or gone, a line in an older file of a writer) makes
// the index anew. A file whose size, times and inode are those of the last look, and whose times
// were then at least kSettled old, is not read.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "ledger/sqlite/database.h"

namespace reckon::ledger::sqlite {

inline constexpr int kIndexVersion = 3;

// In one transaction: other processes see the old index or the new one. The caller keeps others
// from appending meanwhile.
[[nodiscard]] Status refresh(Database& database, const std::filesystem::path& folder);

}  // namespace reckon::ledger::sqlite
