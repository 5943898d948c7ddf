// The promise of docs/measuring.md, held on fixed seeds over 10,000 simulated queues of every
// promised noise; bench/measure_study.cpp counts ten times as many.
#include "measure/study.h"

#include <gtest/gtest.h>

#include <cctype>

namespace reckon::measure {
namespace {

constexpr int64_t kQueues = 10'000;
constexpr uint64_t kSeed = 2026;

class PromisedNoise : public testing::TestWithParam<NoiseModel> {};

TEST_P(PromisedNoise, KeepsItsErrorRates) {
  const ErrorRates rates = study_rule(GetParam(), {}, kQueues, kSeed).value();
  EXPECT_EQ(rates.queues, kQueues);
  EXPECT_LE(rates.share(rates.false_calls), 0.01);
  EXPECT_LE(rates.share(rates.neutral_at_claim), 0.06);
  EXPECT_GE(rates.share(rates.found_at_smallest), 0.75);
  // The rule works at all: it neither calls nothing nor overstates what it sees by far.
  EXPECT_GE(rates.share(rates.neutral_at_claim), 0.03);
  EXPECT_LE(rates.share(rates.found_at_smallest), 0.90);
}

std::string test_name(const testing::TestParamInfo<NoiseModel>& info) {
  std::string name;
  for (const char c : info.param.name) name += std::isalnum(c) != 0 ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Study, PromisedNoise, testing::ValuesIn(promised_noise()), test_name);

NoiseModel shifted(double round_shift) {
  NoiseModel model;
  model.round_shift = round_shift;
  return model;
}

TEST(Study, MoreRoundsKeepTheirPower) {
  for (const int rounds : {3, 4, 6, 8}) {
    const ErrorRates rates = study_rule(shifted(1), {20, rounds, 6}, 3000, kSeed).value();
    EXPECT_LE(rates.share(rates.false_calls), 0.01) << rounds;
    EXPECT_LE(rates.share(rates.neutral_at_claim), 0.06) << rounds;
    EXPECT_GE(rates.share(rates.found_at_smallest), 0.75) << rounds;
  }
}

TEST(Study, CommonPracticesAreFarWorse) {
  const PracticeRates still = study_practices(shifted(0), 2000, kSeed).value();
  EXPECT_NEAR(still.share(still.welch), 0.05, 0.02);  // what it promises, where nothing moves
  EXPECT_GT(still.share(still.retry), 0.15);
  const PracticeRates moving = study_practices(shifted(1), 2000, kSeed).value();
  EXPECT_GT(moving.share(moving.welch), 0.4);
  EXPECT_GT(moving.share(moving.best), 0.2);
  EXPECT_GT(moving.share(moving.retry), 0.9);
  EXPECT_GT(moving.share(moving.pooled), 0.2);
}

TEST(Study, RunningAnInconclusiveOneAgainCostsLittle) {
  const double once = study_joining(shifted(1), 1, 5000, kSeed).value();
  const double five = study_joining(shifted(1), 5, 5000, kSeed).value();
  EXPECT_GE(five, once);
  EXPECT_LE(five, 0.01);
}

TEST(Study, SequentialStoppingKeepsItsErrorRates) {
  for (const double claim : {1.0, 3.0}) {
    const SequentialRates rates = study_sequential(shifted(1), claim, 2000, kSeed).value();
    EXPECT_LE(rates.share(rates.false_calls), 0.01) << claim;
    EXPECT_LE(rates.share(rates.missed_claims), 0.08) << claim;
    EXPECT_GE(rates.share(rates.found), 0.90) << claim;
  }
}

}  // namespace
}  // namespace reckon::measure
