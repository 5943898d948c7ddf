// Memory and operands of the gated delta rule in chunks of 32 rows by AMX tiles
// (gated_delta_rule_fast_amx.cpp, which has the names): matrices as tiles of sums of two bfloat16,
// and their products. To be included by that file alone; only intrinsics and plain types, as in
// matmul_fast_amx.cpp.
#pragma once

#include "kernels/cpu/delta_rule.h"
#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/tiles_amx.h"
#include "kernels/cpu/transpose_avx512.h"

namespace reckon::kernels::cpu::delta_amx {

constexpr int64_t kSide = 16;         // rows of a tile; columns of one of float32
constexpr int64_t kTileFloats = 256;  // of a tile of float32
constexpr int64_t kRowTiles = kDeltaChunk / kSide;

// An operand as tiles of bfloat16: high + low.
struct Split {
  __m512i* high;
  __m512i* low;
};

// A thread's memory. Tiles lie one after another: rows of tiles at a distance of a power of two
// would fall on the same cache lines.
struct Workspace {
  float* states;        // of each value head [key_dim / 16][value_dim / 16] tiles
  float* state;         // that of the value head whose turn it is
  Split state_pairs;    // [key_dim / 32][value_dim / 16] tiles, pairs along key_dim
  float* q;             // [32][key_dim], normalised; rows beyond the chunk's are zeros
  float* k;             //
  Split q_rows;         // [2][key_dim / 32] tiles of bfloat16
  Split k_rows;         //
  Split k_pairs;        // [key_dim / 32][2] tiles: transpose(k), pairs along key_dim
  Split k_columns;      // [key_dim / 16] tiles of transpose(k), 16 of key_dim by 32 rows
  float* kk;            // [2][2] tiles of k . k; then, in rows of 32, what u of a row takes
  float* qk;            // [2][2] tiles of q . k
  Split weights;        // [2] tiles of bfloat16: w * (q . k)
  float* recalled;      // [2][value_dim / 16] tiles of transpose(S) k
  float* outputs;       // [2][value_dim / 16] tiles
  float* updates;       // [32][value_dim]: u
  Split update_pairs;   // [value_dim / 16] tiles of u, pairs along the rows
  Split decayed_pairs;  // [value_dim / 16] tiles of w[last] * u
  float* log_decay;     // [32]: G
  float* beta;          // [32]
};

template <typename T>
T* take(char*& next, int64_t bytes) {
  T* memory = reinterpret_cast<T*>(next);
  next += bytes;
  return memory;
}

inline Split take_split(char*& next, int64_t bytes) {
  auto* high = take<__m512i>(next, bytes);
  return {high, take<__m512i>(next, bytes)};
}

// The memory is fast_delta_scratch_bytes() of one thread; `heads` value heads of a key head.
inline Workspace workspace_in(char* memory, int64_t heads, int64_t key_dim, int64_t value_dim) {
  char* next = memory;
  Workspace w{};
  w.states = take<float>(next, 4 * key_dim * value_dim * heads);
  w.state_pairs = take_split(next, 2 * key_dim * value_dim);
  w.q = take<float>(next, 4 * kDeltaChunk * key_dim);
  w.k = take<float>(next, 4 * kDeltaChunk * key_dim);
  w.q_rows = take_split(next, 2 * kDeltaChunk * key_dim);
  w.k_rows = take_split(next, 2 * kDeltaChunk * key_dim);
  w.k_pairs = take_split(next, 2 * kDeltaChunk * key_dim);
  w.k_columns = take_split(next, 2 * kDeltaChunk * key_dim);
  w.kk = take<float>(next, 4 * kDeltaChunk * kDeltaChunk);
  w.qk = take<float>(next, 4 * kDeltaChunk * kDeltaChunk);
  w.weights = take_split(next, 2 * kDeltaChunk * kDeltaChunk);
  w.recalled = take<float>(next, 4 * kDeltaChunk * value_dim);
  w.outputs = take<float>(next, 4 * kDeltaChunk * value_dim);
  w.updates = take<float>(next, 4 * kDeltaChunk * value_dim);
  w.update_pairs = take_split(next, 2 * kDeltaChunk * value_dim);
  w.decayed_pairs = take_split(next, 2 * kDeltaChunk * value_dim);
  w.log_decay = take<float>(next, 4 * kDeltaChunk);
  w.beta = take<float>(next, 4 * kDeltaChunk);
  return w;
}

// Row r, columns 16 c on, of float32 tiles of which `columns` lie side by side.
template <typename Float>
inline Float* tile_row(Float* tiles, int64_t columns, int64_t r, int64_t c) {
  return tiles + (r / kSide * columns + c) * kTileFloats + r % kSide * kSide;
}

// out = x / sqrt(sum of squares + 1e-6) * factor.
inline void normalise(const float* x, int64_t n, float factor, float* out) {
  __m512 squares = _mm512_setzero_ps();
  for (int64_t i = 0; i < n; i += kSide) {
    const __m512 value = _mm512_loadu_ps(x + i);
    squares = _mm512_fmadd_ps(value, value, squares);
  }
  const float length = _mm512_reduce_add_ps(squares) + 1e-6F;
  const __m512 scale = _mm512_set1_ps(factor / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(length))));
  for (int64_t i = 0; i < n; i += kSide) {
    _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), scale));
  }
}

