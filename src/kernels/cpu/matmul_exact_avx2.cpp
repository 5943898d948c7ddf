// Exact matmuls with AVX2, FMA and F16C, in the canonical order (canonical_order.h).
//
// Shaped for one stream over the weights, whatever the number of rows:
//  - up to kDirectRows activation rows: 8 weight rows at a time are unpacked from the file's blocks
//    into registers and multiplied with every activation row. Two weight rows share a register, one
//    in each half, so that two rounds of horizontal adds leave the 8 dots of a block in the 8 lanes
//    of one register: one conversion and one fma for 8 outputs.
//  - more rows: activations are interleaved by 8 rows, a tile of weights is unpacked once, and each
//    multiply-add of a broadcast pair of weight codes serves 8 rows in 8 lanes, without any
//    horizontal add. Rows are padded with zeros to 8; a padded row is never stored.
// The block's dot is an exact integer either way, so both give the same bits.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX2 and could be the copy that a slower machine runs.
#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_avx2.hash.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

int64_t divide_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

struct Job {
  const MatmulArgs* args;
  char* activations;
  char* weights;  // unpacked tiles, one buffer a thread
  uint64_t weights_stride;
  int64_t blocks;      // of a row, integer formats
  int64_t columns;     // of a row of activations in memory, float formats
  const float* x;      // their rows
  int64_t row_stride;  // bytes between weight rows in the file
};

const char* weight_row(const Job& job, int64_t j) {
  return static_cast<const char*>(job.args->weight) + j * job.row_stride;
}

__m256i load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

__m128i load_half(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

__m256i load_twice(const void* p) {
  return _mm256_broadcastsi128_si256(load_half(p));
}

void store(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}

// sum += pairwise dots of a and b. The addition is spelled out because g++ 12 regroups integer
// sums: it computed every product of a block first and spent half of the time on spilling them.
void add_dots(__m256i& sum, __m256i a, __m256i b) {
  const __m256i products = _mm256_madd_epi16(a, b);
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products));
}

// ---------------------------------------------------------------------------------------------
// Integer formats. Each says in which order the codes of a block are easiest to unpack; activation
// codes are put in the same order.

// 8 halves, of which the low 16 bits of each lane are used.
__m256 halves_to_float(__m256i lanes) {
  const __m256i low = _mm256_and_si256(lanes, _mm256_set1_epi32(0xffff));
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

float half_to_float(const void* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return _cvtsh_ss(bits);
}

// Codes in their natural order.
struct Q8 {
  static constexpr bool kHasMinimum = false;
  static constexpr int64_t kBytes = sizeof(BlockQ8_0);
  static constexpr int64_t kCodesAt = 2;

  // Part i is weight row i: 32 codes in 2 registers.
  static constexpr int kParts = 8;
  static constexpr int kRegisters = 2;

  static void unpack(const char* rows, int64_t stride, int i, __m256i* u) {
    const char* codes = rows + i * stride + kCodesAt;
    u[0] = _mm256_cvtepi8_epi16(load_half(codes));
    u[1] = _mm256_cvtepi8_epi16(load_half(codes + 16));
  }

  static void load_codes(const int16_t* codes, __m256i* x) {
    x[0] = load(codes);
    x[1] = load(codes + 16);
  }

  // Lane i: the dot of weight row i, from the sums of each part.
  static __m256i combine(const __m256i* s) {
    const __m256i s0123 =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
    const __m256i s4567 =
        _mm256_hadd_epi32(_mm256_hadd_epi32(s[4], s[5]), _mm256_hadd_epi32(s[6], s[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(s0123, s4567, 0x20),
                            _mm256_permute2x128_si256(s0123, s4567, 0x31));
  }

  static void unpack_block(const char* block, int16_t* codes, float* scale, float* /*minimum*/) {
    store(codes, _mm256_cvtepi8_epi16(load_half(block + kCodesAt)));
    store(codes + 16, _mm256_cvtepi8_epi16(load_half(block + kCodesAt + 16)));
    *scale = half_to_float(block);
  }

  static void order(__m256i& /*low*/, __m256i& /*high*/) {}
};

// Nibbles come out of 16-bit words by shifts: bytes 0, 2, ... low (elements 0, 2, ... 14), the same
// bytes high (16, 18, ... 30), then bytes 1, 3, ... low and high (1, 3, ... and 17, 19, ...).
struct Q4 {
  static constexpr bool kHasMinimum = true;
  static constexpr int64_t kBytes = sizeof(BlockQ4_1);
  static constexpr int64_t kCodesAt = 4;

  // Part i is weight row i in the low half of registers and row i + 4 in the high half: four runs.
  static constexpr int kParts = 4;
  static constexpr int kRegisters = 4;

  static void unpack(const char* rows, int64_t stride, int i, __m256i* u) {
    const __m256i nibble = _mm256_set1_epi16(15);
    const char* codes = rows + i * stride + kCodesAt;
    const __m256i w = _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(codes)),
                                              load_half(codes + 4 * stride), 1);
    u[0] = _mm256_and_si256(w, nibble);
    u[1] = _mm256_and_si256(_mm256_srli_epi16(w, 4), nibble);
    u[2] = _mm256_and_si256(_mm256_srli_epi16(w, 8), nibble);
    u[3] = _mm256_srli_epi16(w, 12);
  }

  static void load_codes(const int16_t* codes, __m256i* x) {
    for (int i = 0; i < 4; ++i) x[i] = load_twice(codes + 8 * i);
  }

  static __m256i combine(const __m256i* s) {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(s[0], s[1]), _mm256_hadd_epi32(s[2], s[3]));
  }

  static void unpack_block(const char* block, int16_t* codes, float* scale, float* minimum) {
    const __m256i nibble = _mm256_set1_epi16(15);
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    const __m256i w = _mm256_srlv_epi32(load_twice(block + kCodesAt), shifts);
    store(codes, _mm256_and_si256(w, nibble));
    store(codes + 16, _mm256_and_si256(_mm256_srli_epi16(w, 8), nibble));
    *scale = half_to_float(block);
    *minimum = half_to_float(block + 2);
  }

  // From elements 0...15 and 16...31 to the four runs.
  static void order(__m256i& low, __m256i& high) {
    const __m256i even_odd = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
                                              0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    const __m256i a = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(low, even_odd), 0xd8);
    const __m256i b = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(high, even_odd), 0xd8);
    low = _mm256_permute2x128_si256(a, b, 0x20);
    high = _mm256_permute2x128_si256(a, b, 0x31);
  }
};

