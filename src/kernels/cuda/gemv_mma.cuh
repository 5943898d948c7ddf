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
// does not stop between kernels; x is converted into shared memory while those copies fly. x waits
// behind what was asked for before it, so the last part of that fill may wait until x is there
// (GemvTuning::early_slots).
//
// Sixteen rows. A p4 warp then takes two strips at once, the same segment of both, and reads each
// operand of x once for the two: x is most of what shared memory delivers.
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
// shared memory, at 128 bytes a cycle and 4 cycles for any 16-byte load of a warp, 22 at 1 ... 8
// rows and 23 at 16; instructions 22 (88, in 4 schedulers) at 8 rows and 23 at 16, the tensor units
// 6 and 12. At 16 rows a multiprocessor still takes 36 in all: without its copies (the same
// barriers, nothing fetched) a launch is hardly faster there, and 7% faster at 8.
//
// Besides the stream, a launch takes (globaltimer, 16384x5120, 8 rows, 15 us in all): 0.5 us until
// all its blocks are through griddepcontrol.wait, 1.2 to read and convert x (3 for 17,408 columns,
// 4 to 5 with 16 rows of them, at which rate L2 delivers it), 1 from the last mma to the end.
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
// - two strips at once at 2 ... 8 rows: 4% slower, 1 to 3% faster at 5120x17408 and 16384x5120;
// - 16 multiplying warps in one block, x in shared memory once for all: 3% faster at 16384x5120 and
//   8 rows, 3% slower at 34816x5120, 3 to 5% slower at 16 rows;
// - strips shared out evenly among the clusters, in whole runs or in the last round alone: 5%
//   faster at 16384x5120, 5 to 15% slower elsewhere. A cluster that ends early lets the next launch
//   begin, and there the clusters with one strip more come first;
// - 16 columns of x a lane, as the mma takes them, when converting: twice the cache lines a load.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_combine.cuh"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/gemv_input.cuh"
#include "kernels/cuda/gemv_tile.cuh"
#include "kernels/cuda/gemv_work.cuh"

namespace reckon::kernels::cuda {

// A copying warp: its first lanes fill a ring each, the others only keep step.
template <TileType kType, int kStrips>
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
  int copies = 0;
  for (int first = 0; first < work.batches; first += kStrips) {
    int left[kStrips];
    const uint8_t* from[kStrips];
#pragma unroll
    for (int s = 0; s < kStrips; ++s) {
      const int batch = first + s, unit = work.unit(batch) + target;
      const bool is_work = batch < work.batches && unit < args.units;
      left[s] = is_work ? tiles : 0;
      const GemvStrip strip = find_strip(args, is_work ? unit : 0, work.part(batch));
      from[s] = args.tiles[strip.weight] + (int64_t{strip.index} * args.k_tiles + begin) * kTile;
    }
    for (int stage = 0; stage < args.stages; ++stage) {
      if (copies++ == args.early_slots) barrier_wait(barriers.x_read, 0);
      barrier_wait(barriers.read + at.slot * 8, at.parity);
      uint32_t bytes[kStrips];
#pragma unroll
      for (int s = 0; s < kStrips; ++s) {
        const int count = min(left[s], args.stage_tiles);
        left[s] -= count;
        bytes[s] = static_cast<uint32_t>(count * kTile);
      }
      copy_stages<kStrips>(shared + at.slot * slot_bytes + ring * args.shared.stage,
                           static_cast<uint32_t>(args.stage_tiles * kTile), from, bytes,
                           barriers.arrived + (at.slot * kGemvWarps + ring) * 8, policy, lane,
                           kRingsOfCopyWarp);
#pragma unroll
      for (int s = 0; s < kStrips; ++s) from[s] += bytes[s];
      at.step(args.slots);
    }
  }
}

// Waits until the partial slot of a batch may be written, and returns which one it is.
__device__ __forceinline__ uint32_t wait_for_partial_slot(const GemvBarriers& barriers, int batch) {
  const uint32_t slot = static_cast<uint32_t>(batch) % kGemvPartialSlots;
  // A fresh barrier is past its phase of parity 1.
  barrier_wait(barriers.sums_read + slot * 8,
               (static_cast<uint32_t>(batch) / kGemvPartialSlots & 1) ^ 1);
  return slot;
}

