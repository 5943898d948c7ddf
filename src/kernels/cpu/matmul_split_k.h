// Matmuls of prefill that cut K, and the one that they are measured against. Plain types only.
//
// A split-K matmul multiplies several parts of K at once and keeps the sums of each, rows x n
// (whole panels) of float32, in scratch; they are added in ascending order. It has more tasks than
// a matmul with few outputs would have otherwise, and pays for it in memory.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

constexpr const char* kGemvChunked = "gemv_chunked";
constexpr const char* kSplitKExact = "split_k_exact_avx512";
constexpr const char* kSplitKFast = "split_k_fast_amx";

// The GEMV of decode over chunks of up to 8 activation rows: each streams all weights again. Exact;
// panels; AVX-512 F, BW, VL and VNNI. Needs panel_matmul_scratch().
void matmul_gemv_chunked(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_gemv_chunked_hash();

// The segments of the canonical order (canonical_order.h) side by side. Exact; panels; AVX-512 F,
// BW, VL and VNNI.
void matmul_split_k_exact(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_split_k_exact_hash();

// The fast matmul (matmul_fast.h) with K in up to 4 parts. Panels; AMX and AVX-512 BF16.
void matmul_split_k_fast(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_split_k_fast_hash();

// In how many parts a call has K; 1: there is nothing to split. They follow from K alone, so that
// results do not depend on the threads.
[[nodiscard]] int64_t exact_splits(DType type, int64_t k);
[[nodiscard]] int64_t fast_splits(int64_t k);

// Byte offsets in the scratch of one call: what multiplies, then the sums of the parts.
struct SplitKScratch {
  uint64_t sums = 0;
  uint64_t total = 0;
};
[[nodiscard]] SplitKScratch split_k_exact_scratch(DType type, int64_t rows, int64_t n, int64_t k);
[[nodiscard]] SplitKScratch split_k_fast_scratch(int64_t rows, int64_t n, int64_t k, int threads);

}  // namespace reckon::kernels::cpu
