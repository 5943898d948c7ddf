// The last step of split-K matmuls: sums of the parts of K, added in ascending order.
//
// For files compiled for AVX-512 or AMX; the namespace has no name so that nothing in it can be
// shared with code for another instruction set. Plain types only.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/matmul_job.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

// Sums of one panel of a part lie together, so that a task that multiplies all rows with a panel
// writes one stretch of memory: rows at a distance of n would each be on a page of their own.
struct SplitSums {
  float* sums;  // [parts, panels, rows, 16]
  float* out;   // [rows, n]
  int64_t parts, rows, n;
};

inline float* panel_sums(const SplitSums& split, int64_t part, int64_t panel) {
  const int64_t panels = divide_up(split.n, kPanelLanes);
  return split.sums + (part * panels + panel) * split.rows * kPanelLanes;
}

constexpr int64_t kRowsOfSum = 16;  // of a task

inline int64_t sum_tasks(const SplitSums& split) {
  return divide_up(split.rows, kRowsOfSum);
}

// Task: some rows. Each sum begins with +0, as the canonical order wants it.
inline void add_parts(void* argument, int64_t task, int /*thread*/) {
  const auto& split = *static_cast<const SplitSums*>(argument);
  const int64_t end = smaller((task + 1) * kRowsOfSum, split.rows);
  for (int64_t panel = 0; panel < divide_up(split.n, kPanelLanes); ++panel) {
    const int64_t column = panel * kPanelLanes;
    for (int64_t row = task * kRowsOfSum; row < end; ++row) {
      __m512 total = _mm512_setzero_ps();
      for (int64_t part = 0; part < split.parts; ++part) {
        const float* from = panel_sums(split, part, panel) + row * kPanelLanes;
        total = _mm512_add_ps(total, _mm512_load_ps(from));
      }
      _mm512_mask_storeu_ps(split.out + row * split.n + column, first_lanes(split.n - column),
                            total);
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
