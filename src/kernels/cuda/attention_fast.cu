// Prefill attention on tensor cores over a cache of f16, after FlashAttention-2 (Dao 2023,
// arXiv:2307.08691): a block takes 128 rows of one head and walks through the visible positions in
// tiles of 64, with an online softmax; scores, weights and results stay in registers.
//
// 4 warps of 32 rows: with 16 rows a warp (8 warps) every operand fetched from shared memory feeds
// half as many products, and shared memory, not the matrix units, is the bound. 255 registers a
// thread and 70 KB at head_dim 128 leave two blocks a multiprocessor, and one's softmax runs under
// the other's products. Values come while scores are computed, the next keys while values are used.
// The last rows have the most to do and go first.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_fast.cuh"
#include "kernels/cuda/attention_fast.hash.h"
#include "kernels/cuda/attention_store.cuh"
#include "kernels/cuda/mma.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "fast_mma";
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kWarpRows = 32;
constexpr int kRows = kWarps * kWarpRows;
static_assert(kRows == kAttendRows);
constexpr int kPositions = 64;  // a tile of keys

template <int kDim>
struct Shared {
  static constexpr int kStride = kDim + 8;  // 16 bytes of padding keep ldmatrix conflict-free
  __half q[kRows][kStride];
  __half keys[kPositions][kStride];
  __half values[kPositions][kStride];
};

template <int kDim>
__device__ __forceinline__ void fetch(__half (*to)[kDim + 8], const __half* from, int tile,
                                      int visible) {
  constexpr int kChunks = kDim / 8;
  const int chunk = threadIdx.x % kChunks;
#pragma unroll
  for (int i = 0; i < kPositions * kChunks / kThreads; ++i) {
    const int p = threadIdx.x / kChunks + i * (kThreads / kChunks);
    // Zeros beyond what is visible: the cache may hold anything there, and 0 * NaN is NaN.
    const bool valid = tile + p < visible;
    const __half* source = valid ? from + static_cast<int64_t>(tile + p) * kDim + 8 * chunk : from;
    copy_async(shared_of(&to[p][8 * chunk]), source, valid);
  }
  commit_copies();
}

template <int kDim>
__global__ void __launch_bounds__(kThreads, 2) attend(const Attend a) {
  release_next();
  constexpr int kStride = Shared<kDim>::kStride;
  constexpr int kPieces = kDim / 8;  // of the result, 8 columns each
  constexpr int kKeys = kPositions / 8;
  extern __shared__ __align__(16) unsigned char memory[];
  Shared<kDim>& shared = *reinterpret_cast<Shared<kDim>*>(memory);

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int g = lane / 4;
  const int t = lane % 4;
  const int head = blockIdx.x;
  const int first = kRows * static_cast<int>(gridDim.y - 1 - blockIdx.y);
  const int before = static_cast<int>(a.input->first_position);
  const int visible = before + min(first + kRows, a.rows);
  const int64_t cache = head / (a.heads / a.kv_heads) * a.capacity * kDim;
  const __half* keys = a.keys + cache;
  const __half* values = a.values + cache;

  wait_for_previous();
  fetch<kDim>(shared.keys, keys, 0, visible);
#pragma unroll 4
  for (int i = threadIdx.x; i < kRows * kDim / 4; i += kThreads) {
    const int row = i / (kDim / 4);
    const int column = i % (kDim / 4) * 4;
    float4 x = {0, 0, 0, 0};
    if (first + row < a.rows) {
      x = *reinterpret_cast<const float4*>(
          a.q + (static_cast<int64_t>(first + row) * a.heads + head) * kDim + column);
    }
    const uint2 halves = {pack_halves(x.x * a.scale, x.y * a.scale),
                          pack_halves(x.z * a.scale, x.w * a.scale)};
    *reinterpret_cast<uint2*>(&shared.q[row][column]) = halves;
  }

  float out[2][kPieces][4];
  float largest[2][2];
  float sum[2][2];  // of this lane's positions
#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      largest[m][h] = -INFINITY;
      sum[m][h] = 0;
    }
#pragma unroll
    for (int n = 0; n < kPieces; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) out[m][n][r] = 0;
    }
  }

  const int warp_first = before + first + kWarpRows * warp;  // position of the warp's first row
  const uint32_t a_row = (lane / 8 % 2) * 8 + lane % 8;
  const uint32_t q_at = shared_of(&shared.q[kWarpRows * warp + a_row][8 * (lane / 16)]);
  const uint32_t key_at = shared_of(&shared.keys[8 * (lane / 16) + lane % 8][8 * (lane / 8 % 2)]);
  const uint32_t value_at = shared_of(&shared.values[a_row][8 * (lane / 16)]);

  for (int tile = 0; tile < visible; tile += kPositions) {
    // A warp above the diagonal has nothing to do but to bring tiles.
    const bool any = tile < warp_first + kWarpRows;
    wait_copies<0>();
    __syncthreads();  // keys (and queries) are there; all warps are done with the values
    fetch<kDim>(shared.values, values, tile, visible);

    float scores[2][kKeys][4];
    if (any) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < kKeys; ++n) {
#pragma unroll
          for (int r = 0; r < 4; ++r) scores[m][n][r] = 0;
        }
      }
