#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/sample.h"

namespace reckon::engine {
namespace {

kernels::Pick sample(std::span<const float> logits, const kernels::Sampling& sampling) {
  return kernels::sample_row(logits.data(), static_cast<int64_t>(logits.size()),
                             sampling.temperature, sampling.uniform);
}

Status check_filters(const FilterOptions& filters) {
  if (filters.top_k < 0) {
    return usage_error(
        fmt::format("a top-k of {}; expected 1 or more, or 0 for all tokens", filters.top_k));
  }
  if (!(filters.top_p > 0 && filters.top_p <= 1)) {
    return usage_error(
        fmt::format("a top-p of {}; expected a number above 0 and up to 1", filters.top_p));
  }
  if (!(filters.min_p >= 0 && filters.min_p <= 1)) {
    return usage_error(fmt::format("a min-p of {}; expected a number from 0 to 1", filters.min_p));
  }
  return {};
}

}  // namespace

Result<kernels::Pick> checked(const kernels::Pick& pick) {
  if (pick.token >= 0) return pick;
  return failed(
      fmt::format("the logit of token {} is not finite; the model or its weights are "
                  "broken",
                  -1 - pick.token));
}

Result<kernels::Pick> pick_token(std::span<const float> logits, const kernels::Sampling& sampling) {
  RECKON_CHECK(!logits.empty());
  return checked(sample(logits, sampling));
}

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return usage_error(
        fmt::format("a temperature of {}; expected 0 (greedy) or more", options.temperature));
  }
  TRY(check_filters(options.filters));
  if (!(options.repeat_penalty >= 0.01 && options.repeat_penalty <= 100)) {
    return usage_error(fmt::format("a repeat penalty of {}; expected 0.01 to 100 (1 is none)",
                                   options.repeat_penalty));
  }
  if (options.repeat_window < 0) {
    return usage_error(
        fmt::format("a repeat window of {}; expected 0 tokens or more", options.repeat_window));
  }
  return Sampler(options);
}

bool Sampler::needs_logits() const {
  return penalises() || (options_.temperature > 0 && !options_.filters.keeps_all());
}

kernels::Sampling Sampler::next() {
  if (options_.temperature == 0) return {};
  return {.temperature = options_.temperature,
          .uniform = static_cast<double>(random_() >> 11) * 0x1p-53};
}

Result<kernels::Pick> Sampler::pick(std::span<const float> logits) {
  TRY_ASSIGN(kernels::Pick pick, pick_token(logits));
  row_.assign(logits.begin(), logits.end());
  if (penalises()) {
    penalise(row_, recent_, static_cast<float>(options_.repeat_penalty));
    TRY_ASSIGN(pick, pick_token(row_));
  }
  if (options_.temperature == 0) return pick;
  const std::vector<Candidate> candidates = likely_candidates(row_, options_.filters);
  std::vector<float> left;
  for (const Candidate& candidate : candidates) left.push_back(candidate.logit);
  const kernels::Pick drawn = sample(left, next());
  pick.token = candidates[static_cast<size_t>(drawn.token)].token;
  return pick;
}

void Sampler::saw(std::span<const int32_t> tokens) {
  if (!penalises()) return;
  const auto window = static_cast<size_t>(options_.repeat_window);
  recent_.insert(recent_.end(), tokens.begin(), tokens.end());
  if (recent_.size() > window) {
    recent_.erase(recent_.begin(), recent_.end() - static_cast<ptrdiff_t>(window));
  }
}

}  // namespace reckon::engine
