#include "cli/ledger_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "cli/ledger_text.h"

namespace reckon::cli {
namespace {

using ledger::Summary;
using ledger::Verdict;

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return part.empty() || upper(text).find(upper(part)) != std::string::npos;
}

std::vector<std::string> verdict_words() {
  std::vector<std::string> words;
  for (const Verdict verdict :
       {Verdict::kWon, Verdict::kLost, Verdict::kNeutral, Verdict::kInconclusive, Verdict::kVoid,
        Verdict::kBroke, Verdict::kOutOfMemory}) {
    words.emplace_back(verdict_name(verdict));
  }
  words.insert(words.end(), {"aa", "tune", "open"});
  return words;
}

bool matches(const Summary& entry, const LedgerFilter& filter) {
  if (!filter.switch_key.empty() && entry.switch_key != filter.switch_key) return false;
  if (!filter.verdict.empty() && upper(verdict_text(entry)) != upper(filter.verdict)) return false;
  return (contains(entry.model_name, filter.model) || contains(entry.model_family, filter.model)) &&
         (contains(entry.device_name, filter.device) ||
          contains(entry.device_vendor, filter.device) ||
          contains(entry.device_isa, filter.device));
}

}  // namespace

Status check_filter(const LedgerFilter& filter, std::span<const std::string> switches) {
  if (!filter.switch_key.empty() &&
      std::find(switches.begin(), switches.end(), filter.switch_key) == switches.end()) {
    const std::string near = nearest(filter.switch_key, switches);
    return usage_error(fmt::format("no switch is called '{}'; {}", filter.switch_key,
                                   near.empty()
                                       ? "docs/switches.md and 'reckon ledger list' have them all"
                                       : fmt::format("did you mean '{}'?", near)));
  }
  if (filter.verdict.empty()) return {};
  const std::vector<std::string> words = verdict_words();
  const bool known = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return upper(word) == upper(filter.verdict);
  });
  if (known) return {};
  const std::string near = nearest(upper(filter.verdict), words);
  return usage_error(fmt::format("no verdict is called '{}'{}; verdicts are {}", filter.verdict,
                                 near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                                 join(words, ", ")));
}

std::vector<Summary> matching(std::vector<Summary> entries, const LedgerFilter& filter) {
  std::erase_if(entries, [&](const Summary& entry) { return !matches(entry, filter); });
  return entries;
}

}  // namespace reckon::cli
