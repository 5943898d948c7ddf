#include "experiment/beside.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "experiment/samples.h"
#include "experiment/words.h"
#include "measure/holm.h"
#include "measure/rank_tests.h"
#include "measure/trend.h"

namespace reckon::experiment {
namespace {

constexpr double kCertainDrift = 0.01;

// A number of the object `extra[group]`.
std::optional<double> number_in(const ledger::Extra& extra, const char* group, const char* key) {
  const auto found = extra.find(group);
  if (found == extra.end() || !found->is_object()) return std::nullopt;
  const auto value = found->find(key);
  if (value == found->end() || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<double> p_value_of(const ledger::Numbers& numbers) {
  const auto found = numbers.extra.find("p_value");
  if (found == numbers.extra.end() || !found->is_number()) return std::nullopt;
  const double p = found->get<double>();
  if (!(p >= 0 && p <= 1)) return std::nullopt;
  return p;
}

std::string p_text(double p) {
  return p < 1e-6 ? "below 1e-6" : fmt::format("{:.2g}", p);
}

const ledger::Numbers* numbers_of(const Outcome& outcome) {
  if (!outcome.verdict() || !outcome.record->verdict->numbers) return nullptr;
  return &*outcome.record->verdict->numbers;
}

}  // namespace

Status add_beside(const std::vector<ledger::MeasuredBody>& rounds, measure::Better better,
                  const measure::Decision& decision, ledger::Numbers& numbers) {
  std::vector<double> effects;
  std::vector<std::vector<double>> base;
  for (const ledger::MeasuredBody& measured : rounds) {
    const std::vector<measure::Pair> pairs = to_pairs(measured.round.pairs);
    TRY_ASSIGN(const std::vector<double> round, measure::pair_effects(pairs, better));
    effects.insert(effects.end(), round.begin(), round.end());
    base.emplace_back();
    for (const measure::Pair& pair : pairs) {
      if (!pair.warmup) base.back().push_back(pair.base);
    }
  }
  if (decision.p_value) numbers.extra["p_value"] = *decision.p_value;
  if (effects.empty()) return {};
  TRY_ASSIGN(const measure::RankTest wilcoxon, measure::wilcoxon_signed_rank(effects));
  TRY_ASSIGN(const measure::RankTest sign, measure::sign_test(effects));
  TRY_ASSIGN(const measure::TrendTest trend, measure::trend_within_rounds(base));
  numbers.extra["beside"] = {{"pairs", effects.size()},
                             {"better", static_cast<int64_t>(sign.statistic)},
                             {"wilcoxon_p", wilcoxon.p_value},
                             {"sign_p", sign.p_value}};
  numbers.extra["drift"] = {{"p", trend.p_value}, {"per_pair", std::expm1(trend.slope_log)}};
  return {};
}

std::string beside_text(const ledger::Numbers& numbers, std::optional<double> holm_p) {
  std::string text;
  if (const std::optional<double> p = p_value_of(numbers)) {
    text = "p " + p_text(*p);
    if (holm_p) text += fmt::format(" ({} after Holm)", p_text(*holm_p));
  }
  const auto value = [&](const char* key) { return number_in(numbers.extra, "beside", key); };
  const auto pairs = value("pairs");
  const auto above = value("better");
  const auto sign = value("sign_p");
  const auto wilcoxon = value("wilcoxon_p");
  if (pairs && above && sign && wilcoxon) {
    text += fmt::format("{}of {} {:.0f} better, sign test p {}, Wilcoxon p {}",
                        text.empty() ? "" : "; ", counted(std::lround(*pairs), "pair"), *above,
                        p_text(*sign), p_text(*wilcoxon));
  }
  return text.empty() ? text : "beside the verdict: " + text;
}

std::string drift_text(const ledger::Numbers& numbers) {
  const auto p = number_in(numbers.extra, "drift", "p");
  const auto per_pair = number_in(numbers.extra, "drift", "per_pair");
  if (!p || !per_pair || *p >= kCertainDrift) return "";
  return fmt::format("the base arm drifted by {} a pair (p {})", signed_share_text(*per_pair),
                     p_text(*p));
}

void add_holm(QueueOutcome& outcome) {
  std::vector<double> p_values;
  std::vector<Outcome*> compared;
  for (Outcome& experiment : outcome.experiments) {
    const ledger::Numbers* numbers = numbers_of(experiment);
    const std::optional<double> p = numbers != nullptr ? p_value_of(*numbers) : std::nullopt;
    if (!p) continue;
    p_values.push_back(*p);
    compared.push_back(&experiment);
  }
  const Result<std::vector<double>> adjusted = measure::holm(p_values);
  RECKON_CHECK(adjusted.ok());  // only p-values came in
  for (size_t i = 0; i < compared.size(); ++i) compared[i]->holm_p = (*adjusted)[i];
}

}  // namespace reckon::experiment