#pragma unroll
      for (int step = 0; step < kDim / 16; ++step) {
        uint32_t q[2][4];
        load_matrices(q[0], q_at + step * 32);
        load_matrices(q[1], q_at + (16 * kStride + step * 16) * 2);
#pragma unroll
        for (int n = 0; n < kKeys; n += 2) {
          uint32_t key[4];
          load_matrices(key, key_at + (n * 8 * kStride + step * 16) * 2);
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            mma_f16(scores[m][n], q[m], key[0], key[1]);
            mma_f16(scores[m][n + 1], q[m], key[2], key[3]);
          }
        }
      }
    }
    wait_copies<0>();
    __syncthreads();  // values are there; all warps are done with the keys
    if (tile + kPositions < visible) fetch<kDim>(shared.keys, keys, tile + kPositions, visible);
    if (!any) continue;

    if (tile + kPositions - 1 > warp_first) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < kKeys; ++n) {
#pragma unroll
          for (int r = 0; r < 4; ++r) {
            const int position = tile + 8 * n + 2 * t + r % 2;
            if (position > warp_first + 16 * m + 8 * (r / 2) + g) scores[m][n][r] = -INFINITY;
          }
        }
      }
    }
#pragma unroll
    for (int m = 0; m < 2; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float most = largest[m][h];
#pragma unroll
        for (int n = 0; n < kKeys; ++n) {
          most = fmaxf(most, fmaxf(scores[m][n][2 * h], scores[m][n][2 * h + 1]));
        }
        most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 2));
        // Position 0 is seen by every row, so `most` is a number from the first tile on.
        const float shrink = exp2_fast(largest[m][h] - most);
        largest[m][h] = most;
        float part = 0;
#pragma unroll
        for (int n = 0; n < kKeys; ++n) {
#pragma unroll
          for (int r = 2 * h; r < 2 * h + 2; ++r) {
            scores[m][n][r] = exp2_fast(scores[m][n][r] - most);
            part += scores[m][n][r];
          }
        }
        sum[m][h] = sum[m][h] * shrink + part;
#pragma unroll
        for (int n = 0; n < kPieces; ++n) {
          out[m][n][2 * h] *= shrink;
          out[m][n][2 * h + 1] *= shrink;
        }
      }
    }
#pragma unroll
    for (int step = 0; step < kPositions / 16; ++step) {
      uint32_t weights[2][4];
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        const float(&low)[4] = scores[m][2 * step];
        const float(&high)[4] = scores[m][2 * step + 1];
        weights[m][0] = pack_halves(low[0], low[1]);
        weights[m][1] = pack_halves(low[2], low[3]);
        weights[m][2] = pack_halves(high[0], high[1]);
        weights[m][3] = pack_halves(high[2], high[3]);
      }
#pragma unroll
      for (int n = 0; n < kPieces; n += 2) {
        uint32_t value[4];
        load_transposed(value, value_at + (step * 16 * kStride + n * 8) * 2);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          mma_f16(out[m][n], weights[m], value[0], value[1]);
          mma_f16(out[m][n + 1], weights[m], value[2], value[3]);
        }
      }
    }
  }

#pragma unroll
  for (int m = 0; m < 2; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float total = sum[m][h];
      total += __shfl_xor_sync(0xffffffffU, total, 1);
      total += __shfl_xor_sync(0xffffffffU, total, 2);
      const float inverse = 1.0F / total;
      const int row = first + kWarpRows * warp + 16 * m + 8 * h + g;
      if (row >= a.rows) continue;
      float* to = a.out + (static_cast<int64_t>(row) * a.heads + head) * kDim + 2 * t;
#pragma unroll
      for (int n = 0; n < kPieces; ++n) {
        *reinterpret_cast<float2*>(to + 8 * n) = {out[m][n][2 * h] * inverse,
                                                  out[m][n][2 * h + 1] * inverse};
      }
    }
  }
}

void run(const AttentionArgs& args, KernelContext& context) {
  launch_attend(args, {attend<64>, kThreads, sizeof(Shared<64>)},
                {attend<128>, kThreads, sizeof(Shared<128>)}, context);
}

}  // namespace

void attention_fast_mma(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  store_keys<__half>(args, context);
  run(args, context);
}

void rope_attention_fast_mma(const RopeAttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.attention.rows == 0) return;
  rotate_and_store<__half>(args, context);
  run(args.attention, context);
}

const char* attention_fast_mma_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
