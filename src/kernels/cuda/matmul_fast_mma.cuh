// fast_tile from compute capability 8.0 up: mma.m16n8k16 with the weights as operand A, unpacked
// from tiles straight into its registers, and the activations as operand B by ldmatrix.
//
// The same idea as on 9.0 (matmul_fast_wgmma.cuh) with what is there before: 8 warps, 4 along the
// weight rows (two strips each) × 2 along the tokens, fed by a cp.async pipeline. A strip is
// unpacked by both warps that share it; exchanging it through shared memory would cost more than
// the second unpacking.
#pragma once

#include <cstdint>

#include "kernels/cuda/matmul_fast_store.cuh"
#include "kernels/cuda/matmul_fast_unpack.cuh"

namespace reckon::kernels::cuda {

template <TileType kType, int kTokens>
struct MmaShape {
  static constexpr int kThreads = 256;
  static constexpr int kStrips = 8;  // of a swiglu, gate and up in turn
  static constexpr int kTileBytes = static_cast<int>(tile_bytes(kType));
  static constexpr int kXBytes = kTokens * 128;
  static constexpr int kStageBytes = kXBytes + kStrips * kTileBytes;
  // 99 KB is what a block gets on every such device.
  static constexpr int kStages = 96 * 1024 / kStageBytes < 4 ? 96 * 1024 / kStageBytes : 4;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static_assert(kStages >= 2 && kTileBytes % 16 == 0);
};

template <bool kBf16>
__device__ __forceinline__ void mma_16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                          uint32_t b1) {
  if constexpr (kBf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

template <TileType kType, int kTokens, bool kSwiglu>
struct MmaKernel {
  using Shape = MmaShape<kType, kTokens>;
  static constexpr int kPieces = kTokens / 16;  // of 8 tokens, a warp's

  // Asks for stage `block` of K: the copies of one commit group.
  __device__ static void fetch(const TileProblem& p, const TilePlace& place, int block,
                               uint32_t stage) {
    const uint8_t* x = p.x + (static_cast<int64_t>(block) * p.padded_rows +
                              static_cast<int64_t>(place.token_tile) * kTokens) *
                                 128;
    for (int i = static_cast<int>(threadIdx.x); i < Shape::kXBytes / 16; i += Shape::kThreads) {
      copy(stage + i * 16, x + i * 16);
    }
    constexpr int kPerTile = Shape::kTileBytes / 16;
    for (int i = static_cast<int>(threadIdx.x); i < Shape::kStrips * kPerTile;
         i += Shape::kThreads) {
      const int slot = i / kPerTile;
      // Strips beyond the matrix are read as its last one; their results are not stored.
      const int part = kSwiglu ? slot % 2 : place.part;
      const int strip = kSwiglu ? place.row_tile * 4 + slot / 2 : place.row_tile * 8 + slot;
      const int last = (p.n[part] + 15) / 16 - 1;
      const int64_t tile = static_cast<int64_t>(min(strip, last)) * p.k_blocks + block;
      copy(stage + Shape::kXBytes + i * 16,
           p.weight[part] + tile * Shape::kTileBytes + i % kPerTile * 16);
    }
  }

  __device__ static void copy(uint32_t to, const uint8_t* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }

  template <int kW>
  __device__ static void multiply(const TileWords<kType> (&words)[2], uint32_t x,
                                  float (&sums)[2][kPieces][4]) {
    uint32_t a[2][4];
    words[0].template fragment<kW>(a[0]);
    words[1].template fragment<kW>(a[1]);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int row = lane % 8, piece = 2 * kW + lane / 8 % 2;
#pragma unroll
    for (int j = 0; j < kPieces; j += 2) {
      // Lanes 0 ... 15 address tokens 0 ... 7 of both halves of k, the rest tokens 8 ... 15.
      uint32_t b[4];
      const int token = 8 * j + (kPieces > 1 ? lane / 16 * 8 : 0) + row;
      const uint32_t at = x + token * 128 + ((piece ^ row) * 16);
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(at));
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        mma_16816<kType == TileType::kBf16>(sums[s][j], a[s], b[0], b[1]);
        if constexpr (kPieces > 1) {
          mma_16816<kType == TileType::kBf16>(sums[s][j + 1], a[s], b[2], b[3]);
        }
      }
    }
  }

  __device__ static void run(const TileProblem& p) {
    extern __shared__ uint8_t shared[];
    const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
    const int warp_row = warp % 4, warp_token = warp / 4;
    const TilePlace place = tile_place(p, static_cast<int>(blockIdx.x));
    float sums[2][kPieces][4] = {};
    for (int i = 0; i < Shape::kStages - 1; ++i) {
      if (i < p.k_blocks) fetch(p, place, i, base + i * Shape::kStageBytes);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    int stage = 0, next = Shape::kStages - 1;
    for (int block = 0; block < p.k_blocks; ++block) {
      asm volatile("cp.async.wait_group %0;" ::"n"(Shape::kStages - 2) : "memory");
      __syncthreads();
      const int ahead = block + Shape::kStages - 1;
      if (ahead < p.k_blocks) fetch(p, place, ahead, base + next * Shape::kStageBytes);
      asm volatile("cp.async.commit_group;" ::: "memory");
      const uint8_t* weights = shared + stage * Shape::kStageBytes + Shape::kXBytes;
      TileWords<kType> words[2];
      words[0].load(weights + (warp_row * 2) * Shape::kTileBytes, lane);
      words[1].load(weights + (warp_row * 2 + 1) * Shape::kTileBytes, lane);
      const uint32_t x = base + stage * Shape::kStageBytes + warp_token * (kTokens / 2) * 128;
      multiply<0>(words, x, sums);
      multiply<1>(words, x, sums);
      multiply<2>(words, x, sums);
      multiply<3>(words, x, sums);
      stage = stage + 1 == Shape::kStages ? 0 : stage + 1;
      next = next + 1 == Shape::kStages ? 0 : next + 1;
    }
    const int row =
        (place.row_tile * (kSwiglu ? 4 : 8) + warp_row * (kSwiglu ? 1 : 2)) * 16 + lane / 4;
    const int token = place.token_tile * kTokens + warp_token * (kTokens / 2) + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      float values[2][4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        values[0][e] = sums[0][j][e];
        values[1][e] = sums[1][j][e];
      }
      const int at = token + 8 * j;
      store_piece<2, kSwiglu>(p, place.part, row, at, values,
                              make_float2(token_scale(p, at), token_scale(p, at + 1)), false);
    }
  }
};

template <TileType kType, int kTokens, bool kSwiglu>
__global__ void __launch_bounds__(MmaShape<kType, kTokens>::kThreads)
    fast_tile_mma(const __grid_constant__ TileProblem problem) {
  MmaKernel<kType, kTokens, kSwiglu>::run(problem);
}

}  // namespace reckon::kernels::cuda
