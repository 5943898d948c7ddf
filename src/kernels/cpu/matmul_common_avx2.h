// What the parts of the AVX2 matmul share: loads and the integer multiply-add.
//
// For the AVX2 matmuls alone; the namespace has no name so that nothing in it can be shared
// with code for another instruction set.
#pragma once

#include <immintrin.h>

#include "kernels/cpu/matmul_job.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

inline __m256i load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline __m128i load_half(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

inline __m256i load_twice(const void* p) {
  return _mm256_broadcastsi128_si256(load_half(p));
}

inline void store(void* p, __m256i v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), v);
}

// sum += pairwise dots of a and b. The addition is spelled out because g++ 12 regroups integer
// sums: it computed every product of a block first and spent half of the time on spilling them.
inline void add_dots(__m256i& sum, __m256i a, __m256i b) {
  const __m256i products = _mm256_madd_epi16(a, b);
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(products));
}

// sum += addend in lanes of 16 bits, for the same reason.
inline void add_words(__m256i& sum, __m256i addend) {
  asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(addend));
}

// Weight rows of one task of the direct path, and how far ahead weights are fetched.
constexpr int64_t kDirectWeightRows = 8;

// The stream over the weights crosses a page every 4 KB, where hardware prefetchers stop: fetching
// the next 8 rows by hand made a whole decode step of SmolLM2-135M 1.6 times as fast on a virtual
// Xeon, one core of which reads 13 GB/s through pages of 4 KB and 20 GB/s through pages of 2 MB.
// Two, three or four groups ahead were no better, nor was fetching into the first-level cache.
// Inlined by force: g++ 12 takes a call of it for one without effects, and drops it.
[[gnu::always_inline]] inline void prefetch(const char* from, int64_t bytes) {
  for (int64_t line = 0; line < bytes; line += 64) _mm_prefetch(from + line, _MM_HINT_T1);
}

}  // namespace
}  // namespace reckon::kernels::cpu
