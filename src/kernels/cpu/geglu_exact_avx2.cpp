// GeGLU with AVX2. tanh is a quotient of e^x: 1 + tanh(u) = 2 / (1 + e^(-2u)).
#include <immintrin.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/exp_avx2.h"
#include "kernels/cpu/gated_avx2.h"
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

}  // namespace

void geglu_exact_avx2(const GegluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GegluArgs copy = args;
  parallel_for(context, args.rows, gated_row<GegluArgs, geglu8>, &copy);
}

const char* geglu_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
