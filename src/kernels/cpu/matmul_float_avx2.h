// The AVX2 matmul of float formats: 16 weights become two registers of float32.
//
// For matmul_exact_avx2.cpp alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

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
  const float* x = activation_row(job, row);
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

}  // namespace
}  // namespace reckon::kernels::cpu
