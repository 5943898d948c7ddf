// Queues for a terminal of 100 columns.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "experiment/beside.h"
#include "experiment/markdown.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kIndent = 2;
constexpr size_t kValueColumns = 36;  // two rounds of four digits in tok/s
constexpr size_t kEntryColumns = 15;  // an id

size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  }));
}

// Cut to, or filled up to, `columns`; the last cell of a line is not filled.
std::string cell(const std::string& text, size_t columns) {
  std::string cut = one_line(text);
  if (width(cut) > columns) {
    size_t kept = 0;
    size_t end = 0;
    while (end < cut.size() && kept < columns - 1) {
      ++end;
      while (end < cut.size() && (static_cast<unsigned char>(cut[end]) & 0xc0u) == 0x80u) ++end;
      ++kept;
    }
    cut = cut.substr(0, end) + "…";
  }
  return cut + std::string(columns - width(cut), ' ');
}

struct Column {
  std::string text;
  size_t columns;
};

std::string line(const std::vector<Column>& cells) {
  std::string text;
  for (const Column& column : cells) text += cell(column.text, column.columns) + "  ";
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

// Words of `text`, indented, on as many lines as they take.
std::string wrapped(const std::string& text) {
  std::string result;
  std::string current(kIndent, ' ');
  for (const std::string& word : split(one_line(text), ' ')) {
    if (word.empty()) continue;
    const bool fresh = current.size() == kIndent;
    if (!fresh && width(current) + 1 + width(word) > kColumns) {
      result += current + "\n";
      current.assign(kIndent, ' ');
    }
    if (current.size() > kIndent) current += ' ';
    current += word;
    while (width(current) > kColumns) {  // a word longer than a line
      std::string head = cell(current, kColumns + 1);
      head.erase(head.size() - std::string_view("…").size());
      result += head + "\n";
      current = std::string(kIndent, ' ') + current.substr(head.size());
    }
  }
  return result + current + "\n";
}

std::string verdict_cell(const Outcome& outcome) {
  if (const auto verdict = outcome.verdict()) return std::string(ledger::verdict_name(*verdict));
  return std::string(outcome_kind_name(outcome.kind));
}

std::string outcome_lines(const Outcome& outcome) {
  std::string effect;
  std::string values;
  std::string beside;
  if (outcome.record && outcome.record->verdict && outcome.record->verdict->numbers) {
    const ledger::Numbers& numbers = *outcome.record->verdict->numbers;
    if (numbers.effect) effect = signed_share_text(*numbers.effect);
    beside = beside_text(numbers, outcome.holm_p);
    values = arms_text_within(numbers.base_values, numbers.arm_values, numbers.unit, kValueColumns);
  } else if (outcome.floor && outcome.floor->shows_band()) {
    values = "noise band " + log_band_text(outcome.floor->band->noise_band);
  }
  return line({{outcome.id, 20},
               {verdict_cell(outcome), 13},
               {effect, 8},
               {values, kValueColumns},
               {outcome.entry, kEntryColumns}}) +
         wrapped(outcome.text) + (beside.empty() ? "" : wrapped(beside)) +
         (outcome.design.empty() ? "" : wrapped("- " + outcome.design));
}

std::string would(const CheckedExperiment& checked) {
  switch (checked.kind) {
    case CheckedExperiment::Kind::kWouldRun:
      return "run";
    case CheckedExperiment::Kind::kWouldRefuse:
      return "refuse";
    case CheckedExperiment::Kind::kWouldBeVoid:
      return "VOID";
    case CheckedExperiment::Kind::kWouldNotFit:
      return "OUT-OF-MEMORY";
    case CheckedExperiment::Kind::kFailed:
      return "failed";
  }
  RECKON_CHECK(false);
}

std::string check_lines(const CheckedExperiment& checked) {
  std::string design;
  if (checked.rounds > 0) design = fmt::format("{} x {}", checked.rounds, checked.pairs);
  std::string memory;
  if (checked.base_bytes > 0) {
    memory = fmt::format("{} -> {}", format_bytes_short(checked.base_bytes),
                         format_bytes_short(checked.arm_bytes));
  }
  std::string text = line({{checked.id, 24},
                           {would(checked), 13},
                           {design, 10},
                           {checked.seconds ? duration_text(*checked.seconds) : std::string(), 8},
                           {memory, 30}}) +
                     wrapped(checked.text);
  for (const std::string& note : checked.notes) text += wrapped("- " + note);
  return text;
}

}  // namespace

std::string text_table(const QueueOutcome& outcome) {
  std::string text = line({{"experiment", 20},
                           {"verdict", 13},
                           {"effect", 8},
                           {"base -> arm, round by round", kValueColumns},
                           {"entry", kEntryColumns}});
  text += std::string(kColumns, '-') + "\n";
  for (const Outcome& experiment : outcome.experiments) text += outcome_lines(experiment);
  return text;
}

std::string text_table(const QueueCheck& check) {
  std::string text = line({{"experiment", 24},
                           {"would", 13},
                           {"rounds", 10},
                           {"time", 8},
                           {"planned memory, base -> arm", 30}});
  text += std::string(kColumns, '-') + "\n";
  for (const CheckedExperiment& checked : check.experiments) text += check_lines(checked);
  return text;
}

}  // namespace reckon::experiment