int32_t largest_lane(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
  return _mm_cvtsi128_si32(m);
}

int32_t sum_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
  return _mm_cvtsi128_si32(s);
}

// The codes of one group in the format's order, with scale and scaled sum.
struct Quantised {
  __m256i low, high;
  float scale, sum;
};

template <typename Format>
Quantised quantise(const float* x) {
  const __m256i mask = _mm256_set1_epi32(kMagnitudeMask);
  const __m256 v0 = _mm256_loadu_ps(x);
  const __m256 v1 = _mm256_loadu_ps(x + 8);
  const __m256 v2 = _mm256_loadu_ps(x + 16);
  const __m256 v3 = _mm256_loadu_ps(x + 24);
  const __m256i m01 = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(v0), mask),
                                       _mm256_and_si256(_mm256_castps_si256(v1), mask));
  const __m256i m23 = _mm256_max_epi32(_mm256_and_si256(_mm256_castps_si256(v2), mask),
                                       _mm256_and_si256(_mm256_castps_si256(v3), mask));
  const int32_t magnitude = largest_lane(_mm256_max_epi32(m01, m23));
  Quantised out{_mm256_setzero_si256(), _mm256_setzero_si256(), 0, 0};
  if (magnitude >= kInfinityBits) {
    out.scale = out.sum = __builtin_nanf("");
    return out;
  }
  if (magnitude < kSmallestMagnitude) return out;
  float largest;
  __builtin_memcpy(&largest, &magnitude, sizeof largest);
  const __m256 inverse = _mm256_set1_ps(kLargestCode / largest);
  const __m256i c0 = _mm256_cvtps_epi32(_mm256_mul_ps(v0, inverse));
  const __m256i c1 = _mm256_cvtps_epi32(_mm256_mul_ps(v1, inverse));
  const __m256i c2 = _mm256_cvtps_epi32(_mm256_mul_ps(v2, inverse));
  const __m256i c3 = _mm256_cvtps_epi32(_mm256_mul_ps(v3, inverse));
  out.low = _mm256_permute4x64_epi64(_mm256_packs_epi32(c0, c1), 0xd8);
  out.high = _mm256_permute4x64_epi64(_mm256_packs_epi32(c2, c3), 0xd8);
  out.scale = largest / kLargestCode;
  if (Format::kHasMinimum) {
    const __m256i sums = _mm256_add_epi32(_mm256_add_epi32(c0, c1), _mm256_add_epi32(c2, c3));
    out.sum = out.scale * static_cast<float>(sum_lanes(sums));
  }
  Format::order(out.low, out.high);
  return out;
}

