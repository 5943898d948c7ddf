// wgmma m64nNk16 with A in registers and B in shared memory, float32 accumulators, for the token
// counts that fast_tile uses. In SASS: HGMMA.
#pragma once

#include <cstdint>

#include "kernels/cuda/wgmma_registers.cuh"

namespace reckon::kernels::cuda {

// d[64, kTokens] = a[64, 16] * b[kTokens, 16]^T, plus d where `accumulate` is not 0. Asynchronous:
// between wgmma.fence and wgmma.wait_group, d and a must not be touched.
template <int kTokens, bool kBf16>
struct Wgmma;

// a0 ... a3, b and add are the operands' numbers behind those of the `sums` accumulators.
#define RECKON_WGMMA(tokens, type, sums, a0, a1, a2, a3, b_at, add)                            \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #add                                       \
               ", 0;\n"                                                                        \
               "wgmma.mma_async.sync.aligned.m64n" #tokens "k16.f32." type "." type            \
               " {" RECKON_NAMES_##sums "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, %" #b_at \
                                        ", p, 1, 1, 0;\n}\n"                                   \
               : RECKON_FLOATS_##sums(d)                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate))

#define RECKON_WGMMA_OF(tokens, sums, ...)                                               \
  template <bool kBf16>                                                                  \
  struct Wgmma<tokens, kBf16> {                                                          \
    __device__ __forceinline__ static void run(float (&d)[sums], const uint32_t (&a)[4], \
                                               uint64_t b, int accumulate) {             \
      if constexpr (kBf16) {                                                             \
        RECKON_WGMMA(tokens, "bf16", sums, __VA_ARGS__);                                 \
      } else {                                                                           \
        RECKON_WGMMA(tokens, "f16", sums, __VA_ARGS__);                                  \
      }                                                                                  \
    }                                                                                    \
  }

RECKON_WGMMA_OF(16, 8, 8, 9, 10, 11, 12, 13);
RECKON_WGMMA_OF(32, 16, 16, 17, 18, 19, 20, 21);
RECKON_WGMMA_OF(64, 32, 32, 33, 34, 35, 36, 37);
RECKON_WGMMA_OF(128, 64, 64, 65, 66, 67, 68, 69);
RECKON_WGMMA_OF(160, 80, 80, 81, 82, 83, 84, 85);
RECKON_WGMMA_OF(192, 96, 96, 97, 98, 99, 100, 101);
RECKON_WGMMA_OF(256, 128, 128, 129, 130, 131, 132, 133);

#undef RECKON_WGMMA_OF
#undef RECKON_WGMMA

}  // namespace reckon::kernels::cuda
