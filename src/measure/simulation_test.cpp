#include "measure/simulation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/noise.h"

namespace reckon::measure {
namespace {

// Deviation of pairs around their round and order, and of round medians.
struct Spread {
  double pair = 0;
  double slot = 0;
};

Spread spread_of(const NoiseModel& model) {
  Machine machine(model, 11);
  double squares = 0;
  double slot = 0;
  int64_t degrees = 0;
  constexpr int kRounds = 4000;
  for (int i = 0; i < kRounds; ++i) {
    const auto effects = effects_by_order(machine.round(12, 0), Better::kHigher).value();
    for (const auto* order : {&effects.base_first, &effects.arm_first}) {
      const double deviation = standard_deviation(*order).value();
      squares += deviation * deviation * 5;
      degrees += 5;
    }
    slot += (mean(effects.base_first) - mean(effects.arm_first)) / 2 / kRounds;
  }
  return {std::sqrt(squares / static_cast<double>(degrees)), slot};
}

TEST(Machine, ItsPairNoiseIsWhatTheModelSays) {
  for (const NoiseShape shape :
       {NoiseShape::kNormal, NoiseShape::kHeavy, NoiseShape::kSpikes, NoiseShape::kCorrelated}) {
    NoiseModel model;
    model.shape = shape;
    model.slot_bias = 0.03;
    model.round_shift = 2;
    const Spread spread = spread_of(model);
    EXPECT_NEAR(spread.pair, 0.01, 0.0006) << static_cast<int>(shape);
    EXPECT_NEAR(spread.slot, -0.03, 0.0002) << static_cast<int>(shape);
  }
}

TEST(Machine, RoundsShiftByWhatTheModelSays) {
  for (const bool heavy : {false, true}) {
    NoiseModel model;
    model.pair_noise = 0.001;
    model.round_shift = 20;
    model.heavy_shifts = heavy;
    Machine machine(model, 3);
    std::vector<double> medians;
    for (int i = 0; i < 20'000; ++i) {
      medians.push_back(round_median(machine.round(2, 0.05), Better::kHigher).value());
    }
    EXPECT_NEAR(mean(medians), 0.05, 0.0006);
    EXPECT_NEAR(standard_deviation(medians).value(), 0.02, heavy ? 0.002 : 0.0004);
  }
}

TEST(Machine, DriftAndEqualSeeds) {
  NoiseModel model;
  model.pair_noise = 1e-9;
  model.drift = 0.001;
  Machine machine(model, 1);
  const double first = machine.measure(false, false, 0);
  (void)machine.measure(false, false, 0);
  EXPECT_NEAR(std::log(machine.measure(true, false, 0.01) / first), 0.01 - 0.002, 1e-7);
  model.pair_noise = 0.01;
  Machine one(model, 5);
  Machine two(model, 5);
  EXPECT_EQ(round_median(one.round(6, 0), Better::kHigher).value(),
            round_median(two.round(6, 0), Better::kHigher).value());
}

}  // namespace
}  // namespace reckon::measure
