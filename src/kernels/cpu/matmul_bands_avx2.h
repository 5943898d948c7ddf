// What the fast matmuls with AVX2 share: a task multiplies a band of panels, and stores their sums.
//
// For files compiled for AVX2 alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include "kernels/cpu/matmul_common_avx2.h"
#include "kernels/cpu/vectors_avx2.h"

namespace reckon::kernels::cpu {
namespace {

using BandTask = void (*)(void* job, int64_t task, int thread);

// The sums of one panel, [rows, 16], to the output's rows.
inline void store_panel(const MatmulArgs& args, const float* sums, int64_t panel) {
  const int64_t column = panel * kPanelLanes;
  for (int64_t row = 0; row < args.rows; ++row, sums += kPanelLanes) {
    float* out = args.out + row * args.n + column;
    store8(out, args.n - column, _mm256_loadu_ps(sums));
    if (args.n - column > 8) store8(out + 8, args.n - column - 8, _mm256_loadu_ps(sums + 8));
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
