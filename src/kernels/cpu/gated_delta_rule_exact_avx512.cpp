// hashed with "kernels/cpu/delta_rule.cpp"
// The gated delta rule with AVX-512, in the order of delta_rule.h.
#include "kernels/cpu/delta_rule_steps.h"
#include "kernels/cpu/delta_vector_avx512.h"
#include "kernels/cpu/gated_delta_rule_exact_avx512.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx512";

}  // namespace

void gated_delta_rule_exact_avx512(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  run_delta_rule<Vector512>(args, context);
}

const char* gated_delta_rule_exact_avx512_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
