// GeGLU with AVX2. tanh is a quotient of e^x: 1 + tanh(u) = 2 / (1 + e^(-2u)).
//
// An element's result depends on its value only: the last, partial vector goes through the same
// instructions under a mask.
#include <immintrin.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/exp_avx2.h"
#include "kernels/cpu/geglu_exact_avx2.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";

__m256 geglu8(__m256 gate, __m256 up) {
  const __m256 one = _mm256_set1_ps(1.0F);
  // -2 sqrt(2/pi) (g + 0.044715 g^3)
  const __m256 cube = _mm256_mul_ps(_mm256_mul_ps(gate, gate), gate);
  const __m256 inner = _mm256_mul_ps(_mm256_set1_ps(-1.5957691216F),
                                     _mm256_fmadd_ps(_mm256_set1_ps(0.044715F), cube, gate));
  return _mm256_mul_ps(_mm256_div_ps(gate, _mm256_add_ps(one, exp8(inner))), up);
}

void geglu_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const GegluArgs*>(argument);
  const float* gate = args.gate + row * args.k;
  const float* up = args.up + row * args.k;
  float* out = args.out + row * args.k;
  int64_t i = 0;
  for (; i + 8 <= args.k; i += 8) {
    _mm256_storeu_ps(out + i, geglu8(_mm256_loadu_ps(gate + i), _mm256_loadu_ps(up + i)));
  }
  if (i < args.k) {
    const __m256i mask = first_lanes(static_cast<int>(args.k - i));
    _mm256_maskstore_ps(
        out + i, mask,
        geglu8(_mm256_maskload_ps(gate + i, mask), _mm256_maskload_ps(up + i, mask)));
  }
}

}  // namespace

void geglu_exact_avx2(const GegluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GegluArgs copy = args;
  parallel_for(context, args.rows, geglu_row, &copy);
}

const char* geglu_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
