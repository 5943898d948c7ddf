// hashed with "kernels/cpu/delta_rule.cpp"
// The gated delta rule with AVX-512, in the order of delta_rule.h.
#include <immintrin.h>

#include "kernels/cpu/delta_rule_steps.h"
#include "kernels/cpu/gated_delta_rule_exact_avx512.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx512";

struct Vector {
  using Register = __m512;
  static constexpr int64_t kLanes = 16;
  static Register zero() { return _mm512_setzero_ps(); }
  static Register all(float x) { return _mm512_set1_ps(x); }
  static Register load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Register x) { _mm512_storeu_ps(p, x); }
  static Register add(Register a, Register b) { return _mm512_add_ps(a, b); }
  static Register sub(Register a, Register b) { return _mm512_sub_ps(a, b); }
  static Register mul(Register a, Register b) { return _mm512_mul_ps(a, b); }
  static Register fma(Register a, Register b, Register c) { return _mm512_fmadd_ps(a, b, c); }
};

}  // namespace

void gated_delta_rule_exact_avx512(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_delta_rule<Vector>(args, context);
}

const char* gated_delta_rule_exact_avx512_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
