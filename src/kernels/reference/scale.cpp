#include "kernels/reference/kernels.h"
#include "kernels/reference/scale.hash.h"

namespace reckon::kernels::reference {

void scale(const ScaleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  for (int64_t i = 0; i < args.rows * args.k; ++i) args.x[i] *= args.factor;
}

const char* scale_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
