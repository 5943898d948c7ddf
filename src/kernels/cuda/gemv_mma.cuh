// The exact one-weight-stream matmul for 1 ... 16 rows on matrix instructions: the kernel behind
// gemv_mma(), instantiated a weight type a file (gemv_mma_*.cu).
//
// Shape. Weights are the 16-row A operand of mma.m16n8k16 and the rows of x its 8 columns (two
// column groups for 9 ... 16 rows), so 1 row or 8 cost the same instructions and the same bytes.
// A column of an mma depends on that column of B alone, which is what makes rows independent.
//
// Streaming. Each of 8 warps owns one of the 8 canonical segments of K of the strip at hand and has
// its own ring of stages in shared memory. Two more warps only fetch: a lane a ring issues bulk
// asynchronous copies (2 to 5 KB each), strip after strip without a break, so that what is in
// flight is bounded by shared memory and the multiplying warps spend no instruction on it. Their
// first fill of the rings comes before griddepcontrol.wait, so with dependent launch the stream
// does not stop between kernels; x is converted into shared memory while those copies fly.
//
// Combining. A warp hands its 16 x 8 partial sums to another warp, which adds the 8 segments in the
// fixed tree ((0 1)(2 3))((4 5)(6 7)) and stores them; two strips may wait, so that multiplying
// goes on meanwhile.
//
// Clusters. x of many rows does not fit beside the rings, and every block reading all of it would
// cost more L2 traffic than the weights. A cluster of C blocks therefore cuts K: block r of it
// holds segments 8r/C ... and its 8 warps work on C strips at once, handing partial sums to the
// block that combines their strip through distributed shared memory. Segments and tree are the same
// for every C, hence so are the bits.
//
// What bounds it, p4, a tile (576 bytes, 1,024 weights) and multiprocessor: memory takes 30 cycles;
// instructions 11 (42, in 4 schedulers); shared memory, at 128 bytes a cycle and 4 cycles for any
// 16-byte load of a warp, 22 at 1 ... 8 rows and 37 at 16, of which 16 read x.
//
// Besides the stream, a launch takes (globaltimer, 16384x5120, 8 rows, 15.3 us in all): 0.5 us
// until all its blocks are through griddepcontrol.wait, 1.8 to read and convert x, 0.5 to 1 from
// the last mma to the end. Times by shape and rows: docs/performance-gpu.md.
//
// Tried and rejected (34816x5120 at 1 row unless said; some on earlier cuts of this kernel):
// - each multiplying warp fetches for itself, 60 more instructions a stage: 23% slower;
// - sums by remote stores and a release at cluster scope, a membar.gpu and an L1 invalidation a
//   strip: 29% slower; by bulk copies between blocks instead of st.async: 1 to 5% slower;
// - 3 blocks a multiprocessor, 64 registers with spills: 3% slower;
// - half the shared memory a launch, so that the next one's blocks fit beside it: no faster, since
//   one block of 8 warps computes hardly faster than the memory delivers; 47% slower at 16 rows;
// - asking L2 for more weights ahead: up to 16% slower, since x then waits behind them;
// - wgmma (a warpgroup on 4 strips, x read by the tensor cores once for all): the same bits, 40%
//   fewer cycles of shared memory at 16 rows; 7 to 27% slower at 4 and 8 rows, 3% faster to 6%
//   slower at 16: nothing hides the wait for a group within the registers that 2 blocks leave;
// - at 16 rows, two strips at once by each warp, reading x for both: as fast at K = 5120, 12 and
//   16% slower at 5120x17408 and 5120x6144, where batches of strips are few;
// - a first fill of the rings of one copy at a time, so that x need not wait behind it: 4% faster
//   at 5120x17408 and 8 rows, 12% slower at 5120x6144 and 4.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/gemv_input.cuh"
#include "kernels/cuda/gemv_tile.cuh"

namespace reckon::kernels::cuda {

__device__ __forceinline__ float4 add4(float4 a, float4 b) {
  return make_float4(__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z),
                     __fadd_rn(a.w, b.w));
}

__device__ __forceinline__ float swiglu(float gate, float up) {
  return gate / (1.0f + expf(-gate)) * up;
}

// Barriers of a block, as shared memory addresses.
struct GemvBarriers {
  uint32_t arrived;       // [slots, warps]
  uint32_t read;          // [slots]
  uint32_t sums_arrived;  // [partial slots]
  uint32_t sums_read;     // [partial slots]

