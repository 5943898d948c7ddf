// tanh by libm, so that a gate far from 0 gives exactly 0 or the gate itself.
#include <cmath>

#include "kernels/reference/geglu.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

constexpr float kRootTwoOverPi = 0.7978845608F;

void geglu_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const GegluArgs*>(argument);
  for (int64_t i = row * args.k; i < (row + 1) * args.k; ++i) {
    const float gate = args.gate[i];
    const float inner = kRootTwoOverPi * (gate + 0.044715F * gate * gate * gate);
    args.out[i] = 0.5F * gate * (1.0F + std::tanh(inner)) * args.up[i];
  }
}

}  // namespace

void geglu(const GegluArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GegluArgs copy = args;
  parallel_for(context, args.rows, geglu_row, &copy);
}

const char* geglu_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
