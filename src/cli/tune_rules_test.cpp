#include "cli/tune_rules.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::cli {
namespace {

using kernels::TileRule;
using kernels::TileShape;

constexpr double kBad = 0.05;
constexpr double kNearly = 0.009;

TunedCall measured(int64_t n, int64_t rows, double own, double tall, double wide,
                   DType type = DType::kQ4_0) {
  TunedCall tuned;
  tuned.call.op = kernels::Op::kMatmul;
  tuned.call.weight_type = type;
  tuned.call.n = n;
  tuned.call.k = 64;
  tuned.call.rows = rows;
  tuned.losses = {{TileShape::kAuto, own}, {TileShape::kTall, tall}, {TileShape::kWide, wide}};
  return tuned;
}

std::vector<TileRule> derived(const std::vector<TunedCall>& calls) {
  const std::vector<TileRule> rules = derive_tile_rules(calls, TileShape::kSquare);
  for (const TunedCall& tuned : calls) {
    EXPECT_LE(tuned.losses.at(tile_of(rules, tuned.call, TileShape::kSquare)), 0.00996)
        << tuned.call.n << " " << tuned.call.rows;
  }
  return rules;
}

std::string text_of(const TileRule& rule) {
  return rule.text() + " " + std::string(tile_shape_name(rule.tile));
}

TEST(TuneRules, NoRuleWhereTheKernelsOwnTileIsGoodEverywhere) {
  EXPECT_TRUE(
      derived({measured(64, 128, 0, kBad, kBad), measured(64, 512, kNearly, 0, kBad)}).empty());
}

TEST(TuneRules, OneRuleOverEverythingWhereOneTileIsBest) {
  const auto rules = derived({measured(64, 128, kBad, 0, kBad), measured(256, 512, kBad, 0, kBad)});
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(text_of(rules[0]), "matmul any tall");
}

TEST(TuneRules, ABoxReachesUpToTheNextMeasuredValue) {
  const auto rules = derived({measured(64, 128, 0, kBad, kBad), measured(64, 512, 0, kBad, kBad),
                              measured(256, 128, 0, kBad, kBad), measured(256, 512, kBad, kBad, 0),
                              measured(1024, 512, 0, kBad, kBad)});
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(text_of(rules[0]), "matmul any n=256..1023 rows=512.. wide");
}

TEST(TuneRules, AnExceptionStandsBeforeTheRest) {
  std::vector<TunedCall> calls;
  for (const int64_t n : {64, 128, 256, 512}) {
    for (const int64_t rows : {128, 512, 2048}) {
      const bool own = n == 128 && rows == 512;
      calls.push_back(measured(n, rows, own ? 0 : kBad, own ? kBad : 0, kBad));
    }
  }
  const auto rules = derived(calls);
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(text_of(rules[0]), "matmul any n=128..255 rows=512..2047 square");
  EXPECT_EQ(text_of(rules[1]), "matmul any tall");
}

TEST(TuneRules, TypesMayDiffer) {
  const auto rules =
      derived({measured(64, 128, kBad, 0, kBad), measured(64, 128, kBad, kBad, 0, DType::kQ6_K),
               measured(64, 512, 0, kBad, kBad, DType::kQ6_K)});
  EXPECT_EQ(rules.size(), 2u);
}

TEST(TuneRules, AreGoodEverywhereWhateverWasMeasured) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<TunedCall> calls;
    for (const int64_t n : {64, 128, 256, 1024}) {
      for (const int64_t rows : {128, 512, 2048}) {
        std::array<double, 3> losses{};
        for (double& loss : losses) loss = static_cast<double>(random() % 30) / 1000;
        losses[random() % 3] = 0;
        calls.push_back(measured(n, rows, losses[0], losses[1], losses[2],
                                 n == 64 ? DType::kQ6_K : DType::kQ4_0));
      }
    }
    EXPECT_LE(derived(calls).size(), calls.size());
  }
}

}  // namespace
}  // namespace reckon::cli
