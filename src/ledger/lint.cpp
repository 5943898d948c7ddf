#include "ledger/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace reckon::ledger {
namespace {

using Entries = std::vector<const Entry*>;

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc() && end == text.data() + text.size();
  return all ? std::optional(value) : std::nullopt;
}

// A field of the scope by its dotted name, as text; unset where there is no such field.
std::optional<std::string> field_of(const Scope& scope, const std::string& name) {
  constexpr std::string_view kDevice = "device.";
  const nlohmann::json json = scope_to_json(scope);
  const bool of_device = name.starts_with(kDevice);
  const nlohmann::json& object = of_device ? json["device"] : json;
  const auto found = object.find(of_device ? name.substr(kDevice.size()) : name);
  if (found == object.end() || found->is_structured()) return std::nullopt;
  return found->is_string() ? found->get<std::string>() : found->dump();
}

class CitationLint {
 public:
  CitationLint(const Ledger& ledger, const Citation& citation, LintReport& report)
      : ledger_(ledger), citation_(citation), report_(report) {}

  void run() {
    if (citation_.unmeasured) ++report_.unmeasured;
    if (citation_.entries.empty()) {
      if (!citation_.unmeasured) error("cites no entry: expected ledger: rk-… or unmeasured");
      return;
    }
    Entries entries;
    for (const std::string& cited : citation_.entries) {
      ++report_.citations;
      if (const Entry* entry = resolve(cited)) entries.push_back(entry);
    }
    if (entries.size() != citation_.entries.size()) return;  // said already
    for (const Condition& condition : citation_.conditions) check(condition, entries);
    if (!citation_.switch_key.empty()) check_switch(entries);
  }

 private:
  void error(const std::string& what) {
    report_.errors.push_back(
        fmt::format("{}:{}: {} {}", citation_.path, citation_.line, citation_.what, what));
  }
  void note(const std::string& what) {
    report_.notes.push_back(
        fmt::format("{}:{}: {} {}", citation_.path, citation_.line, citation_.what, what));
  }

  const Entry* resolve(const std::string& cited) {
    const Result<const Entry*> found = ledger_.resolve(cited);
    if (!found.ok()) {
      error(fmt::format("cites {}: {}", cited, found.error().message));
      return nullptr;
    }
    const Entry& entry = **found;
    if (entry.status == EntryStatus::kOverturned) {
      error(fmt::format("cites {}, which was overturned: {}", entry.id, entry.status_reason));
      return nullptr;
    }
    // A sweep is what rules are made from; no setting is earned by one.
    const bool of_rules = entry.idea.kind == EntryKind::kTuning && citation_.switch_key.empty();
    if (!entry.verdict && !of_rules) {
      error(fmt::format("cites {}, which has no verdict", entry.id));
      return nullptr;
    }
    if (entry.status != EntryStatus::kOpen) {
      note(fmt::format("cites {}, which is {}{}{}", entry.id, entry_status_name(entry.status),
                       entry.superseded_by.empty() ? "" : " by ", entry.superseded_by));
    }
    if (entry.imported) {
      note(fmt::format("cites {}, which was reported, not measured here", entry.id));
    }
    return &entry;
  }

  void check(const Condition& condition, const Entries& entries) {
    std::vector<std::string> measured;
    for (const Entry* entry : entries) {
      const auto value = field_of(entry->idea.scope, condition.field);
      if (!value)
        return error(fmt::format("has when.{}, and scopes have no such field", condition.field));
      measured.push_back(*value);
    }
    if (condition.range) {
      check_range(condition, measured);
      return;
    }
    for (const std::string& value : condition.values) {
      if (std::find(measured.begin(), measured.end(), value) == measured.end()) {
        error(fmt::format("applies to {} {}, and was measured at {} ({})", condition.field, value,
                          join(measured, ", "), join(citation_.entries, ", ")));
      }
    }
  }

  void check_range(const Condition& condition, const std::vector<std::string>& measured) {
    const auto low = whole_number(condition.values[0]);
    const auto high = whole_number(condition.values[1]);
    std::vector<int64_t> values;
    for (const std::string& text : measured) {
      if (const auto value = whole_number(text)) values.push_back(*value);
    }
    if (!low || !high || *low > *high || values.empty()) {
      return error(fmt::format("has when.{} {}..{}: expected a range of whole numbers",
                               condition.field, condition.values[0], condition.values[1]));
    }
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (*low < *least || *high > *most) {
      error(fmt::format("applies to {} {}..{}, and was measured at {} ({})", condition.field, *low,
                        *high, join(measured, ", "), join(citation_.entries, ", ")));
    }
  }

