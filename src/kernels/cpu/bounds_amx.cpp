// The loop of bounds_loops.h on AMX tiles: 4 of sums, each the product of one of two and one of
// two, as fast_amx has them. Tiles are full and their rows alike: the time does not depend on
// values.
#include <immintrin.h>

#include "kernels/cpu/bounds_loops.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

// The high halves of 16 floats, twice: 32 finite bfloat16.
void halves_of(const void* floats, uint16_t (&halves)[32]) {
  const auto* words = static_cast<const uint32_t*>(floats);
  for (int i = 0; i < 32; ++i) halves[i] = static_cast<uint16_t>(words[i % 16] >> 16);
}

}  // namespace

double dot_bf16_amx(const void* x, const void* y, int64_t iterations) {
  alignas(64) uint16_t a[32], b[32];
  halves_of(x, a);
  halves_of(y, b);
  stores_before_tiles();
  configure_tiles();
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, a, 0);
  _tile_loadd(5, b, 0);
  _tile_loadd(6, b, 0);
  _tile_loadd(7, a, 0);
  for (int64_t i = 0; i < iterations; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[4][256];
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_stored(2, sums[2], 64);
  _tile_stored(3, sums[3], 64);
  release_tiles();
  stores_before_tiles();
  double total = 0;
  for (const auto& tile : sums) {
    for (const float sum : tile) total += static_cast<double>(sum);
  }
  return total;
}

}  // namespace reckon::kernels::cpu
