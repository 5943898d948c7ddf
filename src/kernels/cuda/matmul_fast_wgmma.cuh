// fast_tile on compute capability 9.0: wgmma with the weights as operand A, unpacked from tiles
// straight into its registers, and the activations as operand B in shared memory.
//
// Why so:
//  - weight_tiles.h's order is the register order of A, so a weight goes memory -> shared memory ->
//    register, is unpacked there and never written again. With the weights as B they would have to
//    be stored to shared memory unpacked, 2 bytes each, before the tensor cores could read them.
//  - tokens are the n of wgmma, 16 ... 256, so few rows cost few cycles.
//  - activations lie in global memory as wgmma wants them in shared memory (matmul_fast_input.h):
//    a stage of x is one bulk copy, without a tensor map.
//  - a strip of weights belongs to one warp, which copies it for itself (cp.async into a ring of
//    its own): no barrier, and the copies of the next tile start before this one ends. As bulk
//    copies by one warp, 576 bytes each, they cost 100 cycles apiece and starved tiles of 128
//    tokens and fewer.
//  - two warpgroups multiply, one more warp copies x. Where the accumulators are large, it stands
//    for a whole third warpgroup, which gives its registers to the others (setmaxnreg): 128
//    accumulators and two sets of A fragments want more than the 168 that the assembler grants
//    otherwise.
//  - the next block of K is unpacked into a second set of A registers while the tensor cores work
//    on this one. In groups of a single k-step, the wait for the next stage's barrier, its loads
//    and its first unpacking had only one step in flight to hide behind: 18 % slower at 128 × 256.
//  - K is split over a cluster where there are fewer tiles than multiprocessors. Partial sums meet
//    in distributed shared memory, in ascending order: deterministic, and no second launch.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/matmul_fast_plan.h"
#include "kernels/cuda/matmul_fast_store.cuh"
#include "kernels/cuda/matmul_fast_unpack.cuh"
#include "kernels/cuda/matmul_fast_wgmma_ops.cuh"

namespace reckon::kernels::cuda {

inline constexpr int kWgmmaConsumers = 256;  // two warpgroups

template <TileType kType, int kSlices, int kTokens>
struct WgmmaShape {
  static constexpr int kTileBytes = static_cast<int>(tile_bytes(kType));
  static constexpr int kStrips = 8 * kSlices;
  // Two blocks a multiprocessor where the accumulators are small.
  static constexpr int kBlocks =
      kSlices * kTokens <= 64 && kStrips * kTileBytes <= 20 * 1024 ? 2 : 1;
  static constexpr int kThreads = kWgmmaConsumers + (kBlocks == 2 ? 32 : 128);
  static constexpr int kBudget = (kBlocks == 2 ? 112 : 224) * 1024;
  // Blocks of weights under way a warp, then stages of x, as many as fit.
  static constexpr int kWeightBudget = (kBlocks == 2 ? 64 : 96) * 1024;
  static constexpr int kDepth = std::min(kWeightBudget / (kStrips * kTileBytes), 8);
  static constexpr int kWeightBytes = kStrips * kTileBytes * kDepth;
  static constexpr int kScaleBytes = 2 * kTokens * 4;
  static constexpr int kXBytes = kTokens * 128;
  static constexpr int kStages =
      std::min((kBudget - kWeightBytes - kScaleBytes - 256) / kXBytes, 8);
  // The partial sums of a split tile take the place of all this.
  static constexpr int kPartialBytes =
      kTokens > 128 ? 0 : kSlices* kTokens / 2 * kWgmmaConsumers * 4;
  static constexpr int kScales = std::max(kStages * kXBytes + kWeightBytes, kPartialBytes);
  static constexpr int kBarriers = kScales + kScaleBytes;
  static constexpr int kSharedBytes = kBarriers + kStages * 16;
  static_assert(kStages >= 2 && kDepth >= 2 && kSharedBytes <= 227 * 1024);
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

template <TileType kType, int kSlices, int kTokens, bool kSwiglu>
struct WgmmaKernel {
  using Shape = WgmmaShape<kType, kSlices, kTokens>;
  static constexpr int kTileBytes = static_cast<int>(tile_bytes(kType));

