#include <cmath>

#include "kernels/reference/gated_add.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

void add_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const GatedAddArgs*>(argument);
  const float gate = 1.0F / (1.0F + std::exp(-args.gate[row]));
  for (int64_t i = row * args.k; i < (row + 1) * args.k; ++i) args.out[i] += gate * args.y[i];
}

}  // namespace

void gated_add(const GatedAddArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GatedAddArgs copy = args;
  parallel_for(context, args.rows, add_row, &copy);
}

const char* gated_add_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