// Task: one activation row, for the direct path.
template <typename Format>
void quantise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  auto* groups = reinterpret_cast<RowGroup*>(job.activations) + row * job.blocks;
  for (int64_t b = 0; b < job.blocks; ++b) {
    const Quantised q = quantise<Format>(job.args->x + row * job.args->k + b * kGroup);
    store(groups[b].codes, q.low);
    store(groups[b].codes + 16, q.high);
    groups[b].scale = q.scale;
    groups[b].sum = q.sum;
  }
}

// out[i][r] = in[r][i] for 8 x 8 lanes of 32 bits.
void transpose8(const __m256i* in, void* out) {
  __m256i a[8];
  __m256i b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi64(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi64(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi64(a[4 * i + 1], a[4 * i + 3]);
  }
  auto* rows = static_cast<__m256i*>(out);
  for (int i = 0; i < 4; ++i) {
    store(rows + i, _mm256_permute2x128_si256(b[i], b[i + 4], 0x20));
    store(rows + i + 4, _mm256_permute2x128_si256(b[i], b[i + 4], 0x31));
  }
}

// Task: 8 activation rows, for the tiled path.
template <typename Format>
void quantise_tile(void* argument, int64_t tile, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  auto* groups = reinterpret_cast<TileGroup*>(job.activations) + tile * job.blocks;
  const int64_t first = tile * kTileRows;
  const int64_t rows = smaller(kTileRows, job.args->rows - first);
  for (int64_t b = 0; b < job.blocks; ++b) {
    __m256i low[kTileRows];
    __m256i high[kTileRows];
    for (int64_t r = 0; r < kTileRows; ++r) {
      Quantised q{_mm256_setzero_si256(), _mm256_setzero_si256(), 0, 0};
      if (r < rows) q = quantise<Format>(job.args->x + (first + r) * job.args->k + b * kGroup);
      low[r] = q.low;
      high[r] = q.high;
      groups[b].scales[r] = q.scale;
      groups[b].sums[r] = q.sum;
    }
    transpose8(low, groups[b].codes[0]);
    transpose8(high, groups[b].codes[8]);
  }
}

// Weight rows of one task of the direct path, and how far ahead weights are fetched.
constexpr int64_t kDirectWeightRows = 8;

// The stream over the weights crosses a page every 4 KB, where hardware prefetchers stop: fetching
// the next 8 rows by hand made a whole decode step of SmolLM2-135M 1.6 times as fast on a Xeon
// whose memory gives one core 13 GB/s. Two, three or four groups ahead were no better, nor was
// fetching into the first-level cache.
void prefetch(const char* from, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64) _mm_prefetch(from + line, _MM_HINT_T1);
}

template <typename Format>
__m256i part_dots(const __m256i* u, const __m256i* x) {
  __m256i sum = _mm256_madd_epi16(u[0], x[0]);
  for (int i = 1; i < Format::kRegisters; ++i) add_dots(sum, u[i], x[i]);
  return sum;
}

// The dots of one block of 8 weight rows with kRows activation rows `row_groups` apart.
template <typename Format, int kRows>
void block_dots(const char* rows, int64_t stride, const RowGroup* groups, int64_t row_groups,
                __m256i* dots) {
  constexpr int kParts = Format::kParts;
  constexpr int kRegisters = Format::kRegisters;
  __m256i x[kRegisters];
  __m256i sums[kParts];
  if (kRows == 1) {  // multiplied while in registers
    Format::load_codes(groups->codes, x);
    for (int i = 0; i < kParts; ++i) {
      __m256i u[kRegisters];
      Format::unpack(rows, stride, i, u);
      sums[i] = part_dots<Format>(u, x);
    }
    dots[0] = Format::combine(sums);
    return;
  }
  __m256i u[kParts * kRegisters];
  for (int i = 0; i < kParts; ++i) Format::unpack(rows, stride, i, u + i * kRegisters);
  for (int r = 0; r < kRows; ++r) {
    Format::load_codes(groups[r * row_groups].codes, x);
    for (int i = 0; i < kParts; ++i) sums[i] = part_dots<Format>(u + i * kRegisters, x);
    dots[r] = Format::combine(sums);
  }
}

