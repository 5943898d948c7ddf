// The database file of an index: made, locked and brought up to date.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "base/result.h"
#include "ledger/jsonl/files.h"
#include "ledger/sqlite/database.h"

namespace reckon::ledger::sqlite {

class IndexFile {
 public:
  // Up to date with the lines. A damaged file is deleted and made anew, unless another process has
  // it open. Error: there is nothing to index, or no place for an index.
  [[nodiscard]] static Result<IndexFile> open(const std::filesystem::path& ledger_folder);

  [[nodiscard]] Database& database() { return *database_; }

 private:
  IndexFile(jsonl::File lock, std::unique_ptr<Database> database)
      : lock_(std::move(lock)), database_(std::move(database)) {}
  jsonl::File lock_;  // shared, so that nobody deletes the file under it
  std::unique_ptr<Database> database_;
};

}  // namespace reckon::ledger::sqlite
