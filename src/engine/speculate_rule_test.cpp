// The acceptance rule as a function of logits and drafts: what comes out is distributed as the
// sampler's own draws, whatever is drafted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/speculate.h"

namespace reckon::engine {
namespace {

constexpr int kDraws = 200000;
using Logits = std::vector<float>;
using Shares = std::vector<double>;

// The logits behind each row's text; a draw may depend on the rows before by the penalty alone.
const std::vector<Logits> kRows = {{1.0F, 0.2F, -0.5F, 0.9F, 0.1F, -1.0F, 0.6F, 0.3F},
                                   {0.0F, 1.4F, 0.7F, -0.2F, 0.5F, 0.4F, -0.6F, 1.1F},
                                   {0.3F, 0.3F, 0.3F, 0.3F, 0.3F, 0.3F, 0.3F, 0.3F}};

std::vector<Draft> drafts_of(const std::vector<int32_t>& tokens) {
  std::vector<Draft> drafts;
  for (const int32_t token : tokens) drafts.push_back({token, {}, {}});
  return drafts;
}

// What options make of a row, by hand: the share of each token.
Shares shares_of(Logits logits, const SamplerOptions& options, const std::vector<int32_t>& recent) {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::ranges::find(recent, static_cast<int32_t>(i)) == recent.end()) continue;
    const auto penalty = static_cast<float>(options.repeat_penalty);
    logits[i] = logits[i] > 0 ? logits[i] / penalty : logits[i] * penalty;
  }
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return logits[i]; });
  const auto exponent = [&](size_t i, double temperature) {
    return std::exp(static_cast<double>(logits[i]) / temperature);
  };
  const auto k = static_cast<size_t>(options.filters.top_k);
  if (k > 0) order.resize(std::min(order.size(), k));
  double total = 0;
  for (const size_t i : order) total += exponent(i, 1);
  double sum = 0;
  size_t kept = 0;
  while (kept < order.size() && sum < options.filters.top_p * total)
    sum += exponent(order[kept++], 1);
  order.resize(kept);
  Shares shares(logits.size());
  total = 0;
  for (const size_t i : order) total += exponent(i, options.temperature);
  for (const size_t i : order) shares[i] = exponent(i, options.temperature) / total;
  return shares;
}

// Pearson's statistic over its critical value at p = 0.001 for its degrees of freedom: above 1 is
// too far from the shares. Counts where the share is 0 make it infinite.
double excess(const std::vector<int64_t>& counts, const Shares& shares) {
  constexpr double kCritical[] = {0, 10.828, 13.816, 16.266, 18.467, 20.515, 22.458, 24.322};
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  double statistic = 0;
  size_t freedom = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * static_cast<double>(total);
    if (expected == 0) {
      if (counts[i] > 0) return INFINITY;
      continue;
    }
    ++freedom;
    statistic += std::pow(static_cast<double>(counts[i]) - expected, 2) / expected;
  }
  return statistic / kCritical[freedom - 1];
}

using Rule = std::function<std::vector<int32_t>(std::span<const Draft>, const PickRow&)>;

std::vector<int32_t> the_rule(std::span<const Draft> drafts, const PickRow& pick) {
  const auto judged = judge_drafts(drafts, pick, [](const kernels::Pick&) { return true; });
  EXPECT_TRUE(judged.ok());
  return judged->tokens;
}

// The worst excess of the first token and, where the first draft was accepted, of the second.
double worst_excess(const SamplerOptions& options, const std::vector<int32_t>& drafted,
                    const std::vector<int32_t>& prompt, const Rule& rule) {
  const std::vector<Draft> drafts = drafts_of(drafted);
  std::vector<int64_t> first(8);
  std::vector<int64_t> second(8);
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler.ok());
  for (int i = 0; i < kDraws; ++i) {
    sampler->forget();
    sampler->saw(prompt);
    const PickRow pick = [&](int64_t row) -> Result<kernels::Pick> {
      auto picked = sampler->pick(kRows[static_cast<size_t>(row)]);
      if (picked.ok()) sampler->saw({&picked->token, 1});
      return picked;
    };
    const std::vector<int32_t> tokens = rule(drafts, pick);
    ++first[static_cast<size_t>(tokens[0])];
    if (tokens[0] == drafted[0]) ++second[static_cast<size_t>(tokens[1])];
  }
  std::vector<int32_t> recent = prompt;
  const double of_first = excess(first, shares_of(kRows[0], options, recent));
  recent.push_back(drafted[0]);
  return std::max(of_first, excess(second, shares_of(kRows[1], options, recent)));
}