// 8 weight rows, kRows activation rows (of `blocks` groups each); out[r] holds 8 outputs.
template <typename Format, int kRows>
void direct_dots(const char* rows, int64_t stride, const RowGroup* groups, int64_t blocks,
                 __m256* out) {
  const __m256i offsets = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                             _mm256_set1_epi32(static_cast<int>(stride)));
  __m256 totals[kRows];
  for (int r = 0; r < kRows; ++r) totals[r] = _mm256_setzero_ps();
  for (int64_t first = 0; first < blocks; first += kSegmentBlocks) {
    const int64_t end = smaller(first + kSegmentBlocks, blocks);
    __m256 sums[kRows];
    for (int r = 0; r < kRows; ++r) sums[r] = _mm256_setzero_ps();
    for (int64_t b = first; b < end; ++b) {
      const char* block = rows + b * Format::kBytes;
      prefetch(rows + kDirectWeightRows * stride + b * kDirectWeightRows * Format::kBytes,
               kDirectWeightRows * Format::kBytes);
      __m256i dots[kRows];
      block_dots<Format, kRows>(block, stride, groups + b, blocks, dots);
      // q8_0: the scale and two codes; q4_1: scale and minimum.
      const __m256i heads = _mm256_i32gather_epi32(reinterpret_cast<const int*>(block), offsets, 1);
      const __m256 scale = halves_to_float(heads);
      const __m256 minimum =
          Format::kHasMinimum ? halves_to_float(_mm256_srli_epi32(heads, 16)) : _mm256_setzero_ps();
      for (int r = 0; r < kRows; ++r) {
        const RowGroup& group = groups[r * blocks + b];
        sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r]),
                                  _mm256_mul_ps(scale, _mm256_broadcast_ss(&group.scale)), sums[r]);
        if (Format::kHasMinimum) {
          sums[r] = _mm256_fmadd_ps(minimum, _mm256_broadcast_ss(&group.sum), sums[r]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) totals[r] = _mm256_add_ps(totals[r], sums[r]);
  }
  for (int r = 0; r < kRows; ++r) out[r] = totals[r];
}

// Task: 8 weight rows. The last group of a matrix reaches back to have 8, and stores only its own;
// a matrix of fewer than 8 rows goes one by one, each row standing for all 8.
template <typename Format, int kRows>
void multiply_direct(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  const auto* groups = reinterpret_cast<const RowGroup*>(job.activations);
  const int64_t first = task * kDirectWeightRows;
  const int64_t end = smaller(first + kDirectWeightRows, args.n);
  const bool alone = args.n < kDirectWeightRows;
  for (int64_t j = first; j < end; j = alone ? j + 1 : end) {
    const int64_t start = alone ? j : smaller(first, args.n - kDirectWeightRows);
    __m256 outputs[kRows];
    direct_dots<Format, kRows>(weight_row(job, start), alone ? 0 : job.row_stride, groups,
                               job.blocks, outputs);
    for (int r = 0; r < kRows; ++r) {
      float* out = args.out + r * args.n;
      if (!alone && start == first) {
        _mm256_storeu_ps(out + start, outputs[r]);
        continue;
      }
      float lanes[8];
      _mm256_storeu_ps(lanes, outputs[r]);
      const int64_t stop = alone ? j + 1 : end;
      for (int64_t i = j; i < stop; ++i) out[i] = lanes[i - start];
    }
  }
}

