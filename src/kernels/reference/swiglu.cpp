#include <cmath>

#include "kernels/reference/kernels.h"
#include "kernels/reference/swiglu.hash.h"

namespace reckon::kernels::reference {
namespace {

void swiglu_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const SwigluArgs*>(argument);
  for (int64_t i = row * args.k; i < (row + 1) * args.k; ++i) {
    const float gate = args.gate[i];
    args.out[i] = gate / (1.0F + std::exp(-gate)) * args.up[i];
  }
}

}  // namespace

void swiglu(const SwigluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  SwigluArgs copy = args;
  parallel_for(context, args.rows, swiglu_row, &copy);
}

const char* swiglu_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
