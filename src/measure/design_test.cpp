#include "measure/design.h"

#include <gtest/gtest.h>

#include <cmath>

#include "measure/simulation.h"
#include "measure/verdict.h"

namespace reckon::measure {
namespace {

// Standard deviation of the mean of two medians of three normal values, in theirs: the variance of
// such a median is 0.4486711 (Teichroew 1956).
const double kSixPairs = std::sqrt(0.4486711 / 2);

std::vector<std::vector<Pair>> floor_of(double round_shift, int rounds, int pairs,
                                        double slot_bias = 0.03) {
  NoiseModel model;
  model.round_shift = round_shift;
  model.slot_bias = slot_bias;
  Machine machine(model, 8);
  std::vector<std::vector<Pair>> floor;
  for (int i = 0; i < rounds; ++i) floor.push_back(machine.round(pairs, 0));
  return floor;
}

TEST(NoiseForecast, TellsPairsFromRounds) {
  const NoiseForecast forecast =
      NoiseForecast::create(floor_of(1, 4000, 6), Better::kHigher).value();
  const NoiseParts& parts = forecast.parts();
  EXPECT_EQ(parts.pairs, 6);
  EXPECT_NEAR(parts.pair, 0.01, 0.0003);
  EXPECT_NEAR(parts.slot_term, -0.03, 0.0003);
  EXPECT_NEAR(parts.of_pairs, 0.01 * kSixPairs, 0.0004);
  EXPECT_NEAR(parts.of_rounds, 0.01, 0.0004);
}

TEST(NoiseForecast, MorePairsLowerOnlyTheirPart) {
  const NoiseForecast quiet = NoiseForecast::create(floor_of(0, 4000, 6), Better::kHigher).value();
  EXPECT_NEAR(quiet.noise(6).standard_deviation, 0.01 * kSixPairs, 0.0002);
  // Two pairs have two medians of one; of many pairs a median is worth sqrt(pi/2) of a mean.
  EXPECT_NEAR(quiet.noise(2).standard_deviation, 0.01 / std::sqrt(2.0), 0.0003);
  EXPECT_NEAR(quiet.noise(96).standard_deviation, 0.01 * std::sqrt(std::acos(-1.0) / 2 / 96), 3e-4);
  const NoiseForecast shifted =
      NoiseForecast::create(floor_of(2, 4000, 6), Better::kHigher).value();
  EXPECT_NEAR(shifted.noise(96).standard_deviation, 0.02, 0.0008);
  EXPECT_EQ(shifted.noise(96).rounds, 4000);
}

TEST(NoiseForecast, KeepsTheLearntNoiseAtItsOwnPairs) {
  const auto floor = floor_of(0.5, 20, 6);
  std::vector<double> medians;
  for (const auto& round : floor) medians.push_back(round_median(round, Better::kHigher).value());
  const Noise noise = estimate_noise(medians).value();
  const NoiseForecast forecast = NoiseForecast::create(floor, Better::kHigher).value();
  EXPECT_NEAR(forecast.noise(6).standard_deviation / noise.standard_deviation, 1, 1e-9);
}

TEST(NoiseForecast, RefusesTooLittle) {
  EXPECT_FALSE(NoiseForecast::create(floor_of(0, 19, 6), Better::kHigher).ok());
  EXPECT_FALSE(NoiseForecast::create(floor_of(0, 20, 2), Better::kHigher).ok());
  auto mixed = floor_of(0, 20, 6);
  mixed[3].resize(4);
  EXPECT_FALSE(NoiseForecast::create(mixed, Better::kHigher).ok());
}

TEST(AutoPairs, AddsRoundsWhereTheyAreEnough) {
  const NoiseForecast forecast =
      NoiseForecast::create(floor_of(2, 200, 6), Better::kHigher).value();
  const double noise = forecast.noise(6).standard_deviation;
  DesignRequest request;
  request.claim = std::expm1(3.0 * noise);
  const Design two = auto_pairs(forecast, request).value();
  EXPECT_EQ(two.rounds, 2);
  EXPECT_EQ(two.pairs, 6);
  EXPECT_EQ(two.fresh_floor, 0);
  EXPECT_EQ(two.cost_pairs, 2 * 7);
  request.claim = std::expm1(2.2 * noise);
  const Design more = auto_pairs(forecast, request).value();
  EXPECT_GT(more.rounds, 2);
  EXPECT_EQ(more.pairs, 6);
  EXPECT_LE(more.smallest, std::log1p(request.claim));
}

TEST(AutoPairs, AddsPairsWhereRoundsCannotSeeIt) {
  const NoiseForecast forecast =
      NoiseForecast::create(floor_of(0, 200, 6), Better::kHigher).value();
  DesignRequest request;
  request.claim = std::expm1(1.2 * forecast.noise(6).standard_deviation);
  const Design design = auto_pairs(forecast, request).value();
  EXPECT_GT(design.pairs, 6);
  EXPECT_EQ(design.pairs % 2, 0);
  EXPECT_EQ(design.fresh_floor, kMinimumNoiseRounds);
  EXPECT_EQ(design.cost_pairs, (design.rounds + 20) * (design.pairs + 1));
  EXPECT_LE(design.smallest, std::log1p(request.claim));
}

TEST(AutoPairs, SaysWhenTheRoundsThemselvesAreTheLimit) {
  const NoiseForecast forecast =
      NoiseForecast::create(floor_of(2, 200, 6), Better::kHigher).value();
  DesignRequest request;
  request.claim = std::expm1(1.0 * forecast.noise(6).standard_deviation);
  const auto none = auto_pairs(forecast, request);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kRefused);
  EXPECT_NE(none.error().message.find("which more pairs do not lower"), std::string::npos);
  request.claim = 0;
  EXPECT_EQ(auto_pairs(forecast, request).error().kind, ErrorKind::kUsage);
  request = {.claim = 0.1, .pairs = 8};
  EXPECT_EQ(auto_pairs(forecast, request).error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace reckon::measure
