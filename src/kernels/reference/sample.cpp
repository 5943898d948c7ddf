// hashed with "kernels/sample.cpp"
#include "kernels/sample.h"

#include "kernels/reference/kernels.h"
#include "kernels/reference/sample.hash.h"

namespace reckon::kernels::reference {

void sample(const SampleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  for (int64_t r = 0; r < args.rows; ++r) {
    args.picks[r] = sample_row(args.logits + r * args.n, args.n, args.temperature, args.uniform);
  }
}

const char* sample_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
