// The sigmoid gate of attention's output with AVX2, walked like a gated activation.
#include <immintrin.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gated_avx2.h"
#include "kernels/cpu/sigmoid_avx2.h"
#include "kernels/cpu/sigmoid_gate_exact_avx2.hash.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";

// Task: a row.
void gate_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const SigmoidGateArgs*>(argument);
  float* x = args.x + row * args.k;
  gated_columns<times_sigmoid8>(x, args.gate + row * args.k, x, args.k);
}

}  // namespace

void sigmoid_gate_exact_avx2(const SigmoidGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  SigmoidGateArgs copy = args;
  parallel_for(context, args.rows, gate_row, &copy);
}

const char* sigmoid_gate_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
