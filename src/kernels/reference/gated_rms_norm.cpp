// The sum of squares is a float64 sum in ascending order; everything else is float32.
#include <cmath>

#include "kernels/reference/gated_rms_norm.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

void normalise_row(void* argument, int64_t row, int /*thread*/) {
  const auto& args = *static_cast<const GatedRmsNormArgs*>(argument);
  const float* x = args.x + row * args.k;
  const float* z = args.z + row * args.k;
  float* out = args.out + row * args.k;
  double sum = 0;
  for (int64_t i = 0; i < args.k; ++i) {
    const double value = x[i];
    sum += value * value;
  }
  const double mean = sum / static_cast<double>(args.k);
  const auto scale = static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(args.epsilon)));
  for (int64_t i = 0; i < args.k; ++i) {
    const float gate = z[i] / (1.0F + std::exp(-z[i]));
    out[i] = x[i] * scale * args.weight[i] * gate;
  }
}

}  // namespace

void gated_rms_norm(const GatedRmsNormArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  GatedRmsNormArgs copy = args;
  parallel_for(context, args.rows, normalise_row, &copy);
}

const char* gated_rms_norm_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
