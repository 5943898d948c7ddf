// The loops of bounds_loops.h with AVX-512 (and VNNI, which the assembler knows without a flag).
// Why asm statements and variables: see bounds_avx2.cpp.
#include <immintrin.h>

#include "kernels/cpu/bounds_loops.h"

namespace reckon::kernels::cpu {
namespace {

// Applies `op` to each of kAvx512Accumulators variables s0, s1, ...
#define RECKON_EACH_OF_16(op)                                                                   \
  op(s0) op(s1) op(s2) op(s3) op(s4) op(s5) op(s6) op(s7) op(s8) op(s9) op(s10) op(s11) op(s12) \
      op(s13) op(s14) op(s15)
static_assert(kAvx512Accumulators == 16);

#define RECKON_ZERO(s) s = decltype(s){};
#define RECKON_ADD_I32(s) sum = _mm512_add_epi32(sum, s);
#define RECKON_ADD_F32(s) sum = _mm512_add_ps(sum, s);

double sum_of(__m512i sum) {
  int32_t lanes[16];
  _mm512_storeu_si512(lanes, sum);
  double total = 0;
  for (const int32_t lane : lanes) total += lane;
  return total;
}

double sum_of(__m512 sum) {
  float lanes[16];
  _mm512_storeu_ps(lanes, sum);
  double total = 0;
  for (const float lane : lanes) total += static_cast<double>(lane);
  return total;
}

}  // namespace

// The rest of a loop's function: `iterations` times `instruction` on each accumulator, and their
// sum.
#define RECKON_RUN_LOOP(vector, instruction, add)                              \
  vector s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15; \
  RECKON_EACH_OF_16(RECKON_ZERO)                                               \
  for (int64_t i = 0; i < iterations; ++i) {                                   \
    RECKON_EACH_OF_16(instruction)                                             \
  }                                                                            \
  vector sum{};                                                                \
  RECKON_EACH_OF_16(add)                                                       \
  return sum_of(sum);

double fma_f32_avx512(const void* x, const void* y, int64_t iterations) {
  const __m512 a = _mm512_loadu_ps(x);
  const __m512 b = _mm512_loadu_ps(y);
#define RECKON_FMA(s) __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
  RECKON_RUN_LOOP(__m512, RECKON_FMA, RECKON_ADD_F32)
}

// Of each pair the second product is that of the floats' high halves, the first one of zeros.
double dot_bf16_avx512(const void* x, const void* y, int64_t iterations) {
  const __m512i high = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000));
  const __m512i a = _mm512_and_si512(_mm512_loadu_si512(x), high);
  const __m512i b = _mm512_and_si512(_mm512_loadu_si512(y), high);
#define RECKON_DOT_BF16(s) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
  RECKON_RUN_LOOP(__m512, RECKON_DOT_BF16, RECKON_ADD_F32)
}

double dot_i16_avx512vnni(const void* x, const void* y, int64_t iterations) {
  const __m512i a = _mm512_loadu_si512(x);
  const __m512i b = _mm512_loadu_si512(y);
#define RECKON_DOT_I16(s) __asm__ volatile("vpdpwssd %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
  RECKON_RUN_LOOP(__m512i, RECKON_DOT_I16, RECKON_ADD_I32)
}

double dot_i8_avx512vnni(const void* x, const void* y, int64_t iterations) {
  const __m512i a = _mm512_loadu_si512(x);
  const __m512i b = _mm512_loadu_si512(y);
#define RECKON_DOT_I8(s) __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(s) : "v"(a), "v"(b));
  RECKON_RUN_LOOP(__m512i, RECKON_DOT_I8, RECKON_ADD_I32)
}

}  // namespace reckon::kernels::cpu
