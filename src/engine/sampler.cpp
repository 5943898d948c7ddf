#include "engine/sampler.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"

namespace reckon::engine {

Result<GreedyPick> pick_greedy(std::span<const float> logits) {
  RECKON_CHECK(!logits.empty());
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  size_t best = 0;
  float highest = kLowest;
  float second = kLowest;
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!std::isfinite(logit)) {
      return failed(fmt::format("the logit of token {} is {}; the model or its weights are broken",
                                i, logit));
    }
    if (logit > highest) {
      second = highest;
      highest = logit;
      best = i;
    } else if (logit > second) {
      second = logit;
    }
  }
  return GreedyPick{static_cast<int32_t>(best), logits.size() == 1 ? 0 : highest - second};
}

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return usage_error(
        fmt::format("a temperature of {}; expected 0 (greedy) or more", options.temperature));
  }
  return Sampler(options);
}

Result<GreedyPick> Sampler::pick(std::span<const float> logits) {
  TRY_ASSIGN(GreedyPick pick, pick_greedy(logits));
  if (options_.temperature > 0) {
    pick.token = draw(logits, logits[static_cast<size_t>(pick.token)]);
  }
  return pick;
}

int32_t Sampler::draw(std::span<const float> logits, float highest) {
  const auto share = [&](float logit) {
    return std::exp((static_cast<double>(logit) - static_cast<double>(highest)) /
                    options_.temperature);
  };
  double total = 0;
  for (const float logit : logits) total += share(logit);
  const double wanted = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
  double sum = 0;
  size_t last_possible = 0;  // where rounding leaves `wanted` beyond the last sum
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = share(logits[i]);
    if (weight > 0) last_possible = i;
    sum += weight;
    if (wanted < sum) return static_cast<int32_t>(i);
  }
  return static_cast<int32_t>(last_possible);
}

}  // namespace reckon::engine
