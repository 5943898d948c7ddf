// The fast attention of prefill, in float32. Its promise beyond that of its class: a row's bits
// depend on its own position and on what it sees, not on the rows beside it. Plain types only.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

// AVX-512 F, BW, VL. Needs fast_attention_scratch_bytes() of scratch.
void attention_fast_avx512(const AttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_fast_avx512_hash();

constexpr int64_t kQueryLanes = 16;    // queries that are taken together
constexpr int64_t kFastKeyBlock = 64;  // positions between two corrections by the largest score

[[nodiscard]] uint64_t fast_attention_scratch_bytes(int64_t head_dim, int threads);

// AVX2 and FMA; with and without a window. Needs float_attention_scratch_bytes() of scratch.
void attention_fast_avx2(const AttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_fast_avx2_hash();

constexpr int64_t kFloatKeyBlock = 48;  // positions between two corrections there

[[nodiscard]] uint64_t float_attention_scratch_bytes(int64_t head_dim, int threads);

}  // namespace reckon::kernels::cpu
