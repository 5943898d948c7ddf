// AMX tile registers, 8 of up to 16 rows of 64 bytes, and bfloat16 to fill them with.
//
// For files compiled for AMX alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace reckon::kernels::cpu {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

// Registers with these rows, of this thread, until release_tiles(). Not by _tile_loadconfig(): to
// g++ 12 that reads 8 bytes, so that it leaves out the stores of the others.
inline void configure_tiles(const uint8_t (&rows)[8]) {
  TileConfig config{};
  config.palette = 1;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = 64;
    config.rows[t] = rows[t];
  }
  asm volatile("ldtilecfg %0" : : "m"(config));
}

inline void configure_tiles() {
  configure_tiles({16, 16, 16, 16, 16, 16, 16, 16});
}

// Threads that hold no tiles are cheaper to switch.
inline void release_tiles() {
  asm volatile("tilerelease");
}

// Registers 0 to 3, the sums of a step.
inline void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// Two pairs of tiles of sums in memory: `next` bytes from one to the other of a pair, `next_pair`
// from pair to pair (twice `next` where all four lie one behind the other).
inline void store_sums(char* sums, int64_t next, int64_t next_pair) {
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + next, 64);
  _tile_stored(2, sums + next_pair, 64);
  _tile_stored(3, sums + next_pair + next, 64);
}

// What a step starts with: the sums so far, or zeros.
inline void start_sums(bool adds, const char* sums, int64_t next, int64_t next_pair) {
  if (!adds) return zero_sums();
  _tile_loadd(0, sums, 64);
  _tile_loadd(1, sums + next, 64);
  _tile_loadd(2, sums + next_pair, 64);
  _tile_loadd(3, sums + next_pair + next, 64);
}

// The tile loads of g++ 12 do not say that they read memory.
inline void stores_before_tiles() {
  asm volatile("" : : : "memory");
}

// 32 bfloat16 in the order of the floats.
inline __m512i to_bfloat16(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Lane j: a[j] in the low half, b[j] in the high one.
inline __m512i pairs_of_bfloat16(__m512 a, __m512 b) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, to_bfloat16(a, b));
}

}  // namespace
}  // namespace reckon::kernels::cpu
