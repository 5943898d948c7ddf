// The AVX-512 matmul of float formats: the 16 lanes of the canonical order are one register.
//
// For matmul_exact_avx512.cpp alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

struct F32 {
  static constexpr bool kFromFile = true;
  static constexpr int64_t kBytes = 4;
  static __m512 lanes(const char* p) { return _mm512_loadu_ps(p); }
};

// A tile that has been converted.
struct Tile32 : F32 {
  static constexpr bool kFromFile = false;
};

struct F16 {
  static constexpr bool kFromFile = true;
  static constexpr int64_t kBytes = 2;
  static __m512 lanes(const char* p) { return _mm512_cvtph_ps(load32(p)); }
};

struct BF16 {
  static constexpr bool kFromFile = true;
  static constexpr int64_t kBytes = 2;
  static __m512 lanes(const char* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load32(p)), 16));
  }
};

// The last `count` < 16 weights, filled up with zeros.
template <typename Format>
__m512 tail_lanes(const char* p, int64_t count) {
  alignas(64) char buffer[kFloatLanes * Format::kBytes] = {};
  __builtin_memcpy(buffer, p, static_cast<uint64_t>(count * Format::kBytes));
  return Format::lanes(buffer);
}

float fold(__m512 lanes) {
  const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(lanes), 1));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(lanes), high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// kWeights weight rows x kRows activation rows of `columns` (filled up) elements; the weights are k
// long. Writes out[r * out_stride + w].
template <typename Format, int kWeights, int kRows>
void float_dots(const char* weights, int64_t stride, const float* x, int64_t columns, int64_t k,
                float* out, int64_t out_stride) {
  __m512 totals[kWeights][kRows];
  for (auto& row : totals) {
    for (auto& lanes : row) lanes = _mm512_setzero_ps();
  }
  for (int64_t first = 0; first < columns; first += kSegment) {
    const int64_t end = smaller(first + kSegment, columns);
    __m512 sums[kWeights][kRows];
    for (auto& row : sums) {
      for (auto& lanes : row) lanes = _mm512_setzero_ps();
    }
    const auto step = [&](int64_t i, const auto& load_weights) {
      __m512 w[kWeights];
      for (int j = 0; j < kWeights; ++j) {
        const char* row = weights + j * stride;
        if (Format::kFromFile) prefetch(row + kFloatWeightRows * stride + i * Format::kBytes, 1);
        w[j] = load_weights(row, i);
      }
      for (int r = 0; r < kRows; ++r) {
        const __m512 lanes = _mm512_loadu_ps(x + r * columns + i);
        for (int j = 0; j < kWeights; ++j) sums[j][r] = _mm512_fmadd_ps(w[j], lanes, sums[j][r]);
      }
    };
    int64_t i = first;
    for (; i + kFloatLanes <= smaller(end, k); i += kFloatLanes) {
      step(i, [](const char* row, int64_t at) { return Format::lanes(row + at * Format::kBytes); });
    }
    if (i < end) {
      step(i, [&](const char* row, int64_t at) {
        return tail_lanes<Format>(row + at * Format::kBytes, k - at);
      });
    }
    for (int j = 0; j < kWeights; ++j) {
      for (int r = 0; r < kRows; ++r) totals[j][r] = _mm512_add_ps(totals[j][r], sums[j][r]);
    }
  }
  for (int j = 0; j < kWeights; ++j) {
    for (int r = 0; r < kRows; ++r) out[r * out_stride + j] = fold(totals[j][r]);
  }
}

// All weight rows x kRows activation rows. 4 x 6 sums, 4 weights and an activation fit the 32
// registers.
template <typename Format, int kRows>
void float_columns(const char* weights, int64_t stride, int64_t weight_rows, const float* x,
                   int64_t columns, int64_t k, float* out, int64_t n) {
  constexpr int kTogether = kRows == 1 ? 8 : 4;
  int64_t j = 0;
  for (; j + kTogether <= weight_rows; j += kTogether) {
    float_dots<Format, kTogether, kRows>(weights + j * stride, stride, x, columns, k, out + j, n);
  }
  for (; j < weight_rows; ++j) {
    float_dots<Format, 1, kRows>(weights + j * stride, stride, x, columns, k, out + j, n);
  }
}

// The activation rows of a block stay in the first-level cache while the weight rows pass.
template <typename Format>
void float_rows(const char* weights, int64_t stride, int64_t weight_rows, const float* x,
                int64_t columns, int64_t k, int64_t rows, float* out, int64_t n) {
  using Columns =
      void (*)(const char*, int64_t, int64_t, const float*, int64_t, int64_t, float*, int64_t);
  static constexpr Columns kFunctions[6] = {float_columns<Format, 1>, float_columns<Format, 2>,
                                            float_columns<Format, 3>, float_columns<Format, 4>,
                                            float_columns<Format, 5>, float_columns<Format, 6>};
  for (int64_t r = 0; r < rows;) {
    const int64_t left = rows - r;
    const int64_t taken = left > 6 && left < 9 ? 4 : smaller(left, 6);
    kFunctions[taken - 1](weights, stride, weight_rows, x + r * columns, columns, k, out + r * n,
                          n);
    r += taken;
  }
}

// Task: 8 weight rows, straight from the file.
template <typename Format>
void multiply_float_direct(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  const int64_t first = task * kFloatWeightRows;
  float_rows<Format>(weight_row(job, first), job.row_stride,
                     smaller(kFloatWeightRows, args.n - first), job.x, job.columns, args.k,
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
  static constexpr int64_t kWeights = kPlaneTile;

  static int64_t tile_bytes(const Job& job) {
    return kWeights * job.columns * static_cast<int64_t>(sizeof(float));
  }

  static void unpack(const Job& job, int64_t first_row, int64_t rows, char* memory) {
    const int64_t k = job.args->k;
    for (int64_t j = 0; j < rows; ++j) {
      const char* row = weight_row(job, first_row + j);
      float* out = reinterpret_cast<float*>(memory) + j * job.columns;
      for (int64_t i = 0; i < job.columns; i += kFloatLanes) {
        const char* from = row + i * Format::kBytes;
        _mm512_storeu_ps(
            out + i, i + kFloatLanes <= k ? Format::lanes(from) : tail_lanes<Format>(from, k - i));
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
