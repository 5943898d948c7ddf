#include <cmath>

#include "kernels/reference/kernels.h"
#include "kernels/reference/sigmoid_gate.hash.h"

namespace reckon::kernels::reference {
namespace {

void gate_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const SigmoidGateArgs*>(argument);
  for (int64_t i = row * args.k; i < (row + 1) * args.k; ++i) {
    args.x[i] *= 1.0F / (1.0F + std::exp(-args.gate[i]));
  }
}

}  // namespace

void sigmoid_gate(const SigmoidGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  SigmoidGateArgs copy = args;
  parallel_for(context, args.rows, gate_row, &copy);
}

const char* sigmoid_gate_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
