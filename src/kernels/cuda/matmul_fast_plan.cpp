#include "kernels/cuda/matmul_fast_plan.h"

#include <algorithm>

namespace reckon::kernels::cuda {
namespace {

constexpr int64_t divided_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// What a block of 64 of K and what a tile beside its blocks cost, in microseconds on an H200,
// fitted to p4 weights over 13 shapes × 8 numbers of rows (matmul_fast_bench sweep). The cut that
// the model picks was 1.7 % slower than the fastest on average. Only proportions matter.
struct Cost {
  int slices, tokens;
  int blocks;           // that share a multiprocessor
  double block, alone;  // alone: where each has a multiprocessor to itself
  double tile;
};
constexpr Cost kCosts[] = {{1, 16, 2, 0.414, 0.350, 0.40},  {1, 32, 2, 0.440, 0.380, 0.68},
                           {1, 64, 2, 0.503, 0.476, 1.54},  {1, 128, 1, 0.359, 0.359, 2.12},
                           {1, 160, 1, 0.394, 0.394, 2.26}, {1, 192, 1, 0.451, 0.451, 2.82},
                           {1, 256, 1, 0.574, 0.574, 5.47}, {2, 16, 2, 0.583, 0.464, 0.99},
                           {2, 32, 2, 0.814, 0.570, 1.60},  {2, 64, 1, 0.459, 0.459, 1.72},
                           {2, 128, 1, 0.654, 0.654, 4.13}};

// Clusters do not fill a chip to the last multiprocessor, and adding up costs time.
struct SplitCost {
  int split;
  double filled, adding;
};
constexpr SplitCost kSplits[] = {{1, 1, 0},      {2, 0.97, 1.6}, {3, 0.75, 2.1},
                                 {4, 0.75, 2.1}, {6, 0.75, 3.5}, {8, 0.75, 3.5}};

double time_of(const Cost& cost, const SplitCost& split, bool swiglu, int64_t rows, int64_t n,
               int64_t k, int multiprocessors) {
  const int64_t tile_rows = swiglu ? 128 : 128 * cost.slices;
  const int64_t blocks = divided_up(n, tile_rows) * divided_up(rows, cost.tokens) * split.split;
  const auto at_once = static_cast<int64_t>(multiprocessors * cost.blocks * split.filled);
  const bool shared = static_cast<double>(blocks) > multiprocessors * split.filled;
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
            cut.tokens <= 128 && divided_up(k, 64) >= 2 * cut.split && tiles < 2 * multiprocessors;
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