// 4 weight rows x kTiles tiles of 8 activation rows: totals[t][w] holds 8 rows of weight row w.
// Two tiles make 8 integer accumulators and 6 loads for 16 instructions of arithmetic, which keeps
// all three vector ports busy; one tile was bound by the front end, at two thirds of the speed.
template <bool kHasMinimum, int kTiles>
void panel_dots(const PanelBlock* panel, const TileGroup* tiles, int64_t blocks,
                __m256 (*totals)[kPanelRows]) {
  for (int t = 0; t < kTiles; ++t) {
    for (int w = 0; w < kPanelRows; ++w) totals[t][w] = _mm256_setzero_ps();
  }
  for (int64_t first = 0; first < blocks; first += kSegmentBlocks) {
    const int64_t end = smaller(first + kSegmentBlocks, blocks);
    __m256 sums[kTiles][kPanelRows];
    for (int t = 0; t < kTiles; ++t) {
      for (int w = 0; w < kPanelRows; ++w) sums[t][w] = _mm256_setzero_ps();
    }
    for (int64_t b = first; b < end; ++b) {
      const PanelBlock& weights = panel[b];
      __m256i dots[kTiles][kPanelRows];
      for (int t = 0; t < kTiles; ++t) {
        for (int w = 0; w < kPanelRows; ++w) dots[t][w] = _mm256_setzero_si256();
      }
#pragma GCC unroll 16
      for (int p = 0; p < 16; ++p) {
        __m256i x[kTiles];
        for (int t = 0; t < kTiles; ++t) x[t] = load(tiles[t * blocks + b].codes[p]);
        for (int w = 0; w < kPanelRows; ++w) {
          int32_t pair;
          __builtin_memcpy(&pair, weights.codes[w] + 2 * p, sizeof pair);
          const __m256i pairs = _mm256_set1_epi32(pair);
          for (int t = 0; t < kTiles; ++t) add_dots(dots[t][w], pairs, x[t]);
        }
      }
      for (int t = 0; t < kTiles; ++t) {
        const TileGroup& group = tiles[t * blocks + b];
        const __m256 scales = _mm256_loadu_ps(group.scales);
        for (int w = 0; w < kPanelRows; ++w) {
          const __m256 scale = _mm256_mul_ps(_mm256_broadcast_ss(&weights.scales[w]), scales);
          sums[t][w] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[t][w]), scale, sums[t][w]);
          if (kHasMinimum) {
            sums[t][w] = _mm256_fmadd_ps(_mm256_broadcast_ss(&weights.minima[w]),
                                         _mm256_loadu_ps(group.sums), sums[t][w]);
          }
        }
      }
    }
    for (int t = 0; t < kTiles; ++t) {
      for (int w = 0; w < kPanelRows; ++w) {
        totals[t][w] = _mm256_add_ps(totals[t][w], sums[t][w]);
      }
    }
  }
}

// Stores totals[w][r] to out[r * n + w] for r < rows and w < weights.
void store_panel(const __m256* totals, float* out, int64_t n, int64_t rows, int64_t weights) {
  const __m256 a = _mm256_unpacklo_ps(totals[0], totals[1]);
  const __m256 b = _mm256_unpackhi_ps(totals[0], totals[1]);
  const __m256 c = _mm256_unpacklo_ps(totals[2], totals[3]);
  const __m256 d = _mm256_unpackhi_ps(totals[2], totals[3]);
  const __m256 r0 = _mm256_shuffle_ps(a, c, 0x44);
  const __m256 r1 = _mm256_shuffle_ps(a, c, 0xee);
  const __m256 r2 = _mm256_shuffle_ps(b, d, 0x44);
  const __m256 r3 = _mm256_shuffle_ps(b, d, 0xee);
  const __m128 values[kTileRows] = {_mm256_castps256_ps128(r0),   _mm256_castps256_ps128(r1),
                                    _mm256_castps256_ps128(r2),   _mm256_castps256_ps128(r3),
                                    _mm256_extractf128_ps(r0, 1), _mm256_extractf128_ps(r1, 1),
                                    _mm256_extractf128_ps(r2, 1), _mm256_extractf128_ps(r3, 1)};
  for (int64_t r = 0; r < rows; ++r) {
    if (weights == kPanelRows) {
      _mm_storeu_ps(out + r * n, values[r]);
    } else {
      float lanes[kPanelRows];
      _mm_storeu_ps(lanes, values[r]);
      for (int64_t w = 0; w < weights; ++w) out[r * n + w] = lanes[w];
    }
  }
}

// The tiled path of integer formats, as tiles() below wants it.
template <typename Format>
struct IntegerTiles {
  static int64_t tile_bytes(const Job& job) {
    return kWeightTile / kPanelRows * job.blocks * static_cast<int64_t>(sizeof(PanelBlock));
  }

  static void unpack(const Job& job, int64_t first_row, int64_t rows, char* memory) {
    auto* panel = reinterpret_cast<PanelBlock*>(memory);
    for (int64_t j = 0; j < rows; ++j) {
      PanelBlock* blocks = panel + j / kPanelRows * job.blocks;
      const char* row = weight_row(job, first_row + j);
      const int64_t w = j % kPanelRows;
      for (int64_t b = 0; b < job.blocks; ++b) {
        Format::unpack_block(row + b * Format::kBytes, blocks[b].codes[w], &blocks[b].scales[w],
                             &blocks[b].minima[w]);
      }
    }
  }

