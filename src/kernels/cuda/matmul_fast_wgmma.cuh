// fast_tile on compute capability 9.0: wgmma with the weights as operand A, unpacked from tiles
// straight into its registers, and the activations as operand B in shared memory.
//
// Why so:
//  - weight_tiles.h's order is the register order of A, so a weight goes memory -> shared memory ->
//    register, is unpacked there and never written again. With the weights as B they would have to
//    be stored to shared memory unpacked, 2 bytes each, before the tensor cores could read them.
//  - tokens are the n of wgmma, 16 ... 256, so few rows cost few cycles.
//  - activations lie in global memory as wgmma wants them in shared memory (matmul_fast_input.h):
//    a stage is one bulk copy, without a tensor map.
//  - two warpgroups multiply, one more warp copies. Where the accumulators are large, it stands for
//  a
//    whole third warpgroup, which gives its registers to the others (setmaxnreg): 128 accumulators
//    and two sets of A fragments want more than the 168 that the assembler grants otherwise.
//  - k-step w + 1 is unpacked while the tensor cores work on w: one group of wgmma in flight a
//    warpgroup, and the other warpgroup's between.
//  - K is split over a cluster where there are fewer tiles than multiprocessors. Partial sums meet
//    in distributed shared memory, in ascending order: deterministic, and no second launch.
#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "kernels/cuda/matmul_fast_plan.h"
#include "kernels/cuda/matmul_fast_unpack.cuh"
#include "kernels/cuda/matmul_fast_wgmma_ops.cuh"

namespace reckon::kernels::cuda {

inline constexpr int kWgmmaConsumers = 256;  // two warpgroups

template <TileType kType, int kSlices, int kTokens>
struct WgmmaShape {
  static constexpr int kStrips = 8 * kSlices;
  static constexpr int kXBytes = kTokens * 128;
  static constexpr int kWeightBytes = kStrips * static_cast<int>(tile_bytes(kType));
  static constexpr int kStageBytes = kXBytes + kWeightBytes;
  // Two blocks a multiprocessor where the accumulators are small.
  static constexpr int kBlocks = kSlices * kTokens <= 64 ? 2 : 1;
  static constexpr int kThreads = kWgmmaConsumers + (kBlocks == 2 ? 32 : 128);
  static constexpr int kBudget = (kBlocks == 2 ? 110 : 222) * 1024;
  static constexpr int kStages = kBudget / kStageBytes < 8 ? kBudget / kStageBytes : 8;
  static constexpr int kPartialBytes = kSlices * kTokens / 2 * kWgmmaConsumers * 4;
  static constexpr int kBufferBytes =
      kStages * kStageBytes > kPartialBytes || kTokens > 128 ? kStages* kStageBytes : kPartialBytes;
  // Stages, two barriers each, and room to align the first stage to 1024.
  static constexpr int kSharedBytes = kBufferBytes + kStages * 16 + 1024;
  static_assert(kStages >= 2 && kSharedBytes <= 227 * 1024);
};

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ __forceinline__ void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}
__device__ __forceinline__ void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "again:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra done;\nbra again;\ndone:\n}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ __forceinline__ void bulk_copy(uint32_t to, const void* from, int bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// Keeps the compiler from moving what reads accumulators across a wait.
template <int kCount>
__device__ __forceinline__ void pin(float (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(values[i])::"memory");
}

// Which weights a tile multiplies.
struct TilePlace {
  int part, row_tile, token_tile;
};
__device__ __forceinline__ TilePlace tile_place(const TileProblem& p, int tile) {
  // Tokens first: blocks that run together share weights and sweep all of x.
  TilePlace place{0, tile / p.token_tiles, tile % p.token_tiles};
  while (place.part + 1 < p.parts && place.row_tile >= p.first_tile[place.part + 1]) ++place.part;
  place.row_tile -= p.first_tile[place.part];
  return place;
}

__device__ __forceinline__ float swiglu_of(float gate, float up) {
  return gate / (1 + __expf(-gate)) * up;
}

template <TileType kType, int kSlices, int kTokens, bool kSwiglu>
struct WgmmaKernel {
  using Shape = WgmmaShape<kType, kSlices, kTokens>;
  static constexpr int kTileBytes = static_cast<int>(tile_bytes(kType));

  struct Pipeline {
    uint32_t x, weights, full, empty;  // shared addresses of the first stage
    const uint8_t* weight_bytes;
  };

