// Routers of synthetic checkpoints whose load is spread unevenly over the experts, as that of a
// trained one is and a random one's is not.
//
// A random router's logits are normally distributed, and a token goes to the experts of the highest
// ones. The rows of popular experts get a larger deviation, those of others a smaller one, so that
// the expert of rank i is selected by a share of the tokens proportional to i^-skew (Zipf), but by
// no more than halfway from an even share to a half of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon {

// Of each expert's row, in the order of the experts; which one has which rank is drawn from `draw`.
// Fails where a row selects half of the experts or more. skew > 0.
[[nodiscard]] Result<std::vector<float>> router_factors(int64_t experts, int64_t selected,
                                                        double skew, std::string_view draw);

// The share of tokens of each rank, best first; they add up to `selected`.
[[nodiscard]] std::vector<double> expert_shares(int64_t experts, int64_t selected, double skew);

}  // namespace reckon