// The sums of the first strip alone.
template <int kStrips, int kNTiles>
__device__ __forceinline__ float (
    &first_strip(float (&total)[kStrips][kNTiles][4]))[1][kNTiles][4] {
  return reinterpret_cast<float(&)[1][kNTiles][4]>(total);
}

// A multiplying warp.
template <TileType kType, int kColumns>
__device__ __forceinline__ void multiply_segments(const GemvKernelArgs& args, const GemvWork& work,
                                                  const GemvBarriers& barriers, uint32_t shared,
                                                  uint32_t lane, int warp, int rows) {
  constexpr int kNTiles = n_tiles_for<kColumns>;
  constexpr int kStrips = strips_together(kType, kColumns);
  constexpr int kTile = kTileBytesOf<kType>;
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
  for (int first = 0; first < work.batches; first += kStrips) {
    float total[kStrips][kNTiles][4] = {};
    LaneX<kNTiles> x = segment_x;
    int left[kStrips];  // tiles; 0 where the batch ends before this warp's strip
#pragma unroll
    for (int s = 0; s < kStrips; ++s) {
      const int batch = first + s;
      left[s] = batch < work.batches && work.unit(batch) + target < args.units ? tiles : 0;
    }
    for (int stage = 0; stage < args.stages; ++stage) {
      const uint32_t from = ring + at.slot * slot_bytes;
      barrier_wait(barriers.arrived + (at.slot * kGemvWarps + warp) * 8, at.parity);
      const int count = min(left[0], args.stage_tiles);
      if (kStrips == 1 || left[kStrips - 1] > 0) {
        multiply_run<kType, kColumns, kStrips, kTogether<kType, kColumns>>(
            from, args.stage_tiles * kTile, count, lane, x, total);
      } else {
        multiply_run<kType, kColumns, 1, kTogether<kType, kColumns>>(from, 0, count, lane, x,
                                                                     first_strip(total));
      }
#pragma unroll
      for (int s = 0; s < kStrips; ++s) left[s] -= min(left[s], args.stage_tiles);
      __syncwarp();
      if (lane == 0) barrier_arrive(barriers.read + at.slot * 8);
      at.step(args.slots);
    }
#pragma unroll
    for (int s = 0; s < kStrips; ++s) {
      const int batch = first + s;
      if (batch >= work.batches) break;
      const uint32_t slot = wait_for_partial_slot(barriers, batch);
      const uint32_t slot_offset = slot * (kGemvSegments * kNTiles * 512);
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        const float4 v =
            make_float4(total[s][nt][0], total[s][nt][1], total[s][nt][2], total[s][nt][3]);
        if (args.cluster == 1) {
          store_shared_16(own_sums + slot_offset + nt * 512, v);
        } else {
          cluster_store(sums + slot_offset + nt * 512, v, arrived_there + slot * 8);
        }
      }
      if (args.cluster == 1) barrier_arrive(barriers.sums_arrived + slot * 8);
    }
  }
  if (args.cluster == 1) return;
    // The other blocks are done with this one's shared memory, and it with theirs, when the partial
    // slots are free again; a slot that was never used counts as free.
#pragma unroll
  for (int i = 0; i < kGemvPartialSlots; ++i) wait_for_partial_slot(barriers, work.batches + i);
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
      barrier_init(barriers.x_read, kCopyWarp);
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
    copy_weights<kType, strips_together(kType, kColumns)>(args, work, barriers, shared, lane,
                                                          (warp - kCopyWarp) * kRingsOfCopyWarp);
    cluster_wait(args.cluster);
    return;
  }
  constexpr int kThreads = kCopyWarp * 32;
  const int slice_begin = segment_begin(work.rank * work.segments, args.k_tiles);
  const int slice_end = segment_begin((work.rank + 1) * work.segments, args.k_tiles);
  cluster_wait(args.cluster);
  wait_for_inputs();
  stage_x<kType, kColumns, kThreads>(args, args.x + first_row * args.x_stride, rows, shared,
                                     slice_begin, slice_end - slice_begin);
  __syncwarp();
  if (lane == 0) barrier_arrive(barriers.x_read);
  partial_sync(kThreads);
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