  __device__ __forceinline__ GemvBarriers(const GemvKernelArgs& args, uint32_t shared) {
    arrived = shared + args.shared.barriers;
    read = arrived + args.slots * kGemvWarps * 8;
    sums_arrived = read + args.slots * 8;
    sums_read = sums_arrived + kGemvPartialSlots * 8;
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

// The units of this block's cluster, C at a time, from `first` on.
struct GemvWork {
  int first, step, cluster;
  int segments;  // of a strip, in this block
  int rank;

  __device__ __forceinline__ explicit GemvWork(const GemvKernelArgs& args) {
    first = static_cast<int>(blockIdx.x) / args.cluster * args.cluster;
    step = static_cast<int>(gridDim.x);
    cluster = args.cluster;
    segments = kGemvSegments / cluster;
    rank = args.cluster > 1 ? static_cast<int>(cluster_rank()) : 0;
  }
  // What multiplying warp w does: a segment of the `target`-th unit of a batch.
  __device__ __forceinline__ int segment(int w) const { return rank * segments + w / cluster; }
  __device__ __forceinline__ int target(int w) const { return w % cluster; }
};

// A copying warp: its first lanes fill a ring each, the others only keep step.
template <TileType kType>
__device__ __forceinline__ void copy_weights(const GemvKernelArgs& args, const GemvWork& work,
                                             const GemvBarriers& barriers, uint32_t shared,
                                             uint32_t lane, int first_ring) {
  constexpr int kTile = kTileBytesOf<kType>;
  const int ring = first_ring + static_cast<int>(lane) % kRingsOfCopyWarp;
  const int segment = work.segment(ring), target = work.target(ring);
  const int begin = segment_begin(segment, args.k_tiles);
  const int tiles = segment_begin(segment + 1, args.k_tiles) - begin;
  const uint64_t policy = evict_first_policy();
  const int slot_bytes = kGemvWarps * args.shared.stage;
  RingPosition at{0, 1};  // a fresh barrier is past its phase of parity 1
  for (int base = work.first; base < args.units; base += work.step) {
    const int unit = base + target;
    for (int part = 0; part < args.parts; ++part) {
      int left = 0;
      const uint8_t* from = nullptr;
      if (unit < args.units) {
        const GemvStrip strip = find_strip(args, unit, part);
        from = args.tiles[strip.weight] + (int64_t{strip.index} * args.k_tiles + begin) * kTile;
        left = tiles;
      }
      for (int stage = 0; stage < args.stages; ++stage) {
        barrier_wait(barriers.read + at.slot * 8, at.parity);
        const int count = min(left, args.stage_tiles);
        copy_stages(shared + at.slot * slot_bytes + ring * args.shared.stage, from,
                    static_cast<uint32_t>(count * kTile),
                    barriers.arrived + (at.slot * kGemvWarps + ring) * 8, policy, lane,
                    kRingsOfCopyWarp);
        from += count * kTile;
        left -= count;
        at.step(args.slots);
      }
    }
  }
}

// The combining warp: adds the segments of each strip in the fixed tree and stores the results.
template <int kNTiles>
__device__ __forceinline__ void combine_strips(const GemvKernelArgs& args, const GemvWork& work,
                                               const GemvBarriers& barriers, uint32_t shared,
                                               uint32_t lane, int first_row, int rows) {
  const uint32_t read_there =
      cluster_address(barriers.sums_read, lane < static_cast<uint32_t>(args.cluster) ? lane : 0);
  RingPosition at;
  float gate[kNTiles][4];
  for (int base = work.first; base < args.units; base += work.step) {
    const int unit = base + work.rank;
    for (int part = 0; part < args.parts; ++part) {
      barrier_wait(barriers.sums_arrived + at.slot * 8, at.parity);
      float sum[kNTiles][4];
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        float4 v[kGemvSegments];
#pragma unroll
        for (int s = 0; s < kGemvSegments; ++s) {
          const uint4 bits = load_shared_16(
              shared + args.shared.partials +
              static_cast<uint32_t>((at.slot * kGemvSegments + s) * kNTiles + nt) * 512 +
              lane * 16);
          v[s] = make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y),
                             __uint_as_float(bits.z), __uint_as_float(bits.w));
        }
        const float4 low = add4(add4(v[0], v[1]), add4(v[2], v[3]));
        const float4 all = add4(low, add4(add4(v[4], v[5]), add4(v[6], v[7])));
        sum[nt][0] = all.x, sum[nt][1] = all.y, sum[nt][2] = all.z, sum[nt][3] = all.w;
      }
      if (args.cluster == 1) {
        barrier_arrive(barriers.sums_read + at.slot * 8);
      } else {
        __syncwarp();
        if (lane == 0) {
          barrier_expect(barriers.sums_arrived + at.slot * 8, kGemvSegments * kNTiles * 512);
        }
        __syncwarp();
        if (lane < static_cast<uint32_t>(args.cluster)) {
          cluster_barrier_arrive(read_there + at.slot * 8);
        }
      }
      at.step(kGemvPartialSlots);
      if (unit >= args.units) continue;
      if (args.parts > 1 && part == 0) {
#pragma unroll
        for (int i = 0; i < 4 * kNTiles; ++i) gate[i / 4][i % 4] = sum[i / 4][i % 4];
        continue;
      }
      const GemvStrip strip = find_strip(args, unit, part);
      const int target = args.parts > 1 ? 0 : strip.weight;
      float* out = args.out[target] + first_row * args.out_stride[target];
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int row = nt * 8 + static_cast<int>(lane % 4) * 2 + i % 2;
          const int column = strip.index * 16 + static_cast<int>(lane / 4) + i / 2 * 8;
          if (row >= rows || column >= args.n[strip.weight]) continue;
          const float value = args.parts > 1 ? swiglu(gate[nt][i], sum[nt][i]) : sum[nt][i];
          out[row * args.out_stride[target] + column] = value;
        }
      }
    }
  }
}