  __device__ static void produce(const TileProblem& p, const Pipeline& pipe, int first_block,
                                 int last_block, int first, int step) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    int stage = 0;
    uint32_t parity = 1;
    bool x_ready = false;
    for (int tile = first; tile < p.tiles; tile += step) {
      const TilePlace place = tile_place(p, tile);
      // Strips beyond the matrix are read as its last one; their results are not stored.
      const int part = kSwiglu ? lane % 2 : place.part;
      const int strip =
          kSwiglu ? place.row_tile * 8 + lane / 2 : place.row_tile * Shape::kStrips + lane;
      const int strips = (p.n[part] + 15) / 16;
      const uint8_t* weight =
          p.weight[part] + static_cast<int64_t>(min(strip, strips - 1)) * p.k_blocks * kTileBytes;
      const uint8_t* x = p.x + static_cast<int64_t>(place.token_tile) * Shape::kXBytes;
      for (int block = first_block; block < last_block; ++block) {
        barrier_wait(pipe.empty + stage * 8, parity);
        const uint32_t full = pipe.full + stage * 8;
        if (lane == 0) barrier_expect(full, Shape::kStageBytes);
        __syncwarp();
        if (lane < Shape::kStrips) {
          bulk_copy(pipe.weights + stage * Shape::kWeightBytes + lane * kTileBytes,
                    weight + static_cast<int64_t>(block) * kTileBytes, kTileBytes, full);
        }
        if (!x_ready) {
          asm volatile("griddepcontrol.wait;" ::: "memory");
          x_ready = true;
        }
        if (lane == 0) {
          bulk_copy(pipe.x + stage * Shape::kXBytes,
                    x + static_cast<int64_t>(block) * p.padded_rows * 128, Shape::kXBytes, full);
        }
        if (++stage == Shape::kStages) {
          stage = 0;
          parity ^= 1;
        }
      }
    }
  }

  template <int kW>
  __device__ __forceinline__ static void multiply(const TileWords<kType> (&words)[kSlices],
                                                  uint32_t (&a)[2][kSlices][4],
                                                  float (&sums)[kSlices][kTokens / 2], uint64_t x,
                                                  int accumulate) {
#pragma unroll
    for (int s = 0; s < kSlices; ++s) words[s].template fragment<kW>(a[kW % 2][s]);
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < kSlices; ++s) {
      Wgmma<kTokens, kType == TileType::kBf16>::run(sums[s], a[kW % 2][s], x + 2 * kW, accumulate);
    }
    wgmma_commit();
    wgmma_wait<1>();
  }

  // One result of this thread: weight row `row` (of the part), token `token`.
  __device__ __forceinline__ static void put(const TileProblem& p, const TilePlace& place, int row,
                                             int token, float value) {
    if (row < p.n[place.part] && token < p.rows) {
      p.out[place.part][static_cast<int64_t>(token) * p.n[place.part] + row] = value;
    }
  }

  // Stores tokens 8j ... 8j + 7 of the tile: values[slice][e], e as wgmma numbers an 8-token piece.
  __device__ __forceinline__ static void store(const TileProblem& p, const TilePlace& place, int j,
                                               const float (&values)[kSlices][4]) {
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const int token = place.token_tile * kTokens + 8 * j + lane % 4 * 2;
    float scale[2] = {1, 1};
    if (p.scales != nullptr) {
      if (token < p.rows) scale[0] = p.scales[token];
      if (token + 1 < p.rows) scale[1] = p.scales[token + 1];
    }
    const int strips = kSwiglu ? 8 : Shape::kStrips;
#pragma unroll
    for (int s = 0; s < (kSwiglu ? 1 : kSlices); ++s) {
      const int slot = kSwiglu ? warp : warp * kSlices + s;
      const int row = (place.row_tile * strips + slot) * 16 + lane / 4;
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float value = values[s][e] * scale[e % 2];
        if constexpr (kSwiglu) value = swiglu_of(value, values[1][e] * scale[e % 2]);
        put(p, place, row + e / 2 * 8, token + e % 2, value);
      }
    }
  }

  __device__ static void consume(const TileProblem& p, const Pipeline& pipe, int first_block,
                                 int last_block, int first, int step, float* partial) {
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    int stage = 0;
    uint32_t parity = 0;
    float sums[kSlices][kTokens / 2];
    uint32_t a[2][kSlices][4];
    for (int tile = first; tile < p.tiles; tile += step) {
      int previous = 0;
      for (int block = first_block; block < last_block; ++block) {
        barrier_wait(pipe.full + stage * 8, parity);
        TileWords<kType> words[kSlices];
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
          words[s].load(
              pipe.weight_bytes + stage * Shape::kWeightBytes + (warp * kSlices + s) * kTileBytes,
              lane);
        }
        // 128-byte swizzle, 8-row atoms 1024 bytes apart; k advances by 32 bytes inside an atom.
        const uint64_t x = (uint64_t{1} << 62) | (uint64_t{64} << 32) | (uint64_t{1} << 16) |
                           ((pipe.x + stage * Shape::kXBytes) >> 4);
        multiply<0>(words, a, sums, x, block > first_block);
        // The wait in multiply<0> leaves its own group running, so the last stage has been read.
        if (block > first_block && lane == 0) barrier_arrive(pipe.empty + previous * 8);
        multiply<1>(words, a, sums, x, 1);
        multiply<2>(words, a, sums, x, 1);
        multiply<3>(words, a, sums, x, 1);
        previous = stage;
        if (++stage == Shape::kStages) {
          stage = 0;
          parity ^= 1;
        }
      }
      wgmma_wait<0>();
#pragma unroll
      for (int s = 0; s < kSlices; ++s) pin(sums[s]);
      if (lane == 0) barrier_arrive(pipe.empty + previous * 8);
      if (partial != nullptr) {
        // Both warpgroups are through with the stages that the partial sums overwrite.
        asm volatile("bar.sync 1, %0;" ::"n"(kWgmmaConsumers) : "memory");
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
#pragma unroll
          for (int i = 0; i < kTokens / 2; ++i) {
            partial[(s * kTokens / 2 + i) * kWgmmaConsumers + threadIdx.x] = sums[s][i];
          }
        }
        return;
      }
      const TilePlace place = tile_place(p, tile);