  struct Pipeline {
    uint8_t* base;         // stages of x, the warps' rings, scales, barriers
    uint32_t full, empty;  // shared addresses of the first stage's barriers
  };

  // One lane: the stages of x.
  __device__ static void produce(const TileProblem& p, const Pipeline& pipe, int first_block,
                                 int last_block, int first, int step) {
    const uint32_t stages = shared_address(pipe.base);
    const int64_t block_bytes = static_cast<int64_t>(p.padded_rows) * 128;
    int stage = 0;
    uint32_t parity = 1;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    for (int tile = first; tile < p.tiles; tile += step) {
      const uint8_t* x = p.x + static_cast<int64_t>(tile % p.token_tiles) * Shape::kXBytes +
                         first_block * block_bytes;
      for (int block = first_block; block < last_block; ++block, x += block_bytes) {
        barrier_wait(pipe.empty + stage * 8, parity);
        barrier_expect(pipe.full + stage * 8, Shape::kXBytes);
        bulk_copy(stages + stage * Shape::kXBytes, x, Shape::kXBytes, pipe.full + stage * 8);
        if (++stage == Shape::kStages) {
          stage = 0;
          parity ^= 1;
        }
      }
    }
  }

  // The strips of one warp, tile after tile: kDepth - 1 blocks of K ahead of the products.
  class Weights {
   public:
    __device__ Weights(const TileProblem& p, const Pipeline& pipe, int first_block, int last_block,
                       int first, int step)
        : p_(p),
          ring_(pipe.base + Shape::kStages * Shape::kXBytes +
                threadIdx.x / 32 * (Shape::kWeightBytes / 8)),
          first_block_(first_block),
          blocks_(last_block - first_block),
          tile_(first),
          step_(step) {
      point();
      for (int i = 0; i < Shape::kDepth - 1; ++i) fetch();
    }

    // The next block of K into registers, and one more on its way.
    __device__ __forceinline__ void load(TileWords<kType> (&words)[kSlices]) {
      asm volatile("cp.async.wait_group %0;" ::"n"(Shape::kDepth - 2) : "memory");
      __syncwarp();
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        words[s].load(ring_ + (out_ * kSlices + s) * kTileBytes,
                      static_cast<int>(threadIdx.x % 32));
      }
      out_ = out_ + 1 == Shape::kDepth ? 0 : out_ + 1;
      fetch();  // over the block before, which every lane has in its registers
    }

   private:
    __device__ __forceinline__ void point() {
      if (tile_ >= p_.tiles) return;
      const TilePlace place = tile_place(p_, tile_);
      const int warp = static_cast<int>(threadIdx.x / 32);
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        // Strips beyond the matrix are read as its last one; their results are not stored.
        const int part = kSwiglu ? s : place.part;
        const int strip = kSwiglu ? place.row_tile * 8 + warp
                                  : place.row_tile * Shape::kStrips + warp * kSlices + s;
        const int64_t row = min(strip, (p_.n[part] + 15) / 16 - 1);
        from_[s] = p_.weight[part] + (row * p_.k_blocks + first_block_) * kTileBytes +
                   threadIdx.x % 32 * 16;
      }
      left_ = blocks_;
    }

