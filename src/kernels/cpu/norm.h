// The norms of the CPU, numerics class exact. Each hash function returns the source hash of its
// file. Plain types only. Any rows, any k of at least 1; rows are shared out among the threads.
//
// Order of the sums, a contract for every instruction set: 16 float64 lanes, element i of a row in
// lane i mod 16,
//
//   lane[l] = +0;  for each 16 elements, ascending: lane[l] = lane[l] + x * x
//
// (x * x is exact), zeros behind the last element. Then the lanes are folded in halves: l and
// l + 8, then l and l + 4, l + 2, l + 1. With their sum, in float64,
//
//   scale = float(1 / sqrt(sum / k + epsilon))
//
// and out = (x * scale) * weight in float32. So a row's bits depend on the row and on k alone.
// Float64, so that large values do not overflow and a row is as near to the formula as the
// reference's; a chain of additions has the latency that it has in float32.
#pragma once

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

// AVX2 and FMA. add_rms_norm gives the bits of add followed by rms_norm.
void rms_norm_exact_avx2(const RmsNormArgs& args, KernelContext& context);
void add_rms_norm_exact_avx2(const AddRmsNormArgs& args, KernelContext& context);
[[nodiscard]] const char* rms_norm_exact_avx2_hash();
// The norm as above, times z * sigmoid(z); e^x by exp_avx2.h.
void gated_rms_norm_exact_avx2(const GatedRmsNormArgs& args, KernelContext& context);
[[nodiscard]] const char* gated_rms_norm_exact_avx2_hash();

}  // namespace reckon::kernels::cpu
