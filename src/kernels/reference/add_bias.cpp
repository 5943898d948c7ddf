#include "kernels/reference/add_bias.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {

void add_bias(const AddBiasArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t i = 0; i < args.k; ++i) args.x[r * args.k + i] += args.bias[i];
  }
}

const char* add_bias_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