inline void clear(float* row, int64_t n) {
  for (int64_t i = 0; i < n; i += kSide) _mm512_storeu_ps(row + i, _mm512_setzero_ps());
}

// What bfloat16 leaves of 16 floats: the difference to the nearest one.
inline __m512 left_by_bfloat16(__m512 x) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(to_bfloat16(x, x)));
  return _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)));
}

// Row `at` of the tiles: 32 values in their order.
inline void split_rows(__m512 low, __m512 high, const Split& tiles, int64_t at) {
  tiles.high[at] = to_bfloat16(low, high);
  tiles.low[at] = to_bfloat16(left_by_bfloat16(low), left_by_bfloat16(high));
}

// Row `at` of the tiles: 16 pairs.
inline void split_pairs(__m512 first, __m512 second, const Split& tiles, int64_t at) {
  tiles.high[at] = pairs_of_bfloat16(first, second);
  tiles.low[at] = pairs_of_bfloat16(left_by_bfloat16(first), left_by_bfloat16(second));
}

// [32][key_dim] of float32 to tiles of bfloat16.
inline void to_row_tiles(const float* from, int64_t key_dim, const Split& tiles) {
  const int64_t across = key_dim / kDeltaChunk;
  for (int64_t r = 0; r < kDeltaChunk; ++r) {
    const float* row = from + r * key_dim;
    for (int64_t t = 0; t < across; ++t) {
      split_rows(_mm512_loadu_ps(row + 32 * t), _mm512_loadu_ps(row + 32 * t + 16), tiles,
                 (r / kSide * across + t) * kSide + r % kSide);
    }
  }
}

inline void transpose_tile(const __m512i* from, __m512i* to) {
  __m512i tile[kSide];
  for (int64_t i = 0; i < kSide; ++i) tile[i] = from[i];
  transpose16(tile);
  for (int64_t i = 0; i < kSide; ++i) to[i] = tile[i];
}

// Keys of the chunk in the layouts that products take.
inline void lay_out_keys(const Workspace& w, int64_t key_dim) {
  const int64_t across = key_dim / kDeltaChunk;
  for (int64_t t = 0; t < across; ++t) {
    for (int64_t r = 0; r < kRowTiles; ++r) {
      const int64_t from = (r * across + t) * kSide;
      const int64_t to = (t * kRowTiles + r) * kSide;
      transpose_tile(w.k_rows.high + from, w.k_pairs.high + to);
      transpose_tile(w.k_rows.low + from, w.k_pairs.low + to);
    }
  }
  for (int64_t t = 0; t < key_dim / kSide; ++t) {
    __m512i halves[kRowTiles][kSide];
    for (int64_t r = 0; r < kDeltaChunk; ++r) {
      halves[r / kSide][r % kSide] = _mm512_loadu_si512(w.k + r * key_dim + t * kSide);
    }
    transpose16(halves[0]);
    transpose16(halves[1]);
    for (int64_t i = 0; i < kSide; ++i) {
      split_rows(_mm512_castsi512_ps(halves[0][i]), _mm512_castsi512_ps(halves[1][i]), w.k_columns,
                 t * kSide + i);
    }
  }
}

// Tiles 0 and 1 += two row tiles, `next_rows` rows apart, x a tile of pairs.
inline void multiply_tiles(const Split& rows, int64_t row, int64_t next_rows, const Split& pairs,
                           int64_t pair) {
  _tile_loadd(2, pairs.high + pair, 64);
  _tile_loadd(3, rows.high + row, 64);
  _tile_loadd(4, rows.high + row + next_rows, 64);
  _tile_loadd(5, rows.low + row, 64);
  _tile_loadd(6, rows.low + row + next_rows, 64);
  _tile_loadd(7, pairs.low + pair, 64);
  _tile_dpbf16ps(0, 5, 2);
  _tile_dpbf16ps(1, 6, 2);
  _tile_dpbf16ps(0, 3, 7);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(0, 3, 2);
  _tile_dpbf16ps(1, 4, 2);
}

// out[2][columns] tiles of float32 = rows[2][depth] x pairs[depth][columns].
inline void multiply(const Split& rows, const Split& pairs, int64_t depth, int64_t columns,
                     float* out) {
  for (int64_t c = 0; c < columns; ++c) {
    _tile_zero(0);
    _tile_zero(1);
    for (int64_t t = 0; t < depth; ++t) {
      multiply_tiles(rows, t * kSide, depth * kSide, pairs, (t * columns + c) * kSide);
    }
    _tile_stored(0, out + c * kTileFloats, 64);
    _tile_stored(1, out + (columns + c) * kTileFloats, 64);
  }
}

}  // namespace reckon::kernels::cpu::delta_amx
