#include "experiment/numbers.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "experiment/beside.h"
#include "experiment/stored_noise.h"
#include "experiment/words.h"
#include "measure/pairs.h"
#include "measure/verdict.h"

namespace reckon::experiment {
namespace {

ledger::Verdict to_verdict(measure::Call call) {
  switch (call) {
    case measure::Call::kWon:
      return ledger::Verdict::kWon;
    case measure::Call::kLost:
      return ledger::Verdict::kLost;
    case measure::Call::kNeutral:
      return ledger::Verdict::kNeutral;
    case measure::Call::kInconclusive:
      return ledger::Verdict::kInconclusive;
  }
  RECKON_CHECK(false);
}

ledger::Interval around(double center_log, double half_width_log) {
  ledger::Interval interval;
  interval.low = std::expm1(center_log - half_width_log);
  interval.high = std::expm1(center_log + half_width_log);
  return interval;
}

// What running second is worth, over every counted pair; left out where it cannot be told.
void add_slot_term(const std::vector<ledger::MeasuredBody>& rounds, measure::Better better,
                   ledger::Numbers& numbers) {
  std::vector<ledger::PairSample> samples;
  for (const ledger::MeasuredBody& measured : rounds) {
    samples.insert(samples.end(), measured.round.pairs.begin(), measured.round.pairs.end());
  }
  const Result<measure::SlotTerm> term = measure::slot_term(to_pairs(samples), better);
  if (!term.ok()) return;
  numbers.extra["slot_term"] = std::expm1(term->log_units);
  numbers.extra["slot_term_error"] = term->standard_error;
}

std::string inconclusive_text(const Prepared& prepared, const Judgement& judgement,
                              const Samples& samples, const measure::Decision& decision) {
  if (decision.missing_noise_rounds > 0) {
    const int pairs = prepared.experiment.pairs + prepared.experiment.warmup_pairs;
    return missing_noise_text(judgement.noise, samples.seconds_a_pair() * pairs);
  }
  const measure::Band& band = *decision.band;
  if (std::fabs(decision.mean_log) > band.noise_band) {
    return decision.same_sign ? "one round alone carries the effect: the other is within the noise"
                              : "the rounds do not agree in sign";
  }
  std::string text =
      fmt::format("the effect lies within the noise band of {}", log_band_text(band.noise_band));
  if (!prepared.experiment.claim) return text + "; without a claim it cannot be called NEUTRAL";
  text +=
      fmt::format(", and its interval is not inside ±{}", share_text(*prepared.experiment.claim));
  if (judgement.rounds_to_see) {
    text += "; a claim of that size takes " + counted(*judgement.rounds_to_see, "round");
  }
  return text;
}

}  // namespace

std::string missing_noise_text(const measure::Noise& noise, double seconds_a_round) {
  const int missing = noise.missing_rounds();
  std::string text =
      fmt::format("{} of {} A/A rounds of this workload class are stored; {} missing", noise.rounds,
                  measure::kMinimumNoiseRounds, missing);
  if (seconds_a_round > 0) {
    text += fmt::format(", which take about {}", duration_text(seconds_a_round * missing));
  }
  return text;
}

Status add_numbers(const Prepared& prepared, const Judgement& judgement, const Samples& samples,
                   const std::vector<ledger::MeasuredBody>& rounds, ledger::VerdictBody& body) {
  const Runner::MetricInfo& metric = prepared.metric;
  std::vector<double> medians;
  ledger::Numbers numbers;
  const measure::Better better = better_of(metric);
  for (const ledger::MeasuredBody& measured : rounds) {
    TRY_ASSIGN(const double median, median_of(measured.round, better));
    medians.push_back(median);
    numbers.base_values.push_back(measured.round.base_value);
    numbers.arm_values.push_back(measured.round.arm_value);
  }
  measure::Evidence evidence;
  evidence.round_medians = medians;
  evidence.noise = judgement.noise;
  evidence.claim = prepared.experiment.claim;
  evidence.different_dispatch = true;
  TRY_ASSIGN(const measure::Decision decision, measure::decide(evidence));
  numbers.metric = metric.name;
  numbers.unit = metric.unit;
  numbers.higher_is_better = metric.higher_is_better;
  numbers.effect = decision.effect;
  numbers.claim = prepared.experiment.claim;
  numbers.noise_rounds = judgement.noise.rounds;
  if (decision.band) {
    numbers.interval = around(decision.mean_log, decision.band->interval90);
    numbers.noise_band = around(0, decision.band->noise_band);
    numbers.smallest_effect = std::expm1(decision.band->smallest_detectable);
  }
  add_slot_term(rounds, better, numbers);
  TRY(add_beside(rounds, better, decision, numbers));
  body.numbers = std::move(numbers);
  body.verdict = to_verdict(decision.call);
  body.void_reason.reset();
  body.detail = body.verdict == ledger::Verdict::kInconclusive
                    ? inconclusive_text(prepared, judgement, samples, decision)
                    : "";
  return {};
}

}  // namespace reckon::experiment
