// Each output is a float32 sum over taps in ascending order of positions. A channel is done for all
// rows before its inputs are stored, since they may take the slots of earlier ones.
#include <cmath>

#include "kernels/reference/causal_conv.hash.h"
#include "kernels/reference/kernels.h"

namespace reckon::kernels::reference {
namespace {

constexpr int64_t kTaskChannels = 64;

// The input of a position of the channel: of this call, of an earlier one, or before the first.
float input_at(const CausalConvArgs& args, int64_t position, int64_t channel) {
  if (position < 0) return 0;
  const int64_t row = position - args.first_position;
  if (row >= 0) return args.x[row * args.channels + channel];
  return args.inputs[position % args.ring * args.channels + channel];
}

void convolve_channel(const CausalConvArgs& args, int64_t channel) {
  const float* weight = args.weight + channel * args.width;
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t oldest = args.first_position + r - (args.width - 1);
    float sum = 0;
    for (int64_t j = 0; j < args.width; ++j) sum += weight[j] * input_at(args, oldest + j, channel);
    args.out[r * args.channels + channel] = sum / (1.0F + std::exp(-sum));
  }
  const int64_t first_stored = args.rows > args.ring ? args.rows - args.ring : int64_t{0};
  for (int64_t r = first_stored; r < args.rows; ++r) {
    const int64_t slot = (args.first_position + r) % args.ring;
    args.inputs[slot * args.channels + channel] = args.x[r * args.channels + channel];
  }
}

// Task: a few channels.
void convolve(void* argument, int64_t task, int /*thread*/) {
  const auto& args = *static_cast<const CausalConvArgs*>(argument);
  for (int64_t c = task * kTaskChannels; c < (task + 1) * kTaskChannels && c < args.channels; ++c) {
    convolve_channel(args, c);
  }
}

}  // namespace

void causal_conv(const CausalConvArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  CausalConvArgs copy = args;
  parallel_for(context, (args.channels + kTaskChannels - 1) / kTaskChannels, convolve, &copy);
}

const char* causal_conv_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::reference
