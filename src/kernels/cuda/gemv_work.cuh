// Which strips a block of gemv_mma.cuh works on, and the barriers by which its warps wait for each
// other.
#pragma once

#include <cstdint>

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_geometry.h"

namespace reckon::kernels::cuda {

// Barriers of a block, as shared memory addresses.
struct GemvBarriers {
  uint32_t arrived;       // [slots, warps]
  uint32_t read;          // [slots]
  uint32_t sums_arrived;  // [partial slots]
  uint32_t sums_read;     // [partial slots]
  uint32_t x_read;        // x is in shared memory

  __device__ __forceinline__ GemvBarriers(const GemvKernelArgs& args, uint32_t shared) {
    arrived = shared + args.shared.barriers;
    read = arrived + args.slots * kGemvWarps * 8;
    sums_arrived = read + args.slots * 8;
    sums_read = sums_arrived + kGemvPartialSlots * 8;
    x_read = sums_read + kGemvPartialSlots * 8;
  }
};

// A position in a ring: which slot, and the parity of the phase that completes there next.
struct RingPosition {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void step(int slots) {
    if (++slot == slots) slot = 0, parity ^= 1;
  }
};

// The work of this block's cluster: batches of C units, of both parts in turn for SwiGLU.
struct GemvWork {
  int first, step;
  uint32_t target_mask;  // C - 1
  int target_bits;
  int segments;  // of a strip, in this block
  int rank;
  int batches, part_bits;

  __device__ __forceinline__ explicit GemvWork(const GemvKernelArgs& args) {
    target_mask = static_cast<uint32_t>(args.cluster) - 1;
    target_bits = __popc(target_mask);
    first = static_cast<int>(blockIdx.x & ~target_mask);
    step = static_cast<int>(gridDim.x);
    segments = kGemvSegments >> target_bits;
    rank = args.cluster > 1 ? static_cast<int>(cluster_rank()) : 0;
    part_bits = args.parts - 1;
    batches = (args.units - first + step - 1) / step * args.parts;
  }
  // What multiplying warp w does: a segment of the `target`-th unit of a batch.
  __device__ __forceinline__ int segment(int w) const {
    return rank * segments + (w >> target_bits);
  }
  __device__ __forceinline__ int target(int w) const {
    return static_cast<int>(static_cast<uint32_t>(w) & target_mask);
  }
  __device__ __forceinline__ int unit(int batch) const {
    return first + (batch >> part_bits) * step;
  }
  __device__ __forceinline__ int part(int batch) const { return batch & part_bits; }
};

}  // namespace reckon::kernels::cuda