  void check_switch(const Entries& entries) {
    for (const Entry* entry : entries) {
      const Scope& scope = entry->idea.scope;
      if (scope.switch_key != citation_.switch_key) {
        error(fmt::format("cites {}, which is about {}", entry->id, scope.switch_key));
        continue;
      }
      const Verdict verdict = entry->verdict->verdict;
      const std::string& earned = verdict == Verdict::kWon ? scope.arm_value : scope.base_value;
      if (citation_.switch_value != earned) {
        error(fmt::format("cites {}, which is {}: {} {} -> {}", entry->id, verdict_name(verdict),
                          scope.switch_key, scope.base_value, scope.arm_value));
      }
    }
  }

  const Ledger& ledger_;
  const Citation& citation_;
  LintReport& report_;
};

bool was_measured(Verdict verdict) {
  return verdict == Verdict::kWon || verdict == Verdict::kLost || verdict == Verdict::kNeutral ||
         verdict == Verdict::kInconclusive;
}

// A program as an arm (docs/queues.md) is a black box: it has no model file and no tokens to
// compare.
bool is_of_program(const Scope& scope) {
  return scope.backend == "command";
}

bool has_samples(const MeasuredBody& measured) {
  return std::any_of(measured.round.pairs.begin(), measured.round.pairs.end(),
                     [](const PairSample& pair) { return !pair.warmup; });
}

class Missing {
 public:
  void unless(bool present, const char* what) {
    if (!present) missing_.emplace_back(what);
  }
  std::vector<std::string> take() { return std::move(missing_); }

 private:
  std::vector<std::string> missing_;
};

}  // namespace

void lint_citations(const Ledger& ledger, std::span<const Citation> citations, LintReport& report) {
  for (const Citation& citation : citations) CitationLint(ledger, citation, report).run();
}

std::vector<std::string> missing_of(const Entry& entry) {
  Missing missing;
  if (!entry.verdict || entry.imported) return missing.take();
  const VerdictBody& verdict = *entry.verdict;
  const Scope& scope = entry.idea.scope;
  const Reproduction& reproduce = entry.idea.reproduce;
  missing.unless(!reproduce.command.empty(), "no command");
  missing.unless(!reproduce.queue_text.empty(), "no queue");
  missing.unless(!reproduce.commit.empty(), "no commit");
  missing.unless(!scope.model_hash.empty() || is_of_program(scope), "no model hash");
  missing.unless(!scope.device.isa.empty(), "no device");
  missing.unless(!scope.metric.empty(), "no metric");
  if (verdict.verdict == Verdict::kOutOfMemory) {
    missing.unless(verdict.memory_plan.has_value(), "no memory plan");
  }
  if (verdict.verdict == Verdict::kVoid) missing.unless(verdict.proof.has_value(), "no proof");
  if (!was_measured(verdict.verdict)) return missing.take();
  const auto rounds =
      std::count_if(entry.rounds.begin(), entry.rounds.end(),
                    [&](const MeasuredBody& measured) { return entry.rests_on(measured.round); });
  missing.unless(rounds >= 2, "fewer than two rounds");
  missing.unless(std::all_of(entry.rounds.begin(), entry.rounds.end(), has_samples), "no samples");
  missing.unless(verdict.numbers && verdict.numbers->effect, "no number");
  if (verdict.verdict != Verdict::kInconclusive) {
    missing.unless(verdict.numbers && verdict.numbers->interval, "no interval");
    missing.unless(verdict.numbers && verdict.numbers->noise_band, "no noise band");
  }
  missing.unless(verdict.proof && !verdict.proof->base_fingerprint.empty() &&
                     !verdict.proof->arm_fingerprint.empty(),
                 "no fingerprints");
  missing.unless(verdict.tokens || is_of_program(scope), "no comparison of tokens");
  missing.unless(verdict.peaks.has_value(), "no peak memory");
  return missing.take();
}

void lint_verdicts(const Ledger& ledger, LintReport& report) {
  for (const Entry& entry : ledger.entries) {
    if (!entry.verdict || entry.imported) continue;
    ++report.verdicts;
    const std::vector<std::string> missing = missing_of(entry);
    if (!missing.empty()) {
      report.errors.push_back(fmt::format(
          "{}: {} has {}", entry.id, verdict_name(entry.verdict->verdict), join(missing, ", ")));
    }
  }
}

}  // namespace reckon::ledger
