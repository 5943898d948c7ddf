// hashed with "kernels/cpu/delta_rule.cpp"
// The gated delta rule with AVX2 and FMA, in the order of delta_rule.h.
#include <immintrin.h>

#include "kernels/cpu/delta_rule_steps.h"
#include "kernels/cpu/gated_delta_rule_exact_avx2.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";

struct Vector {
  using Register = __m256;
  static constexpr int64_t kLanes = 8;
  static Register zero() { return _mm256_setzero_ps(); }
  static Register all(float x) { return _mm256_set1_ps(x); }
  static Register load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Register x) { _mm256_storeu_ps(p, x); }
  static Register add(Register a, Register b) { return _mm256_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm256_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm256_mul_ps(a, b); }
  static Register fma(Register a, Register b, Register c) { return _mm256_fmadd_ps(a, b, c); }
};

}  // namespace

void gated_delta_rule_exact_avx2(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_delta_rule<Vector>(args, context);
}

const char* gated_delta_rule_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
