#include "kernels/reference/kernels.h"
#include "kernels/reference/split_gate.hash.h"

namespace reckon::kernels::reference {
namespace {

void split_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const SplitGateArgs*>(argument);
  for (int64_t head = row * args.heads; head < (row + 1) * args.heads; ++head) {
    const float* x = args.x + head * 2 * args.dim;
    for (int64_t i = 0; i < args.dim; ++i) args.q[head * args.dim + i] = x[i];
    for (int64_t i = 0; i < args.dim; ++i) args.gate[head * args.dim + i] = x[args.dim + i];
  }
}

}  // namespace

void split_gate(const SplitGateArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  SplitGateArgs copy = args;
  parallel_for(context, args.rows, split_row, &copy);
}

const char* split_gate_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