  static void multiply(const Job& job, const char* memory, int64_t first_weight, int64_t weights,
                       int64_t first_row, int64_t rows) {
    const auto* panels = reinterpret_cast<const PanelBlock*>(memory);
    const auto* tiles = reinterpret_cast<const TileGroup*>(job.activations);
    const int64_t n = job.args->n;
    for (int64_t r = 0; r < rows; r += 2 * kTileRows) {
      const TileGroup* tile = tiles + (first_row + r) / kTileRows * job.blocks;
      const int64_t taken = rows - r > kTileRows ? 2 : 1;
      for (int64_t w = 0; w < weights; w += kPanelRows) {
        const PanelBlock* panel = panels + w / kPanelRows * job.blocks;
        float* out = job.args->out + (first_row + r) * n + first_weight + w;
        __m256 totals[2][kPanelRows];
        if (taken == 2) {
          panel_dots<Format::kHasMinimum, 2>(panel, tile, job.blocks, totals);
        } else {
          panel_dots<Format::kHasMinimum, 1>(panel, tile, job.blocks, totals);
        }
        for (int64_t t = 0; t < taken; ++t) {
          store_panel(totals[t], out + t * kTileRows * n, n,
                      smaller(kTileRows, rows - r - t * kTileRows),
                      smaller(kPanelRows, weights - w));
        }
      }
    }
  }
};

// ---------------------------------------------------------------------------------------------
// Float formats: how 16 weights become two registers of float32.

struct Lanes {
  __m256 low, high;
};

struct F32 {
  static constexpr bool kFromFile = true;
  static constexpr int64_t kBytes = 4;
  static Lanes load16(const char* p) {
    const auto* values = reinterpret_cast<const float*>(p);
    return {_mm256_loadu_ps(values), _mm256_loadu_ps(values + 8)};
  }
};

// A tile that has been converted.
struct Tile32 : F32 {
  static constexpr bool kFromFile = false;
};

struct F16 {
  static constexpr bool kFromFile = true;
  static constexpr int64_t kBytes = 2;
  static Lanes load16(const char* p) {
    return {_mm256_cvtph_ps(load_half(p)), _mm256_cvtph_ps(load_half(p + 16))};
  }
};

struct BF16 {
  static constexpr bool kFromFile = true;
  static constexpr int64_t kBytes = 2;
  static __m256 widen(__m128i halves) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static Lanes load16(const char* p) { return {widen(load_half(p)), widen(load_half(p + 16))}; }
};

// The last `count` < 16 weights, filled up with zeros.
template <typename Format>
Lanes load_tail(const char* p, int64_t count) {
  alignas(32) char buffer[kFloatLanes * Format::kBytes] = {};
  __builtin_memcpy(buffer, p, static_cast<uint64_t>(count * Format::kBytes));
  return Format::load16(buffer);
}