std::vector<SamplerOptions> samplers() {
  return {{.temperature = 1.0, .seed = 5},
          {.temperature = 0.6, .seed = 6},
          {.temperature = 1.3, .seed = 7, .filters = {.top_k = 5}},
          {.temperature = 0.9, .seed = 8, .filters = {.top_k = 7, .top_p = 0.8}},
          {.temperature = 1.1, .seed = 9, .filters = {}, .repeat_penalty = 1.8}};
}

TEST(SpeculationRule, KeepsTheDistributionOfTheSampler) {
  for (const SamplerOptions& options : samplers()) {
    for (const std::vector<int32_t>& drafted : {std::vector<int32_t>{0, 1}, {3, 7}, {6, 2}}) {
      EXPECT_LT(worst_excess(options, drafted, {4}, the_rule), 1)
          << "seed " << options.seed << ", draft " << drafted[0];
    }
  }
}

// The same test sees rules that are wrong: one that draws anew where it rejects and forgets to
// leave the draft out, and one that is a little too generous.
TEST(SpeculationRule, TheTestSeesRulesThatAreWrong) {
  const Rule draws_again = [](std::span<const Draft> drafts, const PickRow& pick) {
    std::vector<int32_t> tokens;
    for (int64_t row = 0; row < 2; ++row) {
      const int32_t draft = drafts[static_cast<size_t>(row)].token;
      int32_t token = pick(row)->token;
      const bool accepted = token == draft;
      if (!accepted) token = pick(row)->token;
      tokens.push_back(token);
      if (!accepted) break;
    }
    tokens.resize(3, 0);
    return tokens;
  };
  int generous = 0;
  const Rule accepts_too_much = [&](std::span<const Draft> drafts, const PickRow& pick) {
    std::vector<int32_t> tokens = the_rule(drafts, pick);
    if (tokens[0] != drafts[0].token && ++generous % 50 == 0) tokens[0] = drafts[0].token;
    tokens.resize(3, 0);
    return tokens;
  };
  const SamplerOptions options = samplers()[0];
  EXPECT_GT(worst_excess(options, {0, 1}, {4}, draws_again), 1);
  EXPECT_GT(worst_excess(options, {0, 1}, {4}, accepts_too_much), 1);
}

TEST(SpeculationRule, TakesTheLongestRightPrefixAndOneMore) {
  const auto judged = [](const std::vector<int32_t>& drafted, const std::vector<int32_t>& right,
                         int takes) {
    int taken = 0;
    const auto result = judge_drafts(
        drafts_of(drafted),
        [&](int64_t row) -> Result<kernels::Pick> {
          return kernels::Pick{right[static_cast<size_t>(row)], 0};
        },
        [&](const kernels::Pick&) { return ++taken < takes; });
    EXPECT_TRUE(result.ok());
    return *result;
  };
  const Judgement all = judged({1, 2, 3}, {1, 2, 3, 4}, 100);
  EXPECT_EQ(all.tokens, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(all.accepted, 3);
  EXPECT_FALSE(all.ended);
  const Judgement some = judged({1, 9, 3}, {1, 2, 3, 4}, 100);
  EXPECT_EQ(some.tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(some.accepted, 1);
  const Judgement none = judged({}, {5}, 100);
  EXPECT_EQ(none.tokens, (std::vector<int32_t>{5}));
  const Judgement ended = judged({1, 2, 3}, {1, 2, 3, 4}, 2);
  EXPECT_EQ(ended.tokens, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(ended.accepted, 2);
  EXPECT_TRUE(ended.ended);
}

}  // namespace
}  // namespace reckon::engine
