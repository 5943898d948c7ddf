// Fast matmuls of a few activation rows: verifies of drafted tokens and short prompts. Plain types
// only.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

constexpr const char* kStreamAvx512 = "stream_avx512";
constexpr const char* kFastFewAmx = "fast_few_amx";

// 3 to 6 rows as one stream of weights, activations as codes of 8 bits: one vpdpbusd where the
// exact kernel takes two. Of 8 activations of a row: scale = max |x| / 127, code = x / scale
// rounded to nearest even; tiny ones and those that are not finite as canonical_order.h has them.
// Panels; AVX-512 F, BW, VL and VNNI.
constexpr int64_t kFewestStreamRows = 3;
constexpr int64_t kMostStreamRows = 6;
void matmul_stream(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_stream_hash();
[[nodiscard]] uint64_t stream_matmul_scratch(DType type, int64_t rows, int64_t k);

// Up to 16 rows, one tile of the processor, in the arithmetic of the fast matmul (matmul_fast.h).
// Panels; AMX and AVX-512 BF16.
constexpr int64_t kMostFewRows = 16;
constexpr int64_t kFewestFastRows = 6;  // of a prefill pass; below, exact kernels are faster
void matmul_fast_few(const MatmulArgs& args, KernelContext& context);
[[nodiscard]] const char* matmul_fast_few_hash();

// Byte offsets in the scratch of one call: activations, then a part for each thread.
struct FewMatmulScratch {
  uint64_t threads = 0;
  uint64_t thread_bytes = 0;
  uint64_t total = 0;
};
[[nodiscard]] FewMatmulScratch few_matmul_scratch(int64_t k, int threads);

// One activation row's group for matmul_stream().
struct alignas(16) ByteGroup {
  int8_t codes[32];
  float scales[4];    // of 8 codes
  int32_t starts[4];  // of 8 codes: minus the weights' offset times their sum
  float sum;          // of scale * code, for weights with a minimum
};

}  // namespace reckon::kernels::cpu
