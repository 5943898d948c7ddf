// The exact causal convolution on the CPU. An output is w[0] * x[p - width + 1] and then an fma for
// each later position, ascending; silu by sigmoid_avx2.h. Plain types only.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

constexpr int64_t kMostTaps = 8;  // the widest that it takes

// AVX2 and FMA.
void causal_conv_exact_avx2(const CausalConvArgs& args, KernelContext& context);
[[nodiscard]] const char* causal_conv_exact_avx2_hash();

}  // namespace reckon::kernels::cpu
