// What the parts of the AVX-512 matmul share: loads.
//
// For the AVX-512 matmuls alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/lanes_avx512.h"
#include "kernels/cpu/matmul_job.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

inline __m128i load16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

inline __m256i load32(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

// Fetches the rows of the next task while this one is multiplied: hardware prefetchers stop at
// every page, 4 KB (matmul_common_avx2.h has the numbers).
// Inlined by force: g++ 12 takes a call of it for one without effects, and drops it.
[[gnu::always_inline]] inline void prefetch(const char* from, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64) _mm_prefetch(from + line, _MM_HINT_T1);
}

}  // namespace
}  // namespace reckon::kernels::cpu