float fold(Lanes lanes) {
  const __m256 eight = _mm256_add_ps(lanes.low, lanes.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// kWeights weight rows x kRows activation rows of `columns` (filled up) elements; the weights are k
// long. Writes out[r * out_stride + w].
template <typename Format, int kWeights, int kRows>
void float_dots(const char* weights, int64_t stride, const float* x, int64_t columns, int64_t k,
                float* out, int64_t out_stride) {
  Lanes totals[kWeights][kRows];
  for (auto& row : totals) {
    for (auto& lanes : row) lanes = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  for (int64_t first = 0; first < columns; first += kSegment) {
    const int64_t end = smaller(first + kSegment, columns);
    Lanes sums[kWeights][kRows];
    for (auto& row : sums) {
      for (auto& lanes : row) lanes = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    }
    const auto step = [&](int64_t i, const auto& load_weights) {
      // One half after the other: all at once would take more than 16 registers.
      Lanes w[kWeights];
      for (int j = 0; j < kWeights; ++j) {
        const char* row = weights + j * stride;
        if (Format::kFromFile) prefetch(row + kDirectWeightRows * stride + i * Format::kBytes, 1);
        w[j] = load_weights(row, i);
      }
      for (int r = 0; r < kRows; ++r) {
        const __m256 low = _mm256_loadu_ps(x + r * columns + i);
        for (int j = 0; j < kWeights; ++j) {
          sums[j][r].low = _mm256_fmadd_ps(w[j].low, low, sums[j][r].low);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        const __m256 high = _mm256_loadu_ps(x + r * columns + i + 8);
        for (int j = 0; j < kWeights; ++j) {
          sums[j][r].high = _mm256_fmadd_ps(w[j].high, high, sums[j][r].high);
        }
      }
    };
    int64_t i = first;
    for (; i + kFloatLanes <= smaller(end, k); i += kFloatLanes) {
      step(i,
           [](const char* row, int64_t at) { return Format::load16(row + at * Format::kBytes); });
    }
    if (i < end) {
      step(i, [&](const char* row, int64_t at) {
        return load_tail<Format>(row + at * Format::kBytes, k - at);
      });
    }
    for (int j = 0; j < kWeights; ++j) {
      for (int r = 0; r < kRows; ++r) {
        totals[j][r].low = _mm256_add_ps(totals[j][r].low, sums[j][r].low);
        totals[j][r].high = _mm256_add_ps(totals[j][r].high, sums[j][r].high);
      }
    }
  }
  for (int j = 0; j < kWeights; ++j) {
    for (int r = 0; r < kRows; ++r) out[r * out_stride + j] = fold(totals[j][r]);
  }
}

// All weight rows x kRows activation rows, in blocks that fit the registers.
template <typename Format, int kRows>
void float_columns(const char* weights, int64_t stride, int64_t weight_rows, const float* x,
                   int64_t columns, int64_t k, float* out, int64_t n) {
  int64_t j = 0;
  if constexpr (kRows == 1) {
    for (; j + 4 <= weight_rows; j += 4) {
      float_dots<Format, 4, 1>(weights + j * stride, stride, x, columns, k, out + j, n);
    }
  }
  for (; j + 2 <= weight_rows; j += 2) {
    float_dots<Format, 2, kRows>(weights + j * stride, stride, x, columns, k, out + j, n);
  }
  if (j < weight_rows) {
    float_dots<Format, 1, kRows>(weights + j * stride, stride, x, columns, k, out + j, n);
  }
}

// The activation rows of a block stay in the first-level cache while the weight rows pass.
template <typename Format>
void float_rows(const char* weights, int64_t stride, int64_t weight_rows, const float* x,
                int64_t columns, int64_t k, int64_t rows, float* out, int64_t n) {
  int64_t r = 0;
  for (; r + 3 <= rows; r += 3) {
    float_columns<Format, 3>(weights, stride, weight_rows, x + r * columns, columns, k, out + r * n,
                             n);
  }
  if (rows - r == 2) {
    float_columns<Format, 2>(weights, stride, weight_rows, x + r * columns, columns, k, out + r * n,
                             n);
  }
  if (rows - r == 1) {
    float_columns<Format, 1>(weights, stride, weight_rows, x + r * columns, columns, k, out + r * n,
                             n);
  }
}

// Task: 8 weight rows, straight from the file.
template <typename Format>
void multiply_float_direct(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  const int64_t first = task * kDirectWeightRows;
  float_rows<Format>(weight_row(job, first), job.row_stride,
                     smaller(kDirectWeightRows, args.n - first), job.x, job.columns, args.k,
                     args.rows, args.out + first, args.n);
}

// Task: one activation row, copied and filled up with zeros.
void pad_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  auto* out = reinterpret_cast<float*>(job.activations) + row * job.columns;
  const float* x = job.args->x + row * job.args->k;
  for (int64_t i = 0; i < job.columns; ++i) out[i] = i < job.args->k ? x[i] : 0.0F;
}

// The tiled path of float formats: a tile is converted to float32 once.
template <typename Format>
struct FloatTiles {
  static int64_t tile_bytes(const Job& job) {
    return kWeightTile * job.columns * static_cast<int64_t>(sizeof(float));
  }

  static void unpack(const Job& job, int64_t first_row, int64_t rows, char* memory) {
    const int64_t k = job.args->k;
    for (int64_t j = 0; j < rows; ++j) {
      const char* row = weight_row(job, first_row + j);
      float* out = reinterpret_cast<float*>(memory) + j * job.columns;
      for (int64_t i = 0; i < job.columns; i += kFloatLanes) {
        const char* from = row + i * Format::kBytes;
        const Lanes lanes =
            i + kFloatLanes <= k ? Format::load16(from) : load_tail<Format>(from, k - i);
        _mm256_storeu_ps(out + i, lanes.low);
        _mm256_storeu_ps(out + i + 8, lanes.high);
      }
    }
  }

  static void multiply(const Job& job, const char* memory, int64_t first_weight, int64_t weights,
                       int64_t first_row, int64_t rows) {
    const int64_t stride = job.columns * static_cast<int64_t>(sizeof(float));
    float_rows<Tile32>(memory, stride, weights, job.x + first_row * job.columns, job.columns,
                       job.columns, rows, job.args->out + first_row * job.args->n + first_weight,
                       job.args->n);
  }
};

// ---------------------------------------------------------------------------------------------
// Tiles. Task: a band of weight tiles (a single one for TileOrder::kRow): unpack them, then take
// every token tile across the band.
template <typename Tiles, int64_t kTiles>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  char* memory = job.weights + static_cast<uint64_t>(thread) * job.weights_stride;
  const int64_t tile_bytes = Tiles::tile_bytes(job);
  const int64_t first = task * kTiles * kWeightTile;
  const int64_t end = smaller(first + kTiles * kWeightTile, args.n);
  for (int64_t j = first; j < end; j += kWeightTile) {
    Tiles::unpack(job, j, smaller(kWeightTile, end - j),
                  memory + (j - first) / kWeightTile * tile_bytes);
  }
  for (int64_t r = 0; r < args.rows; r += kTokenTile) {
    for (int64_t j = first; j < end; j += kWeightTile) {
      Tiles::multiply(job, memory + (j - first) / kWeightTile * tile_bytes, j,
                      smaller(kWeightTile, end - j), r, smaller(kTokenTile, args.rows - r));
    }
  }
}

template <typename Tiles>
void multiply_tiled(KernelContext& context, Job& job) {
  const int64_t n = job.args->n;
  if (job.args->params.tile_order == TileOrder::kBand8) {
    parallel_for(context, divide_up(n, kBandTiles * kWeightTile), multiply_band<Tiles, kBandTiles>,
                 &job);
  } else {
    parallel_for(context, divide_up(n, kWeightTile), multiply_band<Tiles, 1>, &job);
  }
}

template <typename Format>
void multiply_integer(KernelContext& context, Job& job) {
  const int64_t rows = job.args->rows;
  if (rows > kDirectRows) {
    parallel_for(context, divide_up(rows, kTileRows), quantise_tile<Format>, &job);
    return multiply_tiled<IntegerTiles<Format>>(context, job);
  }
  using Task = void (*)(void*, int64_t, int);
  static constexpr Task kTasks[kDirectRows] = {
      multiply_direct<Format, 1>, multiply_direct<Format, 2>, multiply_direct<Format, 3>,
      multiply_direct<Format, 4>, multiply_direct<Format, 5>, multiply_direct<Format, 6>,
      multiply_direct<Format, 7>, multiply_direct<Format, 8>};
  parallel_for(context, rows, quantise_row<Format>, &job);
  parallel_for(context, divide_up(job.args->n, kDirectWeightRows), kTasks[rows - 1], &job);
}

template <typename Format>
void multiply_float(KernelContext& context, Job& job) {
  const MatmulArgs& args = *job.args;
  if (job.columns != args.k) {
    parallel_for(context, args.rows, pad_row, &job);
    job.x = reinterpret_cast<const float*>(job.activations);
  }
  if (args.rows > kDirectRows) return multiply_tiled<FloatTiles<Format>>(context, job);
  parallel_for(context, divide_up(args.n, kDirectWeightRows), multiply_float_direct<Format>, &job);
}

}  // namespace

void matmul_exact_avx2(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactAvx2, kSourceHash, args);
  if (args.rows == 0) return;
  const MatmulScratch layout = tiled_matmul_scratch(args.weight_type, args.rows, args.k,
                                                    args.params.tile_order, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  Job job{};
  job.args = &args;
  job.activations = memory;
  job.weights = memory + layout.weights;
  job.weights_stride = layout.weights_stride;
  job.blocks = args.k / kGroup;
  job.columns = padded_columns(args.k);
  job.x = args.x;
  job.row_stride = weight_row_bytes(args.weight_type, args.k);
  switch (args.weight_type) {
    case DType::kQ4_1:
      return multiply_integer<Q4>(context, job);
    case DType::kQ8_0:
      return multiply_integer<Q8>(context, job);
    case DType::kF32:
      return multiply_float<F32>(context, job);
    case DType::kF16:
      return multiply_float<F16>(context, job);
    case DType::kBF16:
      return multiply_float<BF16>(context, job);
    case DType::kI32:
      return;  // the table does not support it
  }
}

const char* matmul_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
