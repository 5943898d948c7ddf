// Angles in float64, rotation in float32.
#include <cmath>

#include "kernels/reference/kernels.h"
#include "kernels/reference/rope.hash.h"

namespace reckon::kernels::reference {

void rope(const RopeArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const bool half = args.pairing == RopePairing::kHalf;
  const int64_t pairs = args.dims / 2;
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t first = half ? i : 2 * i;
    const int64_t second = half ? i + pairs : 2 * i + 1;
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(args.dims);
    const double frequency = std::pow(args.base, exponent);
    for (int64_t r = 0; r < args.rows; ++r) {
      const double angle = static_cast<double>(args.first_position + r) * frequency;
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      for (int64_t h = 0; h < args.heads; ++h) {
        float* x = args.x + (r * args.heads + h) * args.head_dim;
        const float a = x[first];
        const float b = x[second];
        x[first] = a * cosine - b * sine;
        x[second] = b * cosine + a * sine;
      }
    }
  }
}

const char* rope_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
