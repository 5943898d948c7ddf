// SwiGLU with AVX2: libm's e^x, one element at a time, took 2.5 % of a decode step and 8 % of a
// prefill of SmolLM2-135M on 2 cores of a Xeon with AVX2 matmuls.
//
// An element's result depends on its value only: the last, partial vector goes through the same
// instructions under a mask.
#include <immintrin.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/exp_avx2.h"
#include "kernels/cpu/swiglu_exact_avx2.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";

__m256 swiglu8(__m256 gate, __m256 up) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 minus_gate = _mm256_xor_ps(gate, _mm256_set1_ps(-0.0F));
  return _mm256_mul_ps(_mm256_div_ps(gate, _mm256_add_ps(one, exp8(minus_gate))), up);
}

void swiglu_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const SwigluArgs*>(argument);
  const float* gate = args.gate + row * args.k;
  const float* up = args.up + row * args.k;
  float* out = args.out + row * args.k;
  int64_t i = 0;
  for (; i + 8 <= args.k; i += 8) {
    _mm256_storeu_ps(out + i, swiglu8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
  }
  if (i < args.k) {
    const __m256i mask = first_lanes(static_cast<int>(args.k - i));
    _mm256_maskstore_ps(
        out + i, mask,
        swiglu8(_mm256_maskload_ps(gate + i, mask), _mm256_maskload_ps(up + i, mask)));
  }
}

}  // namespace

void swiglu_exact_avx2(const SwigluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  SwigluArgs copy = args;
  parallel_for(context, args.rows, swiglu_row, &copy);
}

const char* swiglu_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