    __device__ __forceinline__ void fetch() {
      if (tile_ < p_.tiles) {
        const auto lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
          const uint32_t to = shared_address(ring_ + (in_ * kSlices + s) * kTileBytes) + lane * 16;
#pragma unroll
          for (int i = 0; i < kTileBytes; i += 512) {
            if (i + 512 <= kTileBytes || i + lane * 16 < kTileBytes) {
              asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i),
                           "l"(from_[s] + i)
                           : "memory");
            }
          }
          from_[s] += kTileBytes;
        }
        if (--left_ == 0) {
          tile_ += step_;
          point();
        }
      }
      in_ = in_ + 1 == Shape::kDepth ? 0 : in_ + 1;
      asm volatile("cp.async.commit_group;" ::: "memory");
    }

    const TileProblem& p_;
    uint8_t* ring_;
    const uint8_t* from_[kSlices];
    int first_block_, blocks_, tile_, step_;
    int left_ = 0, in_ = 0, out_ = 0;
  };

  // k-steps that go into one group of wgmma, and so into one set of A registers: a block's four, or
  // two of them where that would be too many registers.
  static constexpr int kBatch = kSlices == 2 || kTokens == 64 ? 2 : 4;

  struct Fragments {
    uint32_t a[kBatch][kSlices][4] = {};

    // Called when the group that reads them is through: until then the assembler must not give
    // their registers to anything else, which it would do after the next wait for any group
    // (bench/cuda/wgmma_hazards.py looks for that).
    __device__ __forceinline__ void retire() {
#pragma unroll
      for (int w = 0; w < kBatch; ++w) {
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
#pragma unroll
          for (int r = 0; r < 4; ++r) asm volatile("" ::"r"(a[w][s][r]) : "memory");
        }
      }
    }

    // `zero` is 0, which the compiler does not know: f16 and bf16 weights, which need no unpacking,
    // so get registers of their own. As they were loaded, the assembler moved them at the loop's
    // end while a group still read them.
    template <int kFirst>
    __device__ __forceinline__ void unpack(const TileWords<kType> (&words)[kSlices],
                                           uint32_t zero) {
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        words[s].template fragment<kFirst>(a[0][s]);
        words[s].template fragment<kFirst + 1>(a[1][s]);
        if constexpr (kBatch == 4) {
          words[s].template fragment<2>(a[2][s]);
          words[s].template fragment<3>(a[3][s]);
        }
        if constexpr (kType == TileType::kF16 || kType == TileType::kBf16) {
#pragma unroll
          for (int w = 0; w < kBatch; ++w) {
#pragma unroll
            for (int r = 0; r < 4; ++r) a[w][s][r] ^= zero;
          }
        }
      }
    }
  };

  // One group: k-steps kFirst ... of the stage whose x descriptor is given. Returns when the group
  // before it is through, with this one running.
  template <int kFirst>
  __device__ __forceinline__ static void multiply(const Fragments& fragments,
                                                  float (&sums)[kSlices][kTokens / 2], uint64_t x,
                                                  int accumulate) {
    wgmma_fence();
#pragma unroll
    for (int w = 0; w < kBatch; ++w) {
#pragma unroll
      for (int s = 0; s < kSlices; ++s) {
        Wgmma<kTokens, kType == TileType::kBf16>::run(sums[s], fragments.a[w][s],
                                                      x + 2 * (kFirst + w), accumulate | w);
      }
    }
    wgmma_commit();
    wgmma_wait<1>();
  }

  // Where a consumer stands in the pipeline.
  struct Cursor {
    int stage = 0;
    uint32_t parity = 0;

    __device__ __forceinline__ void advance() {
      if (++stage == Shape::kStages) {
        stage = 0;
        parity ^= 1;
      }
    }
    // 128-byte swizzle, 8-row atoms 1024 bytes apart; k advances by 32 bytes inside an atom.
    __device__ __forceinline__ uint64_t x(const Pipeline& pipe) const {
      return (uint64_t{1} << 62) | (uint64_t{64} << 32) | (uint64_t{1} << 16) |
             ((shared_address(pipe.base) + stage * Shape::kXBytes) >> 4);
    }
    __device__ __forceinline__ void wait(const Pipeline& pipe) const {
      barrier_wait(pipe.full + stage * 8, parity);
    }
    __device__ __forceinline__ void release(const Pipeline& pipe) const {
      if (threadIdx.x % 32 == 0) barrier_arrive(pipe.empty + stage * 8);
    }
  };

  // The products of `blocks` blocks of K, at least one; `cursor` is past them afterwards. The last
  // group may still run.
  __device__ __forceinline__ static void multiply_blocks(const Pipeline& pipe, int blocks,
                                                         uint32_t zero, Weights& weights,
                                                         Cursor& cursor,
                                                         float (&sums)[kSlices][kTokens / 2]) {
    // Where unpacking is most of a warp's work, the next weights are read before the group is
    // issued. Elsewhere that only holds the group up (10 % slower at 128 × 128).
    constexpr bool kEarly = kSlices == 2 && kTokens == 128;
    TileWords<kType> words[kSlices];
    Fragments first, second;
    Cursor before = cursor;
    weights.load(words);
    first.template unpack<0>(words, zero);
    if constexpr (kBatch == 4) {
      // Two blocks a turn, so that each set of registers is named at compile time.
      for (int block = 0; block < blocks; block += 2) {
        cursor.wait(pipe);
        multiply<0>(first, sums, cursor.x(pipe), block);
        second.retire();
        if (block > 0) before.release(pipe);
        before = cursor;
        cursor.advance();
        if (block + 1 == blocks) break;
        weights.load(words);
        second.template unpack<0>(words, zero);
        cursor.wait(pipe);
        multiply<0>(second, sums, cursor.x(pipe), 1);
        first.retire();
        before.release(pipe);
        before = cursor;
        cursor.advance();
        if (block + 2 == blocks) break;
        weights.load(words);
        first.template unpack<0>(words, zero);
      }
    } else {
      for (int block = 0; block < blocks; ++block) {
        cursor.wait(pipe);
        multiply<0>(first, sums, cursor.x(pipe), block);
        second.retire();
        if (block > 0) before.release(pipe);
        second.template unpack<2>(words, zero);
        if (kEarly && block + 1 < blocks) weights.load(words);
        multiply<2>(second, sums, cursor.x(pipe), 1);
        first.retire();
        before = cursor;
        cursor.advance();
        if (block + 1 == blocks) break;
        if (!kEarly) weights.load(words);
        first.template unpack<0>(words, zero);
      }
    }
    wgmma_wait<0>();
    first.retire();
    second.retire();
#pragma unroll
    for (int s = 0; s < kSlices; ++s) pin(sums[s]);
    before.release(pipe);
  }

  // Stores tokens 8j ... 8j + 7 of the tile.
  __device__ __forceinline__ static void store(const TileProblem& p, const TilePlace& place, int j,
                                               const float (&values)[kSlices][4], float2 scales,
                                               bool whole) {
    const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
    const int strip =
        kSwiglu ? place.row_tile * 8 + warp : place.row_tile * Shape::kStrips + warp * kSlices;
    store_piece<kSlices, kSwiglu>(p, place.part, strip * 16 + lane / 4,
                                  place.token_tile * kTokens + 8 * j + lane % 4 * 2, values, scales,
                                  whole);
  }

  __device__ static void consume(const TileProblem& p, const Pipeline& pipe, int first_block,
                                 int last_block, int first, int step, float4* partial) {
    constexpr int kTileRows = kSwiglu ? 128 : 128 * kSlices;
    Weights weights(p, pipe, first_block, last_block, first, step);
    Cursor cursor;
    float sums[kSlices][kTokens / 2];
    // Scales of a tile's tokens, in turn in two places: who is done early may be a tile ahead.
    auto* scales = reinterpret_cast<float*>(pipe.base + Shape::kScales);
    asm volatile("griddepcontrol.wait;" ::: "memory");
    for (int tile = first; tile < p.tiles; tile += step) {
      const TilePlace place = tile_place(p, tile);
      const float scale =
          threadIdx.x < kTokens
              ? token_scale(p, place.token_tile * kTokens + static_cast<int>(threadIdx.x))
              : 1;
      multiply_blocks(pipe, last_block - first_block, p.padded_rows % 8, weights, cursor, sums);
      if (threadIdx.x < kTokens) scales[threadIdx.x] = scale;
      asm volatile("bar.sync 1, %0;" ::"n"(kWgmmaConsumers) : "memory");
      if (partial != nullptr) {
        // Both warpgroups are through with what the partial sums overwrite.
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
#pragma unroll
          for (int j = 0; j < kTokens / 8; ++j) {
            partial[(s * kTokens / 8 + j) * kWgmmaConsumers + threadIdx.x] = make_float4(
                sums[s][4 * j], sums[s][4 * j + 1], sums[s][4 * j + 2], sums[s][4 * j + 3]);
          }
        }
        return;
      }
      const bool whole = (place.token_tile + 1) * kTokens <= p.rows &&
                         (place.row_tile + 1) * kTileRows <= p.n[place.part];
      const float* mine = scales + threadIdx.x % 4 * 2;
      const auto store_all = [&](bool is_whole) {
#pragma unroll
        for (int j = 0; j < kTokens / 8; ++j) {
          float values[kSlices][4];
#pragma unroll
          for (int s = 0; s < kSlices; ++s) {
#pragma unroll
            for (int e = 0; e < 4; ++e) values[s][e] = sums[s][4 * j + e];
          }
          store(p, place, j, values, *reinterpret_cast<const float2*>(mine + 8 * j), is_whole);
        }
      };
      if (whole) {
        store_all(true);
      } else {
        store_all(false);
      }
      scales = reinterpret_cast<float*>(pipe.base + Shape::kScales) +
               (scales == reinterpret_cast<float*>(pipe.base + Shape::kScales) ? kTokens : 0);
    }
  }

  // Of a split tile, one a cluster: each block adds up and stores every split-th piece of 8 tokens.
  __device__ __forceinline__ static void add_up(const TileProblem& p, int tile, int rank,
                                                float4* partial) {
    auto cluster = cooperative_groups::this_cluster();
    const TilePlace place = tile_place(p, tile);
    constexpr int kPieces = kTokens / 8;
    constexpr int kMost = kPieces / 2;  // of a block: split is at least 2
    // No store before the last load: the compiler would not move a load across it, and one latency
    // after the other was most of a small matmul's time.
    float values[kMost][kSlices][4] = {};
    float2 scales[kMost];
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int token = place.token_tile * kTokens + 8 * (rank + i * p.split) +
                        static_cast<int>(threadIdx.x) % 4 * 2;
      scales[i] = make_float2(token_scale(p, token), token_scale(p, token + 1));
    }
    for (int other = 0; other < p.split; ++other) {
      const float4* from =
          cluster.map_shared_rank(partial, static_cast<unsigned>(other)) + threadIdx.x;
#pragma unroll
      for (int i = 0; i < kMost; ++i) {
        const int j = rank + i * p.split;
        if (j >= kPieces) continue;
#pragma unroll
        for (int s = 0; s < kSlices; ++s) {
          const float4 theirs = from[(s * kPieces + j) * kWgmmaConsumers];
          values[i][s][0] += theirs.x;
          values[i][s][1] += theirs.y;
          values[i][s][2] += theirs.z;
          values[i][s][3] += theirs.w;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kMost; ++i) {
      const int j = rank + i * p.split;
      if (j < kPieces) store(p, place, j, values[i], scales[i], false);
    }
  }

  __device__ static void run(const TileProblem& p) {
    extern __shared__ __align__(1024) uint8_t base[];
    Pipeline pipe;
    pipe.base = base;
    pipe.full = shared_address(base) + Shape::kBarriers;
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
    auto* partial = reinterpret_cast<float4*>(base);
    // Each role to its end in one branch: what comes after would get the registers of the poorer.
    if (threadIdx.x >= kWgmmaConsumers) {
      if constexpr (Shape::kBlocks == 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x == kWgmmaConsumers) {
        produce(p, pipe, first_block, last_block, first, step);
      }
      __syncwarp();
      if constexpr (kTokens <= 128) {
        if (split == 1) return;
        cooperative_groups::this_cluster().sync();
        cooperative_groups::this_cluster().sync();
      }
    } else {
      if constexpr (Shape::kBlocks == 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      consume(p, pipe, first_block, last_block, first, step, split > 1 ? partial : nullptr);
      if constexpr (kTokens <= 128) {
        if (split == 1) return;
        cooperative_groups::this_cluster().sync();
        add_up(p, first, rank, partial);
        cooperative_groups::this_cluster().sync();
      }
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
