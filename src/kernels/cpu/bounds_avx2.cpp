// The loops of bounds_loops.h with AVX2. Instructions are written as asm statements and
// accumulators as variables of their own: from intrinsics a compiler sees that all accumulators are
// equal and keeps one, and an array of them it may keep in memory.
#include <immintrin.h>

#include "kernels/cpu/bounds_loops.h"

namespace reckon::kernels::cpu {
namespace {

__m256i load(const void* memory) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(memory));
}

// Applies `op` to each of kAvx2Accumulators variables s0, s1, ...
#define RECKON_EACH_OF_10(op) op(s0) op(s1) op(s2) op(s3) op(s4) op(s5) op(s6) op(s7) op(s8) op(s9)
static_assert(kAvx2Accumulators == 10);

double sum_of(__m256i sum) {
  int32_t lanes[8];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), sum);
  double total = 0;
  for (const int32_t lane : lanes) total += lane;
  return total;
}

}  // namespace

uint64_t read_avx2(const void* memory, int64_t bytes) {
  const auto* at = static_cast<const __m256i*>(memory);
  __m256i sums[8] = {};
  for (int64_t i = 0; i < bytes / 32; i += 16) {
    for (int j = 0; j < 8; ++j) {
      const __m256i pair =
          _mm256_xor_si256(_mm256_load_si256(at + i + j), _mm256_load_si256(at + i + 8 + j));
      sums[j] = _mm256_add_epi64(sums[j], pair);
    }
  }
  for (int j = 1; j < 8; ++j) sums[0] = _mm256_add_epi64(sums[0], sums[j]);
  uint64_t lanes[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), sums[0]);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

#define RECKON_ZERO(s) s = _mm256_setzero_si256();
#define RECKON_ADD(s) sum = _mm256_add_epi32(sum, s);

double fma_f32_avx2(const void* x, const void* y, int64_t iterations) {
  const __m256 a = _mm256_castsi256_ps(load(x));
  const __m256 b = _mm256_castsi256_ps(load(y));
  __m256 s0, s1, s2, s3, s4, s5, s6, s7, s8, s9;
#define RECKON_ZERO_F32(s) s = _mm256_setzero_ps();
#define RECKON_FMA(s) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(s) : "x"(a), "x"(b));
#define RECKON_ADD_F32(s) sum = _mm256_add_ps(sum, s);
  RECKON_EACH_OF_10(RECKON_ZERO_F32)
  for (int64_t i = 0; i < iterations; ++i) {
    RECKON_EACH_OF_10(RECKON_FMA)
  }
  __m256 sum = _mm256_setzero_ps();
  RECKON_EACH_OF_10(RECKON_ADD_F32)
  float lanes[8];
  _mm256_storeu_ps(lanes, sum);
  double total = 0;
  for (const float lane : lanes) total += static_cast<double>(lane);
  return total;
}

#define RECKON_MADD_LOOP(name, step)                              \
  double name(const void* x, const void* y, int64_t iterations) { \
    const __m256i a = load(x);                                    \
    const __m256i b = load(y);                                    \
    [[maybe_unused]] const __m256i ones = _mm256_set1_epi16(1);   \
    __m256i s0, s1, s2, s3, s4, s5, s6, s7, s8, s9;               \
    __m256i product;                                              \
    RECKON_EACH_OF_10(RECKON_ZERO)                                \
    for (int64_t i = 0; i < iterations; ++i) {                    \
      RECKON_EACH_OF_10(step)                                     \
    }                                                             \
    __m256i sum = _mm256_setzero_si256();                         \
    RECKON_EACH_OF_10(RECKON_ADD)                                 \
    return sum_of(sum);                                           \
  }
#define RECKON_MADD_I16(s)      \
  __asm__ volatile(             \
      "vpmaddwd %3, %2, %1\n\t" \
      "vpaddd %1, %0, %0"       \
      : "+x"(s), "=&x"(product) \
      : "x"(a), "x"(b));
#define RECKON_MADD_I8(s)         \
  __asm__ volatile(               \
      "vpmaddubsw %3, %2, %1\n\t" \
      "vpmaddwd %4, %1, %1\n\t"   \
      "vpaddd %1, %0, %0"         \
      : "+x"(s), "=&x"(product)   \
      : "x"(a), "x"(b), "x"(ones));
RECKON_MADD_LOOP(madd_i16_avx2, RECKON_MADD_I16)
RECKON_MADD_LOOP(madd_i8_avx2, RECKON_MADD_I8)

}  // namespace reckon::kernels::cpu