// A multiplying warp.
template <TileType kType, int kColumns>
__device__ __forceinline__ void multiply_segments(const GemvKernelArgs& args, const GemvWork& work,
                                                  const GemvBarriers& barriers, uint32_t shared,
                                                  uint32_t lane, int warp, int rows) {
  constexpr int kNTiles = n_tiles_for<kColumns>;
  const int segment = work.segment(warp), target = work.target(warp);
  const int begin = segment_begin(segment, args.k_tiles);
  const int tiles = segment_begin(segment + 1, args.k_tiles) - begin;
  const int in_slice = begin - segment_begin(work.rank * work.segments, args.k_tiles);
  LaneX<kNTiles> segment_x;
#pragma unroll
  for (int nt = 0; nt < kNTiles; ++nt) {
    // Columns beyond the rows repeat row 0; nobody reads their results.
    const int row = nt * 8 + static_cast<int>(lane / 4);
    segment_x.row[nt] = shared + args.shared.x + (row < rows ? row : 0) * args.shared.x_row +
                        in_slice * 128 + (lane % 4) * 32;
  }
  segment_x.plane = args.shared.x_plane;
  segment_x.meta = shared + args.shared.meta + in_slice * (64 * kNTiles) + (lane % 4) * 16;
  const uint32_t own_sums =
      shared + args.shared.partials + static_cast<uint32_t>(segment * kNTiles) * 512 + lane * 16;
  const uint32_t sums = cluster_address(own_sums, target);
  const uint32_t arrived_there = cluster_address(barriers.sums_arrived, target);
  const uint32_t ring = shared + warp * args.shared.stage;
  const int slot_bytes = kGemvWarps * args.shared.stage;

  RingPosition at;
  RingPosition sums_at{0, 1};
  for (int base = work.first; base < args.units; base += work.step) {
    for (int part = 0; part < args.parts; ++part) {
      float total[kNTiles][4] = {};
      LaneX<kNTiles> x = segment_x;
      int left = base + target < args.units ? tiles : 0;
      for (int stage = 0; stage < args.stages; ++stage) {
        const uint32_t from = ring + at.slot * slot_bytes;
        barrier_wait(barriers.arrived + (at.slot * kGemvWarps + warp) * 8, at.parity);
        const int count = min(left, args.stage_tiles);
        left -= count;
        multiply_run<kType, kColumns, kTogether<kType, kColumns>>(from, count, lane, x, total);
        __syncwarp();
        if (lane == 0) barrier_arrive(barriers.read + at.slot * 8);
        at.step(args.slots);
      }
      barrier_wait(barriers.sums_read + sums_at.slot * 8, sums_at.parity);
      const uint32_t slot_offset = sums_at.slot * (kGemvSegments * kNTiles * 512);
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        const float4 v = make_float4(total[nt][0], total[nt][1], total[nt][2], total[nt][3]);
        if (args.cluster == 1) {
          store_shared_16(own_sums + slot_offset + nt * 512, v);
        } else {
          cluster_store(sums + slot_offset + nt * 512, v, arrived_there + sums_at.slot * 8);
        }
      }
      if (args.cluster == 1) barrier_arrive(barriers.sums_arrived + sums_at.slot * 8);
      sums_at.step(kGemvPartialSlots);
    }
  }
  if (args.cluster == 1) return;
  // The other blocks are done with this one's shared memory, and it with theirs, when both partial
  // slots are free again; a slot that was never used counts as free.
  for (int i = 0; i < kGemvPartialSlots; ++i) {
    barrier_wait(barriers.sums_read + sums_at.slot * 8, sums_at.parity);
    sums_at.step(kGemvPartialSlots);
  }
}

