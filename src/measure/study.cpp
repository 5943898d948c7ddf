#include "measure/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "measure/noise.h"
#include "measure/practices.h"
#include "measure/rank_tests.h"
#include "measure/sequential.h"
#include "measure/verdict.h"

namespace reckon::measure {
namespace {

Result<std::vector<double>> simulated_medians(Machine& machine, int rounds, int pairs,
                                              double effect_log) {
  std::vector<double> medians;
  for (int i = 0; i < rounds; ++i) {
    TRY_ASSIGN(const double median,
               round_median(machine.round(pairs, effect_log), Better::kHigher));
    medians.push_back(median);
  }
  return medians;
}

Result<Call> call_on(Machine& machine, const StudyDesign& design, const Noise& noise, double claim,
                     double effect_log) {
  TRY_ASSIGN(const std::vector<double> medians,
             simulated_medians(machine, design.rounds, design.pairs, effect_log));
  TRY_ASSIGN(const Decision decision, decide({medians, noise, claim, true}));
  return decision.call;
}

}  // namespace

Result<ErrorRates> study_rule(const NoiseModel& model, const StudyDesign& design, int64_t queues,
                              uint64_t seed) {
  ErrorRates rates;
  SplitMix64 seeds(seed);
  for (int64_t i = 0; i < queues; ++i) {
    Machine machine(model, seeds.next());
    TRY_ASSIGN(const std::vector<double> floor,
               simulated_medians(machine, design.noise_rounds, design.pairs, 0));
    TRY_ASSIGN(const Noise noise, estimate_noise(floor));
    TRY_ASSIGN(const Band band, design_band(noise, design.rounds));
    const double smallest = band.smallest_detectable;
    const double claim = std::expm1(smallest);
    TRY_ASSIGN(const Call same, call_on(machine, design, noise, claim, 0));
    TRY_ASSIGN(const Call better, call_on(machine, design, noise, claim, smallest));
    ++rates.queues;
    rates.false_calls += same == Call::kWon || same == Call::kLost ? 1 : 0;
    rates.neutral_at_claim += better == Call::kNeutral ? 1 : 0;
    rates.found_at_smallest += better == Call::kWon ? 1 : 0;
    rates.mean_smallest += smallest;
  }
  if (queues > 0) rates.mean_smallest /= static_cast<double>(queues);
  return rates;
}

namespace {

constexpr int kPracticeValues = 12;  // of each arm: as many as 2 rounds of 6 pairs
constexpr double kPracticeLevel = 0.05;
constexpr double kBestMargin = 0.01;  // by which the better maximum must be ahead
constexpr int kPracticeTries = 5;

struct TwoSamples {
  std::vector<double> base, arm;
};

// All of one arm in a process of its own, then all of the other.
TwoSamples one_after_the_other(Machine& machine) {
  TwoSamples samples;
  machine.start_process();
  for (int i = 0; i < kPracticeValues; ++i)
    samples.base.push_back(machine.measure(false, false, 0));
  machine.start_process();
  for (int i = 0; i < kPracticeValues; ++i) samples.arm.push_back(machine.measure(true, false, 0));
  return samples;
}

Result<bool> welch_differs(const TwoSamples& samples) {
  TRY_ASSIGN(const double p, welch_p_value(samples.base, samples.arm));
  return p < kPracticeLevel;
}

bool best_differs(const TwoSamples& samples) {
  const double base = *std::max_element(samples.base.begin(), samples.base.end());
  const double arm = *std::max_element(samples.arm.begin(), samples.arm.end());
  return std::fabs(std::log(arm / base)) > std::log1p(kBestMargin);
}

Result<bool> pooled_differs(Machine& machine) {
  std::vector<double> effects;
  for (int i = 0; i < 2; ++i) {
    TRY_ASSIGN(const std::vector<double> round,
               pair_effects(machine.round(kPracticeValues / 2, 0), Better::kHigher));
    effects.insert(effects.end(), round.begin(), round.end());
  }
  TRY_ASSIGN(const RankTest test, wilcoxon_signed_rank(effects));
  return test.p_value < kPracticeLevel;
}

Result<Noise> learnt_noise(Machine& machine, const StudyDesign& design) {
  TRY_ASSIGN(const std::vector<double> floor,
             simulated_medians(machine, design.noise_rounds, design.pairs, 0));
  return estimate_noise(floor);
}

// Rounds one by one until the state says stop.
Result<SequentialState> run_sequentially(Machine& machine, const Noise& noise,
                                         const SequentialDesign& design, double effect_log) {
  std::vector<double> medians;
  SequentialState state;
  while (state.call == SequentialCall::kGoOn && medians.size() < kMostSequentialRounds) {
    TRY_ASSIGN(const double median,
               round_median(machine.round(StudyDesign().pairs, effect_log), Better::kHigher));
    medians.push_back(median);
    TRY_ASSIGN(state, sequential_state(noise, medians, design));
  }
  return state;
}

}  // namespace

Result<PracticeRates> study_practices(const NoiseModel& model, int64_t comparisons, uint64_t seed) {
  PracticeRates rates;
  SplitMix64 seeds(seed);
  for (int64_t i = 0; i < comparisons; ++i) {
    Machine machine(model, seeds.next());
    const TwoSamples first = one_after_the_other(machine);
    TRY_ASSIGN(const bool differs, welch_differs(first));
    bool ever = differs;
    for (int again = 1; again < kPracticeTries && !ever; ++again) {
      TRY_ASSIGN(ever, welch_differs(one_after_the_other(machine)));
    }
    TRY_ASSIGN(const bool pooled, pooled_differs(machine));
    ++rates.comparisons;
    rates.welch += differs ? 1 : 0;
    rates.best += best_differs(first) ? 1 : 0;
    rates.retry += ever ? 1 : 0;
    rates.pooled += pooled ? 1 : 0;
  }
  return rates;
}

Result<double> study_joining(const NoiseModel& model, int looks, int64_t queues, uint64_t seed) {
  const StudyDesign design;
  int64_t called = 0;
  SplitMix64 seeds(seed);
  for (int64_t i = 0; i < queues; ++i) {
    Machine machine(model, seeds.next());
    TRY_ASSIGN(const Noise noise, learnt_noise(machine, design));
    std::vector<double> medians;
    Call call = Call::kInconclusive;
    for (int look = 0; look < looks && call == Call::kInconclusive; ++look) {
      TRY_ASSIGN(const std::vector<double> fresh,
                 simulated_medians(machine, design.rounds, design.pairs, 0));
      medians.insert(medians.end(), fresh.begin(), fresh.end());
      TRY_ASSIGN(const Decision decision, decide({medians, noise, std::nullopt, true}));
      call = decision.call;
    }
    called += call == Call::kWon || call == Call::kLost ? 1 : 0;
  }
  return static_cast<double>(called) / static_cast<double>(queues);
}

Result<SequentialRates> study_sequential(const NoiseModel& model, double claim_in_noises,
                                         int64_t queues, uint64_t seed) {
  SequentialRates rates;
  SplitMix64 seeds(seed);
  for (int64_t i = 0; i < queues; ++i) {
    Machine machine(model, seeds.next());
    TRY_ASSIGN(const Noise noise, learnt_noise(machine, {}));
    const double effect = claim_in_noises * noise.standard_deviation;
    SequentialDesign design;
    design.claim = std::expm1(effect);
    TRY_ASSIGN(const SequentialState same, run_sequentially(machine, noise, design, 0));
    TRY_ASSIGN(const SequentialState better, run_sequentially(machine, noise, design, effect));
    ++rates.queues;
    const auto is = [](const SequentialState& state, SequentialCall call) {
      return state.call == call ? 1 : 0;
    };
    rates.false_calls += is(same, SequentialCall::kBetter) + is(same, SequentialCall::kWorse);
    rates.missed_claims += is(better, SequentialCall::kNoGain) + is(better, SequentialCall::kWorse);
    rates.found += is(better, SequentialCall::kBetter);
    rates.undecided += is(same, SequentialCall::kGoOn) + is(better, SequentialCall::kGoOn);
    rates.rounds_same += static_cast<int64_t>(same.rounds);
    rates.rounds_better += static_cast<int64_t>(better.rounds);
  }
  return rates;
}

std::vector<NoiseModel> promised_noise() {
  std::vector<NoiseModel> models;
  const auto add = [&](std::string name, NoiseShape shape, double round_shift, bool disturbed) {
    NoiseModel model;
    model.name =
        fmt::format("{}, shifts {:g}{}", name, round_shift, disturbed ? ", slot 3%, drift" : "");
    model.shape = shape;
    model.round_shift = round_shift;
    if (disturbed) {
      model.slot_bias = 0.03;
      model.drift = 0.001;
      model.settling = 0.03;
    }
    models.push_back(model);
  };
  for (const bool disturbed : {false, true}) {
    for (const double shift : {0.0, 0.5, 1.0, 2.0}) {
      add("normal", NoiseShape::kNormal, shift, disturbed);
      add("heavy tails", NoiseShape::kHeavy, shift, disturbed);
      add("spikes", NoiseShape::kSpikes, shift, disturbed);
      add("autocorrelated", NoiseShape::kCorrelated, shift, disturbed);
    }
  }
  for (const double shift : {0.5, 1.0, 2.0}) {
    for (const NoiseShape shape : {NoiseShape::kNormal, NoiseShape::kHeavy}) {
      add(shape == NoiseShape::kNormal ? "normal" : "heavy tails", shape, shift, false);
      models.back().heavy_shifts = true;
      models.back().name += " with heavy tails";
    }
  }
  return models;
}

}  // namespace reckon::measure
