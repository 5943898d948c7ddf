// The last step of split-K matmuls: sums of the parts of K, added in ascending order.
//
// For files compiled for AVX-512 or AMX; the namespace has no name so that nothing in it can be
// shared with code for another instruction set. Plain types only.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/matmul_job.h"

namespace reckon::kernels::cpu {
namespace {

struct SplitSums {
  float* sums;  // [parts, rows, n]
  float* out;   // [rows, n]
  int64_t parts, rows, n;
};

constexpr int64_t kColumnsAtOnce = 1024;  // of a task

inline int64_t sum_tasks(const SplitSums& split) {
  return split.rows * divide_up(split.n, kColumnsAtOnce);
}

// Task: some columns of one row. Each begins with +0, as the canonical order wants it.
inline void add_parts(void* argument, int64_t task, int /*thread*/) {
  const auto& split = *static_cast<const SplitSums*>(argument);
  const int64_t blocks = divide_up(split.n, kColumnsAtOnce);
  const int64_t row = task / blocks;
  const int64_t first = task % blocks * kColumnsAtOnce;
  const int64_t end = smaller(first + kColumnsAtOnce, split.n);
  for (int64_t i = first; i < end; i += 16) {
    const __mmask16 lanes = first_lanes(end - i);
    __m512 total = _mm512_setzero_ps();
    for (int64_t part = 0; part < split.parts; ++part) {
      const float* from = split.sums + (part * split.rows + row) * split.n + i;
      total = _mm512_add_ps(total, _mm512_maskz_loadu_ps(lanes, from));
    }
    _mm512_mask_storeu_ps(split.out + row * split.n + i, lanes, total);
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
