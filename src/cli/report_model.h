// What the report's pages say, before any markup: which group an entry counts in, its verdict in
// one sentence, what a reader must be told first, and what is plotted. The rules of honesty are
// here: a VOID shows no number and a BROKE no ratio, reported figures never count as measured, an
// overturned result counts for nothing. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report_plot.h"
#include "ledger/fold.h"

namespace reckon::cli {

// Where an entry is counted; every entry is in exactly one.
enum class Group {
  kWon,
  kLost,
  kNeutral,
  kInconclusive,
  kVoid,
  kBroke,
  kOutOfMemory,
  kFloor,       // identical arms: no verdict
  kTuning,      // sweeps: no verdict either
  kOpen,        // no verdict yet
  kOverturned,  // measured here and wrong
  kReported,    // imported, whatever its verdict
};
inline constexpr int kGroups = 12;

[[nodiscard]] Group group_of(const ledger::Entry& entry);
[[nodiscard]] std::string group_title(Group group);  // "WON", "aa", "reported"
[[nodiscard]] std::string group_slug(Group group);   // for file names and style: "won"

// What the ledger does not hold of a metric.
struct Metric {
  std::string unit;
  bool higher_is_better = true;
};
using Metrics = std::map<std::string, Metric>;

// The verdict's own word, "aa", "tune", or "open".
[[nodiscard]] std::string verdict_word(const ledger::Entry& entry);
// "prefill.tile_order row -> band8"; "identical arms".
[[nodiscard]] std::string arms_of(const ledger::Entry& entry);
// The idea, or what is known instead.
[[nodiscard]] std::string title_of(const ledger::Entry& entry);
[[nodiscard]] std::string model_of(const ledger::Entry& entry);   // without its folder
[[nodiscard]] std::string device_of(const ledger::Entry& entry);  // its name and what it is
// Of each series that an import of another tool's file kept, "sort/8: median 12.50 ms of 9
// samples", and what their medians say.
[[nodiscard]] std::vector<std::string> reported_series(const ledger::Entry& entry);
// What a sweep kept: the lines of its table, and the rules that were made of it.
[[nodiscard]] std::vector<std::string> tuned_table(const ledger::Entry& entry);
[[nodiscard]] std::vector<std::string> tuned_rules(const ledger::Entry& entry);
[[nodiscard]] std::string day_of(std::string_view time);

// May a reader compare the arms of this entry? Not where a verdict says that the numbers are none.
[[nodiscard]] bool shows_numbers(const ledger::Entry& entry);
// "+3.1%"; "" where there is none to show.
[[nodiscard]] std::string effect_of(const ledger::Entry& entry);

// "LOST: -3.9% …", never with numbers that are no result.
[[nodiscard]] std::string sentence_of(const ledger::Entry& entry);

// What an arm that may diverge costs in quality; "" for arms that promised identical tokens and for
// entries without a number. Says so where nothing was measured.
[[nodiscard]] std::string quality_of(const ledger::Entry& entry);

// What must be read before the number: not measured here, overturned, unfinished, side effects.
struct Notice {
  std::string title;
  std::string text;
  std::string entry;  // that it points at; "": none
};
[[nodiscard]] std::vector<Notice> notices_of(const ledger::Entry& entry);

// Is there something that a person still owes? Not of reported or overturned entries.
[[nodiscard]] bool is_unfinished(const ledger::Entry& entry);

// Short words beside the verdict in lists: "reported", "unfinished", "superseded".
[[nodiscard]] std::vector<std::string> marks_of(const ledger::Entry& entry);

// Unset where there is nothing that may be shown.
[[nodiscard]] std::optional<Plot> plot_of(const ledger::Entry& entry, const Metrics& metrics);

[[nodiscard]] std::string unit_of(const ledger::Entry& entry, const Metrics& metrics);

}  // namespace reckon::cli