#pragma unroll
      for (int j = 0; j < kTokens / 8; ++j) {
        float values[kSlices][4];
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
#pragma unroll
          for (int e = 0; e < 4; ++e) values[s][e] = sums[s][4 * j + e];
        }
        store(p, place, j, values);
      }
    }
  }

  __device__ static void run(const TileProblem& p) {
    extern __shared__ uint8_t raw[];
    uint8_t* base = raw + (1024 - shared_address(raw) % 1024) % 1024;
    Pipeline pipe;
    pipe.x = shared_address(base);
    pipe.weight_bytes = base + Shape::kStages * Shape::kXBytes;
    pipe.weights = shared_address(pipe.weight_bytes);
    pipe.full = pipe.x + Shape::kBufferBytes;
    pipe.empty = pipe.full + Shape::kStages * 8;
    if (threadIdx.x == 0) {
      for (int i = 0; i < Shape::kStages; ++i) {
        barrier_init(pipe.full + i * 8, 1);
        barrier_init(pipe.empty + i * 8, kWgmmaConsumers / 32);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int split = p.split;
    const int rank = static_cast<int>(blockIdx.x) % split;
    const int first_block = p.k_blocks * rank / split;
    const int last_block = p.k_blocks * (rank + 1) / split;
    const int first = static_cast<int>(blockIdx.x) / split;
    const int step = static_cast<int>(gridDim.x) / split;
    auto* partial = reinterpret_cast<float*>(base);
    if (threadIdx.x >= kWgmmaConsumers) {
      if constexpr (Shape::kBlocks == 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x < kWgmmaConsumers + 32) {
        produce(p, pipe, first_block, last_block, first, step);
      }
    } else {
      if constexpr (Shape::kBlocks == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      asm volatile("griddepcontrol.wait;" ::: "memory");
      consume(p, pipe, first_block, last_block, first, step, split > 1 ? partial : nullptr);
    }
    if constexpr (kTokens <= 128) {
      if (split == 1) return;
      // One tile a cluster; each block adds up and stores every split-th piece of 8 tokens.
      auto cluster = cooperative_groups::this_cluster();
      cluster.sync();
      if (threadIdx.x < kWgmmaConsumers) {
        const TilePlace place = tile_place(p, first);
        for (int j = rank; j < kTokens / 8; j += split) {
          float values[kSlices][4] = {};
          for (int other = 0; other < split; ++other) {
            const float* theirs = cluster.map_shared_rank(partial, static_cast<unsigned>(other));
#pragma unroll
            for (int s = 0; s < kSlices; ++s) {
#pragma unroll
              for (int e = 0; e < 4; ++e) {
                values[s][e] +=
                    theirs[(s * kTokens / 2 + 4 * j + e) * kWgmmaConsumers + threadIdx.x];
              }
            }
          }
          store(p, place, j, values);
        }
      }
      cluster.sync();
    }
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

template <TileType kType, int kSlices, int kTokens, bool kSwiglu>
__global__ void __launch_bounds__(WgmmaShape<kType, kSlices, kTokens>::kThreads,
                                  WgmmaShape<kType, kSlices, kTokens>::kBlocks)
    fast_tile_wgmma(const __grid_constant__ TileProblem problem) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  WgmmaKernel<kType, kSlices, kTokens, kSwiglu>::run(problem);
#else
  __trap();  // not built for this device; matmul_fast_tile.cu takes the mma kernel there
#endif
}

}  // namespace reckon::kernels::cuda
