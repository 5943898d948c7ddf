// One thread a channel and a few rows. Only the first rows of a pass read inputs of earlier calls,
// and what a pass stores may take their slots: so one thread a channel does both, in this order,
// and the other rows are spread over blocks that read the pass's own inputs alone.
#include "kernels/cuda/causal_conv.hash.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_cuda";
constexpr int kThreads = 128;
constexpr int kBlockRows = 16;  // of the pass, in blocks that read no earlier inputs

// input(j): what stands under tap j.
template <typename Input>
__device__ __forceinline__ float convolved(const float* weight, int64_t width, const Input& input) {
  float sum = 0;
  for (int64_t j = 0; j < width; ++j) sum = __fmaf_rn(weight[j], input(j), sum);
  return silu(sum);
}

// The first width - 1 rows, and the ring.
__device__ void begin_channel(const CausalConvArgs& args, int64_t channel, int64_t first_position) {
  const float* x = args.x + channel;
  float* ring = args.inputs + channel;
  const auto slot = first_position % args.ring;  // of row 0
  const auto value = [&](int64_t row) {          // row >= -(width - 1) >= -ring
    if (row >= 0) return x[row * args.channels];
    if (first_position + row < 0) return 0.0F;
    const int64_t at = slot + row;
    return ring[(at < 0 ? at + args.ring : at) * args.channels];
  };
  const int64_t reach = args.width - 1;
  for (int64_t r = 0; r < reach && r < args.rows; ++r) {
    args.out[r * args.channels + channel] =
        convolved(args.weight + channel * args.width, args.width,
                  [&](int64_t j) { return value(r - reach + j); });
  }
  const int64_t stored = args.rows < args.ring ? args.rows : args.ring;
  int64_t to = (slot + args.rows - stored) % args.ring;
  for (int64_t r = args.rows - stored; r < args.rows; ++r) {
    ring[to * args.channels] = x[r * args.channels];
    if (++to == args.ring) to = 0;
  }
}

// Grid: (channels, 1 + blocks of kBlockRows rows behind the first width - 1).
__global__ void __launch_bounds__(kThreads)
    convolve(const __grid_constant__ CausalConvArgs args, const StepInput* input) {
  release_next();
  wait_for_previous();
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (channel >= args.channels) return;
  if (blockIdx.y == 0) return begin_channel(args, channel, input->first_position);
  const int64_t reach = args.width - 1;
  const int64_t begin = reach + (static_cast<int64_t>(blockIdx.y) - 1) * kBlockRows;
  const int64_t end = begin + kBlockRows < args.rows ? begin + kBlockRows : args.rows;
  for (int64_t r = begin; r < end; ++r) {
    const float* oldest = args.x + (r - reach) * args.channels + channel;
    args.out[r * args.channels + channel] =
        convolved(args.weight + channel * args.width, args.width,
                  [&](int64_t j) { return oldest[j * args.channels]; });
  }
}

}  // namespace

void causal_conv_exact(const CausalConvArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  const int64_t others = args.rows - (args.width - 1);
  const int64_t blocks = others > 0 ? (others + kBlockRows - 1) / kBlockRows : 0;
  const dim3 grid(static_cast<uint32_t>((args.channels + kThreads - 1) / kThreads),
                  static_cast<uint32_t>(1 + blocks));
  launch(context, convolve, grid, dim3(kThreads), 0, args, queue(context).input);
}

const char* causal_conv_exact_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