// Each warp inits its own few: a warp's inits go one after another.
__device__ __forceinline__ void init_barriers(const GemvKernelArgs& args,
                                              const GemvBarriers& barriers, uint32_t lane,
                                              int warp) {
  if (lane == 0) {
    if (warp < kGemvWarps) {
      for (int slot = 0; slot < args.slots; ++slot) {
        barrier_init(barriers.arrived + (slot * kGemvWarps + warp) * 8, kStageArrivals);
      }
    } else if (warp == kCopyWarp) {
      for (int slot = 0; slot < args.slots; ++slot) {
        barrier_init(barriers.read + slot * 8, kGemvWarps);
      }
    } else if (warp == kCombineWarp) {
      for (int slot = 0; slot < kGemvPartialSlots; ++slot) {
        barrier_init(barriers.sums_arrived + slot * 8, args.cluster > 1 ? 1 : kGemvWarps * 32);
        barrier_init(barriers.sums_read + slot * 8, args.cluster > 1 ? args.cluster : 32);
      }
    }
    barrier_init_fence();
  }
}

// Grid: (blocks, slabs of rows), clusters of args.cluster blocks along x; kGemvThreads threads;
// args.shared.bytes of dynamic shared memory.
template <TileType kType, int kColumns>
__global__ void __launch_bounds__(kGemvThreads, 2)
    gemv_mma_kernel(const __grid_constant__ GemvKernelArgs args) {
  constexpr int kNTiles = n_tiles_for<kColumns>;
  extern __shared__ __align__(128) uint8_t shared_memory[];
  const uint32_t shared = shared_address(shared_memory);
  const uint32_t lane = threadIdx.x % 32;
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x / 32), 0);
  const GemvWork work(args);
  const GemvBarriers barriers(args, shared);
  const int first_row = static_cast<int>(blockIdx.y) * args.slab_rows;
  const int rows = min(args.rows - first_row, args.slab_rows);

  let_dependents_start();
  init_barriers(args, barriers, lane, warp);
  __syncthreads();
  if (args.cluster > 1 && warp == kCombineWarp && lane < kGemvPartialSlots) {
    barrier_expect(barriers.sums_arrived + lane * 8, kGemvSegments * kNTiles * 512);
  }
  cluster_arrive(args.cluster);
  if (warp >= kCopyWarp) {
    copy_weights<kType>(args, work, barriers, shared, lane, (warp - kCopyWarp) * kRingsOfCopyWarp);
    cluster_wait(args.cluster);
    return;
  }
  constexpr int kThreads = kCopyWarp * 32;
  const int slice_begin = segment_begin(work.rank * work.segments, args.k_tiles);
  const int slice_end = segment_begin((work.rank + 1) * work.segments, args.k_tiles);
  wait_for_inputs();
  stage_x<kType, kColumns, kThreads>(args, args.x + first_row * args.x_stride, rows, shared,
                                     slice_begin, slice_end - slice_begin);
  partial_sync(kThreads);
  cluster_wait(args.cluster);
  if (warp == kCombineWarp) {
    combine_strips<kNTiles>(args, work, barriers, shared, lane, first_row, rows);
  } else {
    multiply_segments<kType, kColumns>(args, work, barriers, shared, lane, warp, rows);
  }
}

// The kernel of a type for 1, 8 or 16 columns of x, defined in that type's file.
const void* gemv_mma_p4(int columns);
const void* gemv_mma_p8(int columns);
const void* gemv_mma_f16(int columns);
const void* gemv_mma_bf16(int columns);

// What each of those files defines.
template <TileType kType>
const void* gemv_mma_instance(int columns) {
  if (columns == 1) return reinterpret_cast<const void*>(&gemv_mma_kernel<kType, 1>);
  if (columns == 8) return reinterpret_cast<const void*>(&gemv_mma_kernel<kType, 8>);
  return reinterpret_cast<const void*>(&gemv_mma_kernel<kType, 16>);
}

}  // namespace reckon::kernels::cuda
