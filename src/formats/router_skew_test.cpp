#include "formats/router_skew.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

namespace reckon {
namespace {

TEST(RouterSkew, SharesFollowZipfUpToTheirLimit) {
  for (const double skew : {0.5, 1.0, 2.0}) {
    const std::vector<double> shares = expert_shares(256, 8, skew);
    EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 8, 1e-6);
    EXPECT_TRUE(std::ranges::is_sorted(shares, std::greater<>()));
    EXPECT_LE(shares[0], (8.0 / 256 + 0.5) / 2 + 1e-9);
    EXPECT_NEAR(shares[99] / shares[199], std::pow(2, skew), 1e-6);
  }
}

// The experts that normally distributed logits with these factors select.
TEST(RouterSkew, FactorsGiveTheShares) {
  constexpr size_t kExperts = 64, kSelected = 4;
  constexpr int kTokens = 20000;
  const std::vector<float> factors = router_factors(kExperts, kSelected, 1.0, "layer 0").value();
  std::mt19937_64 engine(7);
  std::normal_distribution<float> normal;
  std::vector<int> counts(kExperts);
  for (int token = 0; token < kTokens; ++token) {
    std::vector<std::pair<float, size_t>> logits;
    for (size_t e = 0; e < kExperts; ++e) logits.emplace_back(factors[e] * normal(engine), e);
    std::ranges::partial_sort(logits, logits.begin() + kSelected, std::greater<>());
    for (size_t j = 0; j < kSelected; ++j) ++counts[logits[j].second];
  }
  std::ranges::sort(counts, std::greater<>());
  const std::vector<double> shares = expert_shares(kExperts, kSelected, 1.0);
  for (const size_t rank : {0, 5, 20, 63}) {
    EXPECT_NEAR(static_cast<double>(counts[rank]) / kTokens, shares[rank],
                0.2 * shares[rank] + 0.005)
        << rank;
  }
}

TEST(RouterSkew, EveryDrawHasAnotherOrder) {
  const std::vector<float> one = router_factors(64, 4, 1.0, "layer 0").value();
  const std::vector<float> other = router_factors(64, 4, 1.0, "layer 1").value();
  EXPECT_NE(one, other);
  EXPECT_EQ(one, router_factors(64, 4, 1.0, "layer 0").value());
  EXPECT_TRUE(std::ranges::is_permutation(one, other));
}

TEST(RouterSkew, HalfOfTheExpertsIsTooMany) {
  EXPECT_FALSE(router_factors(4, 2, 1.0, "").ok());
  EXPECT_TRUE(router_factors(5, 2, 1.0, "").ok());
}

}  // namespace
}  // namespace reckon
