// The gated RMSNorm with AVX2. An element depends on its row's sum of squares and on itself.
#include <immintrin.h>

#include "kernels/cpu/gated_rms_norm_exact_avx2.hash.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/norm_avx2.h"
#include "kernels/cpu/sigmoid_avx2.h"
#include "kernels/cpu/vectors_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";
constexpr int64_t kTaskRows = 8;  // a row is a head of 128 values, too little for a task

void normalise(const GatedRmsNormArgs& args, int64_t row) {
  const int64_t k = args.k;
  const float* x = args.x + row * k;
  const float* z = args.z + row * k;
  float* out = args.out + row * k;
  const __m256 scale = norm_scale(x, k, args.epsilon);
  for (int64_t i = 0; i < k; i += 8) {
    const int64_t left = k - i;
    const __m256 normed =
        _mm256_mul_ps(_mm256_mul_ps(load8(x + i, left), scale), load8(args.weight + i, left));
    store8(out + i, left, _mm256_mul_ps(normed, silu8(load8(z + i, left))));
  }
}

void normalise_rows(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const GatedRmsNormArgs*>(argument);
  for (int64_t r = task * kTaskRows; r < (task + 1) * kTaskRows && r < args.rows; ++r) {
    normalise(args, r);
  }
}

}  // namespace

void gated_rms_norm_exact_avx2(const GatedRmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GatedRmsNormArgs copy = args;
  parallel_for(context, (args.rows + kTaskRows - 1) / kTaskRows, normalise_rows, &copy);
}

const char* gated_rms_norm_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
