#include "experiment/journal.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "base/text.h"
#include "experiment/journal_line.h"

namespace reckon::experiment {
namespace {

Error io_error(const std::string& path) {
  return failed(fmt::format("{}: {}", path, std::strerror(errno)));
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return io_error(path);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

Status sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || ::fsync(fd.get()) != 0) return io_error(folder);
  return {};
}

// Writes and syncs a whole file (flags: how it is opened besides for writing).
Status write_file(const std::string& path, int flags, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644));
  if (!fd.open()) return io_error(path);
  TRY(write_all(fd.get(), bytes, path));
  if (::fsync(fd.get()) != 0) return io_error(path);
  return {};
}

}  // namespace

Result<std::string> journal_folder(const std::string& ledger_location) {
  const std::filesystem::path folder = std::filesystem::path(ledger_location) / "journal";
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return failed(fmt::format("{}: {}", folder.string(), failure.message()));
  const std::string ignore = (folder / ".gitignore").string();
  if (!std::filesystem::exists(ignore, failure)) TRY(write_file(ignore, O_TRUNC, "*\n"));
  return folder.string();
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& folder, const std::string& key,
                                               const std::string& what) {
  const std::string stem = (std::filesystem::path(folder) / key).string();
  std::unique_ptr<Journal> journal(new Journal(folder, stem + ".jsonl"));
  TRY_ASSIGN(journal->lock_, FileLock::acquire(stem + ".lock", what + " is being measured"));
  TRY(journal->load());
  return journal;
}

Status Journal::load() {
  std::error_code failure;
  if (!std::filesystem::exists(path_, failure)) return {};
  std::ifstream file(path_, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return io_error(path_);
  if (text.empty()) return {};
  const bool torn = text.back() != '\n';
  std::vector<std::string> lines = split(text, '\n');
  if (!torn) lines.pop_back();
  std::string bad_lines;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Status taken = take_line(lines[i]);
    if (taken.ok()) continue;
    warnings_.push_back(fmt::format("{}:{}: set aside: {}", path_, i + 1, taken.error().message));
    bad_lines += lines[i] + '\n';
  }
  if (bad_lines.empty() && !torn) return {};
  if (!bad_lines.empty()) {
    const std::string aside = std::filesystem::path(path_).replace_extension(".set-aside").string();
    TRY(write_file(aside, O_APPEND, bad_lines));
  }
  return rewrite();
}

Status Journal::take_line(const std::string& line) {
  TRY_ASSIGN(JournalLine parsed, parse_journal_line(line));
  if (parsed.pair) {
    take_pair(std::move(*parsed.pair));
  } else {
    committed_ = std::move(parsed.events);
  }
  return {};
}

void Journal::take_pair(JournalPair pair) {
  const bool known =
      !pair.warmup && std::any_of(pairs_.begin(), pairs_.end(), [&](const JournalPair& other) {
        return !other.warmup && other.round.id == pair.round.id && other.index == pair.index;
      });
  if (!known) pairs_.push_back(std::move(pair));
}

Status Journal::append(const JournalPair& pair) {
  TRY(append_line(journal_line(pair)));
  take_pair(pair);
  return {};
}

Status Journal::commit(std::span<const ledger::Event> events) {
  TRY_ASSIGN(const std::string line, journal_line(events));
  TRY(append_line(line));
  committed_.assign(events.begin(), events.end());
  return {};
}

Status Journal::append_line(const std::string& line) {
  const bool created = !file_.open();
  if (created) {
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!file_.open()) return io_error(path_);
  }
  TRY(write_all(file_.get(), line + '\n', path_));
  if (::fsync(file_.get()) != 0) return io_error(path_);
  return created ? sync_folder(folder_) : Status();
}

Status Journal::drop_rounds(const std::set<std::string>& ids) {
  const size_t dropped =
      std::erase_if(pairs_, [&](const JournalPair& pair) { return ids.contains(pair.round.id); });
  return dropped > 0 ? rewrite() : Status();
}

Status Journal::rewrite() {
  std::string text;
  for (const JournalPair& pair : pairs_) text += journal_line(pair) + '\n';
  if (!committed_.empty()) {
    TRY_ASSIGN(const std::string line, journal_line(committed_));
    text += line + '\n';
  }
  file_.reset();
  const std::string draft = path_ + ".new";
  TRY(write_file(draft, O_TRUNC, text));
  if (::rename(draft.c_str(), path_.c_str()) != 0) return io_error(path_);
  return sync_folder(folder_);
}

Status Journal::clear() {
  file_.reset();
  pairs_.clear();
  committed_.clear();
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return io_error(path_);
  return sync_folder(folder_);
}

}  // namespace reckon::experiment
