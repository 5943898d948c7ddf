// Exact attention on the CPU, and the order of operations that makes a row's bits depend on its own
// position only: decode, verify and prefill in chunks of any size agree. Plain types only.
//
// The positions of a row, 0 ... P or the last `window` of them, are cut into blocks of kKeyBlock,
// aligned to position 0; the first one begins with them, and there lanes are counted from it; the
// last one ends at P. Each block is reduced on its own, from scores s[p] = scale * (q . k[p]):
//
//   largest = max s[p];  w[p] = e^(s[p] - largest)
//   sum = sum of w[p]: 8 lanes, p mod 8, each ascending, folded as ((0+1)+(2+3))+((4+5)+(6+7))
//   out[d] = sum of w[p] * v[p][d], ascending in p, fma from +0
//
// q . k[p] is a sum of 8 lanes, element d in lane d mod 8, each ascending, fma from +0, folded the
// same way. Blocks are combined in ascending order into (M, S, O), the first taken as it is:
//
//   M' = max(M, largest);  a = e^(M - M');  b = e^(largest - M')
//   S = fma(S, a, sum * b);  O[d] = fma(O[d], a, out[d] * b)
//
// and the row is O / S. Blocks may be reduced by several workers, as long as they are combined in
// this order.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

constexpr int64_t kKeyBlock = 64;

// AVX2 and FMA; e^x by exp_avx2.h. Needs attention_scratch_bytes() of scratch.
void attention_exact_avx2(const AttentionArgs& args, KernelContext& context);
[[nodiscard]] const char* attention_exact_avx2_hash();

// One block's output a thread.
[[nodiscard]] uint64_t attention_scratch_bytes(int64_t head_dim, int threads);

}  // namespace reckon::kernels::cpu
