#include "ledger/sqlite/index_file.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "ledger/sqlite/indexed_catalog.h"
#include "ledger/sqlite/refresh.h"

namespace reckon::ledger::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "index.sqlite";

Status make_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / ".gitignore", error)) return {};
  fs::create_directory(folder, error);
  if (error) return failed(folder.string() + ": " + error.message());
  return jsonl::write_new_file(folder / ".gitignore", "*\n");
}

Result<std::unique_ptr<Database>> open_current(const fs::path& ledger, const fs::path& file) {
  TRY_ASSIGN(Database opened, Database::open(file));
  auto database = std::make_unique<Database>(std::move(opened));
  TRY(refresh(*database, ledger));
  return database;
}

}  // namespace

Result<IndexFile> IndexFile::open(const fs::path& ledger) {
  // Held while the files are looked at, so that no append is seen half.
  const jsonl::File no_appends = jsonl::lock_for_read(ledger);
  TRY_ASSIGN(const std::vector<std::string> names, jsonl::list_files(ledger));
  if (std::none_of(names.begin(), names.end(), jsonl::is_ledger_file_name)) {
    return failed(ledger.string() + ": nothing to index");
  }
  const fs::path folder = ledger / kIndexFolder;
  TRY(make_folder(folder));
  TRY_ASSIGN(jsonl::File lock, jsonl::lock_file(folder / "lock", jsonl::LockKind::kShared));
  auto database = open_current(ledger, folder / kFileName);
  if (!database.ok()) {
    if (!jsonl::relock(lock, jsonl::LockKind::kExclusiveNow).ok()) return database.error();
    std::error_code ignored;
    fs::remove(folder / kFileName, ignored);
    fs::remove(folder / (std::string(kFileName) + "-journal"), ignored);
    database = open_current(ledger, folder / kFileName);
    TRY(jsonl::relock(lock, jsonl::LockKind::kShared));
  }
  TRY_ASSIGN(std::unique_ptr<Database> good, std::move(database));
  return IndexFile(std::move(lock), std::move(good));
}

}  // namespace reckon::ledger::sqlite
