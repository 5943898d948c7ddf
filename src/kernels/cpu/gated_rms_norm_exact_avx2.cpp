// The gated RMSNorm with AVX2. The sum of squares has 8 lanes, element i in lane i mod 8, each
// ascending, fma from +0, folded by fold_avx2.h; an element depends on that sum and on itself.
#include <immintrin.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/fold_avx2.h"
#include "kernels/cpu/gated_rms_norm_exact_avx2.hash.h"
#include "kernels/cpu/sigmoid_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";
constexpr int64_t kTaskRows = 8;  // a row is a head of 128 values, too little for a task

// 8 values, or fewer at the end of a row with zeros behind them.
__m256 load(const float* p, int64_t count) {
  if (count >= 8) return _mm256_loadu_ps(p);
  return _mm256_maskload_ps(p, first_lanes(static_cast<int>(count)));
}

void normalise(const GatedRmsNormArgs& args, int64_t row) {
  const int64_t k = args.k;
  const float* x = args.x + row * k;
  const float* z = args.z + row * k;
  float* out = args.out + row * k;
  __m256 squares = _mm256_setzero_ps();
  for (int64_t i = 0; i < k; i += 8) {
    const __m256 values = load(x + i, k - i);
    squares = _mm256_fmadd_ps(values, values, squares);
  }
  const float mean = fold(squares) / static_cast<float>(k);
  const __m256 scale = _mm256_set1_ps(1.0F / __builtin_sqrtf(mean + args.epsilon));
  for (int64_t i = 0; i < k; i += 8) {
    const __m256 normed =
        _mm256_mul_ps(_mm256_mul_ps(load(x + i, k - i), scale), load(args.weight + i, k - i));
    const __m256 values = _mm256_mul_ps(normed, silu8(load(z + i, k - i)));
    if (k - i >= 8) {
      _mm256_storeu_ps(out + i, values);
    } else {
      _mm256_maskstore_ps(out + i, first_lanes(static_cast<int>(k - i)), values);
    }
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
