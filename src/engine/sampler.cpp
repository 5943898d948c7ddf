#include "engine/sampler.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "kernels/sample.h"

namespace reckon::engine {

Result<kernels::Pick> checked(const kernels::Pick& pick) {
  if (pick.token >= 0) return pick;
  return failed(
      fmt::format("the logit of token {} is not finite; the model or its weights are "
                  "broken",
                  -1 - pick.token));
}

Result<kernels::Pick> pick_token(std::span<const float> logits, const kernels::Sampling& sampling) {
  RECKON_CHECK(!logits.empty());
  return checked(kernels::sample_row(logits.data(), static_cast<int64_t>(logits.size()),
                                     sampling.temperature, sampling.uniform));
}

Result<Sampler> Sampler::create(const SamplerOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return usage_error(
        fmt::format("a temperature of {}; expected 0 (greedy) or more", options.temperature));
  }
  return Sampler(options);
}

kernels::Sampling Sampler::next() {
  if (options_.temperature == 0) return {};
  return {.temperature = options_.temperature,
          .uniform = static_cast<double>(random_() >> 11) * 0x1p-53};
}

}  // namespace reckon::engine
