// From a sweep's times to rules: the fewest that choose a tile within 1 % of the best one wherever
// it was measured. Pure functions of numbers.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "kernels/op.h"
#include "kernels/tile_rules.h"

namespace reckon::cli {

// A call that was measured. Losses are ln(time / the best one's time), 0 for the best; kAuto stands
// for what the kernel takes without a rule.
struct TunedCall {
  kernels::OpCall call;
  std::map<kernels::TileShape, double> losses;
};

inline constexpr double kTuneTolerance = 0.01;  // a share of the best one's time

// A rule covers a box of the measured values of n, k and rows, and of one weight type or all; from
// one measured value on it reaches up to the next, and at either end to the end. `own`: the name
// of the tile that the kernel takes without a rule. Of equally few rules those whose choices lose
// least. Where one tile is good nearly everywhere, the rules are its exceptions and then itself.
[[nodiscard]] std::vector<kernels::TileRule> derive_tile_rules(std::span<const TunedCall> calls,
                                                               kernels::TileShape own);

// The tile that rules choose for a call; kAuto where none fits or one names `own`.
[[nodiscard]] kernels::TileShape tile_of(std::span<const kernels::TileRule> rules,
                                         const kernels::OpCall& call, kernels::TileShape own);

}  // namespace reckon::cli
