#include "cli/report_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "experiment/samples.h"
#include "experiment/stored_noise.h"
#include "experiment/verdict_text.h"
#include "experiment/words.h"

namespace reckon::cli {
namespace {

using ledger::Entry;
using ledger::EntryStatus;
using ledger::MeasuredBody;
using ledger::Numbers;
using ledger::Verdict;

Group verdict_group(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWon:
      return Group::kWon;
    case Verdict::kLost:
      return Group::kLost;
    case Verdict::kNeutral:
      return Group::kNeutral;
    case Verdict::kInconclusive:
      return Group::kInconclusive;
    case Verdict::kVoid:
      return Group::kVoid;
    case Verdict::kBroke:
      return Group::kBroke;
    case Verdict::kOutOfMemory:
      return Group::kOutOfMemory;
  }
  RECKON_CHECK(false);
}

const Numbers* numbers_of(const Entry& entry) {
  return entry.verdict && entry.verdict->numbers ? &*entry.verdict->numbers : nullptr;
}

std::string verdict_sentence(const Entry& entry) {
  if (shows_numbers(entry)) return experiment::verdict_sentence(entry);
  Entry without;
  without.verdict = entry.verdict;
  without.verdict->numbers.reset();
  return experiment::verdict_sentence(without);
}

// Where neither the verdict nor the caller knows the metric, the stored median has the sign.
bool higher_is_better(const Entry& entry, const Metrics& metrics) {
  if (const Numbers* numbers = numbers_of(entry)) return numbers->higher_is_better;
  const auto known = metrics.find(entry.idea.scope.metric);
  if (known != metrics.end()) return known->second.higher_is_better;
  for (const MeasuredBody& measured : entry.rounds) {
    const ledger::Round& round = measured.round;
    if (round.median_log == 0 || round.arm_value == round.base_value) continue;
    return (round.arm_value > round.base_value) == (round.median_log > 0);
  }
  return true;
}

std::optional<PlotRound> measured_round(const ledger::Round& round, measure::Better better) {
  const auto median = experiment::median_of(round, better);
  if (!median.ok()) return std::nullopt;
  PlotRound plotted;
  plotted.log = *median;
  for (const ledger::PairSample& pair : round.pairs) {
    if (pair.warmup) continue;
    const auto effect = measure::log_ratio(pair.base, pair.arm, better);
    if (effect.ok()) plotted.pairs.push_back({*effect, pair.arm_first});
  }
  return plotted;
}

// Of rounds that are known by their values alone.
std::vector<PlotRound> stated_rounds(const Numbers& numbers, measure::Better better) {
  std::vector<PlotRound> rounds;
  if (numbers.base_values.size() != numbers.arm_values.size()) return rounds;
  for (size_t i = 0; i < numbers.base_values.size(); ++i) {
    const auto effect = measure::log_ratio(numbers.base_values[i], numbers.arm_values[i], better);
    if (!effect.ok()) return {};
    rounds.push_back({{}, *effect, true});
  }
  return rounds;
}

std::optional<double> log_of_share(std::optional<double> share) {
  if (!share || !(*share > -1) || !std::isfinite(*share)) return std::nullopt;
  return std::log1p(*share);
}

std::optional<Span> log_of_interval(const std::optional<ledger::Interval>& interval) {
  if (!interval) return std::nullopt;
  const auto low = log_of_share(interval->low);
  const auto high = log_of_share(interval->high);
  if (!low || !high) return std::nullopt;
  return Span{*low, *high};
}

void add_numbers(const Numbers& numbers, Plot& plot) {
  const auto band = experiment::shown_noise_band(numbers);
  plot.effect = log_of_share(numbers.effect);
  plot.band = log_of_interval(band);
  if (band || !numbers.noise_band) plot.interval = log_of_interval(numbers.interval);
  plot.claim = log_of_share(numbers.claim);
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

Group group_of(const Entry& entry) {
  if (entry.imported) return Group::kReported;
  if (entry.status == EntryStatus::kOverturned) return Group::kOverturned;
  if (entry.idea.kind == ledger::EntryKind::kFloor) return Group::kFloor;
  if (entry.idea.kind == ledger::EntryKind::kTuning) return Group::kTuning;
  return entry.verdict ? verdict_group(entry.verdict->verdict) : Group::kOpen;
}

std::string group_title(Group group) {
  switch (group) {
    case Group::kWon:
      return std::string(verdict_name(Verdict::kWon));
    case Group::kLost:
      return std::string(verdict_name(Verdict::kLost));
    case Group::kNeutral:
      return std::string(verdict_name(Verdict::kNeutral));
    case Group::kInconclusive:
      return std::string(verdict_name(Verdict::kInconclusive));
    case Group::kVoid:
      return std::string(verdict_name(Verdict::kVoid));
    case Group::kBroke:
      return std::string(verdict_name(Verdict::kBroke));
    case Group::kOutOfMemory:
      return std::string(verdict_name(Verdict::kOutOfMemory));
    case Group::kFloor:
      return "aa";
    case Group::kTuning:
      return "tune";
    case Group::kOpen:
      return "open";
    case Group::kOverturned:
      return "overturned";
    case Group::kReported:
      return "reported";
  }
  RECKON_CHECK(false);
}

std::string group_slug(Group group) {
  std::string slug = group_title(group);
  for (char& c : slug) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return slug;
}

std::string verdict_word(const Entry& entry) {
  if (entry.idea.kind != ledger::EntryKind::kComparison) {
    return std::string(entry_kind_name(entry.idea.kind));
  }
  return entry.verdict ? std::string(verdict_name(entry.verdict->verdict)) : "open";
}

std::string arms_of(const Entry& entry) {
  const ledger::Scope& scope = entry.idea.scope;
  if (scope.switch_key.empty()) return entry.imported ? "figures" : "identical arms";
  return fmt::format("{} {} -> {}", scope.switch_key, scope.base_value, scope.arm_value);
}

std::string title_of(const Entry& entry) {
  if (!entry.idea.text.empty()) return entry.idea.text;
  if (entry.idea.kind == ledger::EntryKind::kFloor) {
    return "How much rounds move by when nothing differs";
  }
  return entry.idea.experiment.empty() ? arms_of(entry) : entry.idea.experiment;
}

std::string model_of(const Entry& entry) {
  if (entry.idea.model_name.empty()) return entry.idea.scope.model_family;
  return entry.idea.model_name.substr(entry.idea.model_name.find_last_of('/') + 1);
}

std::string device_of(const Entry& entry) {
  const ledger::DeviceKey& device = entry.idea.scope.device;
  if (device.isa.empty()) return entry.idea.device_name;  // an imported one may have a name alone
  const std::string key = experiment::device_key_text(device);
  return entry.idea.device_name.empty() ? key : fmt::format("{} ({})", entry.idea.device_name, key);
}

std::vector<std::string> reported_series(const Entry& entry) {
  std::vector<std::string> texts;
  const auto series = entry.figures.find("series");
  if (series == entry.figures.end() || !series->is_array()) return texts;
  for (const nlohmann::json& one : *series) {
    if (!one.is_object() || !one.contains("samples")) continue;
    const auto median = one.find("median");
    if (median == one.end() || !median->is_number()) continue;
    texts.push_back(fmt::format("{}: median {} of {}", one.value("name", ""),
                                values_text({median->get<double>()}, one.value("unit", "")),
                                counted(static_cast<int64_t>(one["samples"].size()), "sample")));
  }
  const auto effect = entry.figures.find("effect");
  if (effect != entry.figures.end() && effect->is_number()) {
    texts.push_back("effect, of the medians: " + signed_share_text(effect->get<double>()));
  }
  return texts;
}

namespace {

// The texts of a list of the sweep's record.
std::vector<std::string> tuned_texts(const Entry& entry, const char* key) {
  std::vector<std::string> texts;
  const auto tune = entry.idea.extra.find("tune");
  if (tune == entry.idea.extra.end() || !tune->is_object() || !tune->contains(key)) return texts;
  const nlohmann::json& list = (*tune)[key];
  if (!list.is_array()) return texts;
  for (const nlohmann::json& text : list) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace

std::vector<std::string> tuned_table(const Entry& entry) {
  return tuned_texts(entry, "table");
}

std::vector<std::string> tuned_rules(const Entry& entry) {
  return tuned_texts(entry, "rules");
}

std::string day_of(std::string_view time) {
  return std::string(time.substr(0, 10));
}

bool shows_numbers(const Entry& entry) {
  if (!entry.verdict) return true;
  const Verdict verdict = entry.verdict->verdict;
  return verdict != Verdict::kVoid && verdict != Verdict::kBroke &&
         verdict != Verdict::kOutOfMemory;
}

std::string effect_of(const Entry& entry) {
  const Numbers* numbers = numbers_of(entry);
  if (numbers == nullptr || !numbers->effect || !shows_numbers(entry)) return "";
  return signed_share_text(*numbers->effect);
}

std::string sentence_of(const Entry& entry) {
  const auto rounds = static_cast<int64_t>(entry.rounds.size());
  if (entry.idea.kind == ledger::EntryKind::kFloor) {
    return fmt::format("Identical arms on purpose: {} {} the noise band; never a verdict",
                       counted(rounds, "round"), rounds == 1 ? "feeds" : "feed");
  }
  if (entry.idea.kind == ledger::EntryKind::kTuning)
    return "A sweep: a table and rules, no verdict";
  if (entry.verdict) return verdict_sentence(entry);
  if (entry.imported) return "No verdict was reported";
  if (rounds == 0) return "No verdict yet: nothing was measured";
  return fmt::format("No verdict yet: {} measured", counted(rounds, "round"));
}

std::string quality_of(const Entry& entry) {
  if (entry.idea.scope.tokens_policy != "may-diverge" || !entry.verdict) return "";
  if (!shows_numbers(entry)) return "";
  std::vector<std::string> parts;
  if (const auto& tokens = entry.verdict->tokens) {
    if (tokens->identical) {
      parts.push_back(fmt::format("{} compared, identical", counted(tokens->compared, "token")));
    } else if (tokens->first_divergence) {
      parts.push_back(
          fmt::format("tokens part at position {}", tokens->first_divergence->position));
    } else {
      parts.push_back("tokens differ");
    }
    if (tokens->mean_kl) {
      parts.push_back(fmt::format("mean KL {:.3g} nats a token", *tokens->mean_kl));
    }
    if (tokens->perplexity_change) {
      parts.push_back("perplexity " + signed_share_text(*tokens->perplexity_change));
    }
    if (!tokens->mean_kl && !tokens->perplexity_change) {
      parts.push_back("KL and perplexity not measured");
    }
  } else {
    parts.push_back("not measured");
  }
  return join(parts, "; ");
}

std::vector<Notice> notices_of(const Entry& entry) {
  std::vector<Notice> notices;
  if (entry.imported) {
    notices.push_back({"Reported, not measured here",
                       entry.import_source.empty() ? "no source given" : entry.import_source, ""});
  }
  if (entry.status != EntryStatus::kOpen) {
    notices.push_back({capitalised(std::string(entry_status_name(entry.status))),
                       entry.status_reason,
                       entry.status == EntryStatus::kSuperseded ? entry.superseded_by : ""});
  }
  if (entry.status != EntryStatus::kSuperseded && !entry.superseded_by.empty()) {
    notices.push_back({"Superseded", "", entry.superseded_by});
  }
  if (is_unfinished(entry)) {
    notices.push_back({"Unfinished", join(entry.unfinished_because(), ", "), ""});
  }
  if (!entry.idea.force_reason.empty()) {
    notices.push_back(
        {"Forced", "measured although the ledger knew: " + entry.idea.force_reason, ""});
  }
  return notices;
}

bool is_unfinished(const Entry& entry) {
  return !entry.imported && entry.status != EntryStatus::kOverturned &&
         !entry.unfinished_because().empty();
}

std::vector<std::string> marks_of(const Entry& entry) {
  std::vector<std::string> marks;
  if (entry.imported) marks.push_back("reported");
  if (entry.status != EntryStatus::kOpen) {
    marks.emplace_back(entry_status_name(entry.status));
  }
  if (is_unfinished(entry)) marks.push_back("unfinished");
  return marks;
}

std::optional<Plot> plot_of(const Entry& entry, const Metrics& metrics) {
  if (!shows_numbers(entry)) return std::nullopt;
  const measure::Better better =
      higher_is_better(entry, metrics) ? measure::Better::kHigher : measure::Better::kLower;
  const Numbers* numbers = numbers_of(entry);
  Plot plot;
  for (const MeasuredBody& measured : entry.rounds) {
    std::optional<PlotRound> round = measured_round(measured.round, better);
    if (!round) return std::nullopt;
    round->counted = entry.rests_on(measured.round);
    const auto& pairs = measured.round.pairs;
    plot.warmups += static_cast<int>(
        std::count_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.warmup; }));
    plot.rounds.push_back(std::move(*round));
  }
  if (plot.rounds.empty() && numbers != nullptr) plot.rounds = stated_rounds(*numbers, better);
  if (plot.rounds.empty()) return std::nullopt;
  if (numbers != nullptr) add_numbers(*numbers, plot);
  return plot;
}

std::string unit_of(const Entry& entry, const Metrics& metrics) {
  if (const Numbers* numbers = numbers_of(entry)) return numbers->unit;
  const auto known = metrics.find(entry.idea.scope.metric);
  return known == metrics.end() ? "" : known->second.unit;
}

}  // namespace reckon::cli
