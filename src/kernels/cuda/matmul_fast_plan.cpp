#include "kernels/cuda/matmul_fast_plan.h"

#include <algorithm>

namespace reckon::kernels::cuda {
namespace {

constexpr int64_t divided_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// What a block of 64 of K and what a tile beside its blocks cost, in microseconds on an H200,
// fitted to p4 weights over 7 shapes × 8 numbers of rows (matmul_fast_bench sweep). The cut that
// the model picks was 1.2 % slower than the fastest on average. Only proportions matter.
struct Cost {
  int slices, tokens;
  int blocks;           // that share a multiprocessor
  double block, alone;  // alone: where each has a multiprocessor to itself
  double tile;
};
constexpr Cost kCosts[] = {{1, 16, 2, 0.440, 0.303, 0.60},  {1, 32, 2, 0.456, 0.330, 0.65},
                           {1, 64, 2, 0.607, 0.367, 1.98},  {1, 128, 1, 0.380, 0.380, 2.68},
                           {1, 160, 1, 0.430, 0.430, 3.15}, {1, 192, 1, 0.472, 0.472, 3.89},
                           {1, 256, 1, 0.610, 0.610, 5.79}, {2, 16, 2, 0.616, 0.483, 2.62},
                           {2, 32, 2, 0.873, 0.595, 1.74},  {2, 64, 1, 0.486, 0.486, 1.96},
                           {2, 128, 1, 0.678, 0.678, 4.56}};

// Clusters do not fill a chip to the last multiprocessor, and adding up costs time.
struct SplitCost {
  int split;
  double filled, adding;
};
constexpr SplitCost kSplits[] = {{1, 1, 0}, {2, 0.97, 4}, {4, 0.92, 4}, {8, 0.85, 8}};

double time_of(const Cost& cost, const SplitCost& split, bool swiglu, int64_t rows, int64_t n,
               int64_t k, int multiprocessors) {
  const int64_t tile_rows = swiglu ? 128 : 128 * cost.slices;
  const int64_t blocks = divided_up(n, tile_rows) * divided_up(rows, cost.tokens) * split.split;
  const auto at_once = static_cast<int64_t>(multiprocessors * cost.blocks * split.filled);
  const bool shared = split.split > 1 || blocks > multiprocessors;
  const auto k_blocks = static_cast<double>(divided_up(divided_up(k, 64), split.split));
  const double round = k_blocks * (shared ? cost.block : cost.alone) + cost.tile;
  return static_cast<double>(divided_up(blocks, std::max<int64_t>(at_once, 1))) * round +
         split.adding;
}

bool is_wanted(TileShape wanted, const TileCut& cut) {
  const int rows = 128 * cut.slices;
  switch (wanted) {
    case TileShape::kAuto:
      return true;
    case TileShape::kTall:
      return rows > cut.tokens;
    case TileShape::kWide:
      return rows < cut.tokens;
    case TileShape::kSquare:
      return rows == cut.tokens;
  }
  return true;
}

}  // namespace

int64_t padded_tokens(int64_t rows) {
  return divided_up(rows, 8) * 8;
}

TileCut tile_cut(TileShape wanted, bool swiglu, int64_t rows, int64_t n, int64_t k,
                 int multiprocessors) {
  TileCut best;
  double best_time = -1;
  // The first width that takes all rows is the last worth a look.
  int64_t widest = 256;
  for (const int tokens : {128, 64, 32, 16}) {
    if (rows <= tokens) widest = tokens;
  }
  // A shape that cannot be had (a wide tile of few tokens, or of a swiglu) leaves the choice free.
  for (const TileShape shape : {wanted, TileShape::kAuto}) {
    for (const Cost& cost : kCosts) {
      if (cost.tokens > widest || (swiglu && cost.slices == 1)) continue;
      for (const SplitCost& split : kSplits) {
        const TileCut cut{cost.slices, cost.tokens, split.split};
        const int64_t tiles =
            divided_up(n, swiglu ? 128 : 128 * cut.slices) * divided_up(rows, cut.tokens);
        const bool splits =
            cut.tokens <= 128 && divided_up(k, 64) >= 2 * cut.split && tiles < multiprocessors;
        if ((cut.split > 1 && !splits) || !is_wanted(shape, cut)) continue;
        const double time = time_of(cost, split, swiglu, rows, n, k, multiprocessors);
        if (best_time >= 0 && time >= best_time) continue;
        best = cut;
        best_time = time;
      }
    }
    if (best_time >= 0) break;
  }
  return best;
}

}  // namespace reckon::kernels::cuda
