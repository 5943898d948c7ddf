#include "experiment/stored_noise.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon::experiment {
namespace {

constexpr const char* kNow = "2026-09-30T12:00:00Z";

Prepared prepared() {
  Prepared prepared;
  prepared.experiment.pairs = 2;
  prepared.scope.metric = "decode_tok_per_s";
  prepared.scope.workload_class = "pairs=2";
  return prepared;
}

// A round of two pairs whose arm is better by `percent`, with a stored median that is wrong.
ledger::MeasuredBody round_of(double percent, const std::string& started, size_t pairs = 2) {
  ledger::MeasuredBody measured;
  measured.round.started = started;
  measured.round.median_log = 7;
  measured.round.pairs.push_back({100, 500, false, true});
  for (size_t i = 0; i < pairs; ++i) {
    measured.round.pairs.push_back({100, 100 + percent, i % 2 == 1, false});
  }
  return measured;
}

ledger::Entry floor_of(std::vector<ledger::MeasuredBody> rounds) {
  ledger::Entry entry;
  entry.idea.kind = ledger::EntryKind::kFloor;
  entry.idea.scope = prepared().scope;
  entry.rounds = std::move(rounds);
  return entry;
}

TEST(StoredNoise, RestsOnFreshRoundsOfTheSamePairs) {
  ledger::Ledger ledger;
  ledger.entries = {floor_of({round_of(1, "2026-09-30T11:00:00Z"),
                              round_of(3, "2026-07-03T11:00:00.5Z"),  // 89 days
                              round_of(50, "2026-06-01T11:00:00Z"),   // too old
                              round_of(60, "some day"),               // nobody knows
                              round_of(70, "2026-09-30T11:00:00Z", 4)})};
  const StoredNoise stored = stored_noise(prepared(), ledger.entries, kNow).value();
  EXPECT_EQ(stored.noise.rounds, 2);
  EXPECT_EQ(stored.too_old, 2);
  ASSERT_EQ(stored.rounds.size(), 2U);
  EXPECT_EQ(stored.rounds[0].size(), 3U) << "with its warm-up";
  EXPECT_EQ(stored.rounds[0][1].arm, 101) << "the newest comes first";
  EXPECT_NEAR(stored.noise.standard_deviation, std::log(1.03 / 1.01) / std::sqrt(2.0), 1e-12)
      << "from the pairs, not from the stored median";
  EXPECT_EQ(stored_noise(prepared(), ledger.entries, kNow, 1).value().noise.rounds, 1);
}

TEST(StoredNoise, OnlyOfItsClassAndStanding) {
  const auto fresh = [] { return floor_of({round_of(1, "2026-09-30T11:00:00Z")}); };
  ledger::Ledger ledger;
  for (int i = 0; i < 4; ++i) ledger.entries.push_back(fresh());
  ledger.entries[0].idea.kind = ledger::EntryKind::kComparison;
  ledger.entries[1].status = ledger::EntryStatus::kOverturned;
  ledger.entries[2].idea.scope.workload_class = "pairs=4";
  EXPECT_EQ(stored_noise(prepared(), ledger.entries, kNow).value().noise.rounds, 1);
  ledger.entries[3].imported = true;
  EXPECT_EQ(stored_noise(prepared(), ledger.entries, kNow).value().noise.rounds, 0);
}

TEST(DaysBetween, CountsOverMonthsAndRefusesNonsense) {
  EXPECT_NEAR(*days_between("2026-02-27T00:00:00Z", "2026-03-01T12:00:00Z"), 2.5, 1e-9);
  EXPECT_NEAR(*days_between("2024-02-27T00:00:00Z", "2024-03-01T00:00:00Z"), 3, 1e-9);
  EXPECT_NEAR(*days_between("2026-03-01T00:00:00Z", "2026-02-28T00:00:00Z"), -1, 1e-9);
  EXPECT_FALSE(days_between("2026-13-01T00:00:00Z", kNow).has_value());
  EXPECT_FALSE(days_between("", kNow).has_value());
}

TEST(MedianOf, TakesWhatIsStoredWhereThereAreNoPairs) {
  ledger::Round round;
  round.median_log = 0.25;
  EXPECT_EQ(median_of(round, measure::Better::kHigher).value(), 0.25);
  round.pairs = {{100, 110, false, false}, {100, 110, true, false}};
  EXPECT_NEAR(median_of(round, measure::Better::kLower).value(), -std::log(1.1), 1e-12);
}

}  // namespace
}  // namespace reckon::experiment
