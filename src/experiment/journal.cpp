#include "experiment/journal.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text.h"
#include "experiment/durable_file.h"
#include "experiment/journal_line.h"

namespace reckon::experiment {

Result<std::string> journal_folder(const ledger::Store& store) {
  TRY_ASSIGN(std::filesystem::path folder, store.local_folder());
  folder /= "journal";
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return failed(fmt::format("{}: {}", folder.string(), failure.message()));
  const std::string ignore = (folder / ".gitignore").string();
  if (!std::filesystem::exists(ignore, failure)) TRY(replace_file(ignore, "*\n"));
  return folder.string();
}

Result<std::unique_ptr<Journal>> Journal::open(const std::string& folder, const std::string& key,
                                               const std::string& what) {
  const std::string stem = (std::filesystem::path(folder) / key).string();
  std::unique_ptr<Journal> journal(new Journal(stem + ".jsonl"));
  TRY_ASSIGN(journal->lock_, FileLock::acquire(stem + ".lock", what + " is being measured"));
  TRY(journal->load());
  return journal;
}

Status Journal::load() {
  TRY_ASSIGN(const std::string text, read_if_present(path_));
  if (text.empty()) return {};
  const bool torn = text.back() != '\n';
  std::vector<std::string> lines = split(text, '\n');
  if (!torn) lines.pop_back();
  bool damaged = torn;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Status taken = take_line(lines[i]);
    if (taken.ok()) continue;
    damaged = true;
    warnings_.push_back(fmt::format("{}:{}: set aside: {}", path_, i + 1, taken.error().message));
    TRY(append_line(std::filesystem::path(path_).replace_extension(".set-aside").string(),
                    lines[i]));
  }
  return damaged ? rewrite() : Status();
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
  if (pair.warmup || counted_.insert({pair.round.id, pair.index}).second) {
    pairs_.push_back(std::move(pair));
  }
}

Status Journal::append(const JournalPair& pair) {
  TRY(append_line(path_, journal_line(pair)));
  take_pair(pair);
  return {};
}

Status Journal::commit(std::span<const ledger::Event> events) {
  TRY_ASSIGN(const std::string line, journal_line(events));
  TRY(append_line(path_, line));
  committed_.assign(events.begin(), events.end());
  return {};
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
  return replace_file(path_, text);
}

Status Journal::clear() {
  pairs_.clear();
  counted_.clear();
  committed_.clear();
  return remove_file(path_);
}

}  // namespace reckon::experiment
