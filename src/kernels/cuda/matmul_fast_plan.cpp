#include "kernels/cuda/matmul_fast_plan.h"

#include <algorithm>

namespace reckon::kernels::cuda {
namespace {

constexpr int64_t divided_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// Clock cycles of a multiprocessor that a cut takes, roughly: whole waves of tiles, each as slow as
// the slowest of the tensor cores, the weight stream and the unpacking, plus what a tile costs
// beside its k loop. The constants are of an H200; only their proportions matter.
double cycles(const TileCut& cut, TileType type, bool swiglu, int64_t rows, int64_t n, int64_t k,
              int multiprocessors) {
  const int64_t tile_rows = swiglu ? 128 : 128 * cut.slices;
  const int64_t tiles = divided_up(n, tile_rows) * divided_up(rows, cut.tokens) * cut.split;
  const int64_t a_round = std::min<int64_t>(tiles, multiprocessors);
  const int64_t waves = divided_up(tiles, multiprocessors);
  const double tensor = 8.0 * cut.slices * std::max(cut.tokens / 2, 16);
  const double unpack = 150.0 * cut.slices;
  const double bytes = 8.0 * cut.slices * static_cast<double>(tile_bytes(type)) +
                       cut.tokens * 128.0 / 4;  // activations come from the cache
  const double stream = bytes * static_cast<double>(a_round) / (16.0 * multiprocessors);
  const double block = std::max({tensor, unpack, stream, bytes / 40});
  const double blocks = static_cast<double>(divided_up(divided_up(k, 64), cut.split));
  const double epilogue = 16.0 * cut.slices * cut.tokens + (cut.split > 1 ? 3000 : 0);
  return static_cast<double>(waves) * (blocks * block + epilogue) + 2000;
}

bool is_wanted(FastTile wanted, const TileCut& cut) {
  const int rows = 128 * cut.slices;
  switch (wanted) {
    case FastTile::kAuto:
      return true;
    case FastTile::kTall:
      return rows > cut.tokens;
    case FastTile::kWide:
      return rows < cut.tokens;
    case FastTile::kSquare:
      return rows == cut.tokens;
  }
  return true;
}

}  // namespace

int64_t padded_tokens(int64_t rows) {
  for (const int64_t tokens : {16, 32, 64, 128}) {
    if (rows <= tokens) return tokens;
  }
  return divided_up(rows, 256) * 256;
}

TileCut tile_cut(FastTile wanted, TileType type, bool swiglu, int64_t rows, int64_t n, int64_t k,
                 int multiprocessors) {
  TileCut best;
  double best_cycles = -1;
  const int64_t padded = padded_tokens(rows);
  // A shape that cannot be had (a wide tile of few tokens, or of a swiglu) leaves the choice free.
  for (const FastTile shape : {wanted, FastTile::kAuto}) {
    for (const int slices : {1, 2}) {
      if (swiglu && slices == 1) continue;
      for (const int tokens : {16, 32, 64, 128, 256}) {
        if (tokens > padded || (tokens == 256 && slices == 2)) continue;
        for (const int split : {1, 2, 4, 8}) {
          if (split > 1 && (tokens == 256 || divided_up(k, 64) < 2 * split)) continue;
          const TileCut cut{slices, tokens, split};
          if (!is_wanted(shape, cut)) continue;
          const double time = cycles(cut, type, swiglu, rows, n, k, multiprocessors);
          if (best_cycles < 0 || time < best_cycles) {
            best = cut;
            best_cycles = time;
          }
        }
      }
    }
    if (best_cycles >= 0) break;
  }
  return best;
}

}  // namespace reckon::kernels::cuda
