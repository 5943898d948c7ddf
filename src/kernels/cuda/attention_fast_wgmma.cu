// Prefill attention on Hopper's warpgroup matrix instructions over a cache of f16, after
// FlashAttention-3 (Shah et al. 2024, arXiv:2407.08608) without its warp specialisation: a block is
// two warpgroups of 64 rows of one head each; tiles of 128 positions come through cp.async, two
// buffers each for keys and values; the scores of a tile and the values of the one before are
// multiplied in one go, and the softmax of those scores runs while the latter still do.
//
// mma.sync (attention_fast.cu) has to bring every operand to registers first: H200, 2048 rows of
// 32/8 heads of 128 after 8192 positions, 970 us instead of 740 (319 and 418 TFLOP/s). Keys, values
// and queries lie in panels of 64 columns, 128 bytes a row, in the 128-byte swizzle that the
// instructions read without bank conflicts: the 16-byte piece c of row r stands at c ^ (r % 8).
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_fast.cuh"
#include "kernels/cuda/attention_fast_wgmma.hash.h"
#include "kernels/cuda/attention_store.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/wgmma_registers.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "fast_wgmma";
constexpr int kGroups = 2;  // warpgroups
constexpr int kThreads = 128 * kGroups;
constexpr int kGroupRows = 64;
constexpr int kRows = kGroups * kGroupRows;
static_assert(kRows == kAttendRows);
constexpr int kPositions = 128;         // a tile
constexpr int kPanel = 64;              // columns
constexpr int kPanelBytes = 128 * 128;  // of 128 rows: queries, keys and values alike
static_assert(kRows == 128 && kPositions == 128);

// Shared memory, in bytes from a 1024-byte boundary: queries, 2 x keys, 2 x values.
template <int kDim>
struct Layout {
  static constexpr int kTileBytes = kDim / kPanel * kPanelBytes;
  static constexpr int kBytes = 5 * kTileBytes + 1024;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ __forceinline__ uint32_t swizzled(int row, int piece) {
  return static_cast<uint32_t>(row * 128 + ((piece ^ (row % 8)) * 16));
}

// A matrix descriptor (PTX ISA, "Matrix descriptor format"): 128-byte swizzle; groups of 8 rows
// 1024 bytes apart; panels, where an operand is wider than one, kPanelBytes apart.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
  return (static_cast<uint64_t>(address & 0x3ffffU) >> 4) |
         (static_cast<uint64_t>(kPanelBytes >> 4) << 16) |
         (static_cast<uint64_t>(1024 >> 4) << 32) | (uint64_t{1} << 62);
}

__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Keeps the compiler from moving uses of registers across the instructions that still write them.
template <int kCount>
__device__ __forceinline__ void settle(float (&r)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(r[i])::"memory");
}

// d (+)= a b: 64 x 128 x 16, both from shared memory and along their rows.
__device__ __forceinline__ void multiply_keys(float (&d)[64], uint64_t a, uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" RECKON_NAMES_64
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : RECKON_FLOATS_64(d)
      : "l"(a), "l"(b), "r"(add));
}

// d += a b: 64 x kDim x 16, a from registers, b from shared memory with its columns along the rows.
__device__ __forceinline__ void multiply_values(float (&d)[64], const uint32_t (&a)[4],
                                                uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" RECKON_NAMES_64
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : RECKON_FLOATS_64(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ __forceinline__ void multiply_values(float (&d)[32], const uint32_t (&a)[4],
                                                uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" RECKON_NAMES_32
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : RECKON_FLOATS_32(d)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <int kDim>
__device__ __forceinline__ void fetch(uint32_t to, const __half* from, int tile, int visible) {
  constexpr int kPieces = kDim / 8;
  const int piece = threadIdx.x % kPieces;
  const uint32_t panel = to + piece / 8 * kPanelBytes;
#pragma unroll
  for (int i = 0; i < kPositions * kPieces / kThreads; ++i) {
    const int p = threadIdx.x / kPieces + i * (kThreads / kPieces);
    // Zeros beyond what is visible: the cache may hold anything there, and 0 * NaN is NaN.
    const bool valid = tile + p < visible;
    const __half* source = valid ? from + static_cast<int64_t>(tile + p) * kDim + 8 * piece : from;
    copy_async(panel + swizzled(p, piece % 8), source, valid);
  }
}

// What was written to shared memory by this thread is seen by the matrix instructions of others
// after the barrier.
__device__ __forceinline__ void publish() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
}

template <int kDim>
__device__ __forceinline__ void start_scores(float (&scores)[64], uint32_t q, uint32_t keys) {
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
    const uint32_t at = step / 4 * kPanelBytes + step % 4 * 32;
    multiply_keys(scores, descriptor(q + at), descriptor(keys + at), step > 0 ? 1 : 0);
  }
}

// Scores to weights, relative to the new maximum, with the sum of this lane's; `shrink` is what the
// earlier results are to be multiplied by.
__device__ __forceinline__ void soften(float (&scores)[64], float (&largest)[2], float (&sum)[2],
                                       float (&shrink)[2], int tile, int row_position, int t,
                                       bool masked) {
  if (masked) {
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      const int position = tile + i / 4 * 8 + 2 * t + i % 2;
      if (position > row_position + i / 2 % 2 * 8) scores[i] = -INFINITY;
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = largest[h];
#pragma unroll
    for (int n = 0; n < 16; ++n) {
      most = fmaxf(most, fmaxf(scores[4 * n + 2 * h], scores[4 * n + 2 * h + 1]));
    }
    most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 2));
    // Position 0 is seen by every row, so `most` is a number from the first tile on.
    shrink[h] = exp2_fast(largest[h] - most);
    largest[h] = most;
    float part = 0;
#pragma unroll
    for (int n = 0; n < 16; ++n) {
#pragma unroll
      for (int c = 2 * h; c < 2 * h + 2; ++c) {
        scores[4 * n + c] = exp2_fast(scores[4 * n + c] - most);
        part += scores[4 * n + c];
      }
    }
    sum[h] = sum[h] * shrink[h] + part;
  }
}

// A result's layout is that of the next product's first operand, two to a register.
__device__ __forceinline__ void pack_weights(uint32_t (&weights)[kPositions / 16][4],
                                             const float (&scores)[64]) {
#pragma unroll
  for (int step = 0; step < kPositions / 16; ++step) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      weights[step][r] = pack_halves(scores[8 * step + 2 * r], scores[8 * step + 2 * r + 1]);
    }
  }
}

template <int kCount>
__device__ __forceinline__ void add_values(float (&out)[kCount],
                                           const uint32_t (&weights)[kPositions / 16][4],
                                           uint32_t values) {
#pragma unroll
  for (int step = 0; step < kPositions / 16; ++step) {
    multiply_values(out, weights[step], descriptor(values + step * 16 * 128));
  }
}

template <int kDim>
__device__ __forceinline__ void attend_block(const Attend& a, unsigned char* memory) {
  using Parts = Layout<kDim>;
  const uint32_t base = (shared_of(memory) + 1023U) & ~1023U;
  const int lane = threadIdx.x % 32;
  const int group = threadIdx.x / 128;
  const int g = lane / 4;
  const int t = lane % 4;
  const int head = blockIdx.x;
  const int first = kRows * static_cast<int>(gridDim.y - 1 - blockIdx.y);  // longest first
  const int before = static_cast<int>(a.input->first_position);
  const int visible = before + min(first + kRows, a.rows);
  const int64_t cache = head / (a.heads / a.kv_heads) * a.capacity * kDim;
  const __half* keys = a.keys + cache;
  const __half* values = a.values + cache;
  const uint32_t key_at = base + Parts::kTileBytes;
  const uint32_t value_at = base + 3 * Parts::kTileBytes;

  wait_for_previous();
  fetch<kDim>(key_at, keys, 0, visible);
  commit_copies();
  fetch<kDim>(value_at, values, 0, visible);
  if (kPositions < visible) fetch<kDim>(key_at + Parts::kTileBytes, keys, kPositions, visible);
  commit_copies();
  for (int i = threadIdx.x; i < kRows * kDim / 8; i += kThreads) {
    const int row = i / (kDim / 8);
    const int piece = i % (kDim / 8);
    float4 x[2] = {};
    if (first + row < a.rows) {
      const auto* from = reinterpret_cast<const float4*>(
          a.q + (static_cast<int64_t>(first + row) * a.heads + head) * kDim + 8 * piece);
      x[0] = from[0];
      x[1] = from[1];
    }
    const uint32_t to = base + piece / 8 * kPanelBytes + swizzled(row, piece % 8);
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(pack_halves(x[0].x * a.scale, x[0].y * a.scale)),
                 "r"(pack_halves(x[0].z * a.scale, x[0].w * a.scale)),
                 "r"(pack_halves(x[1].x * a.scale, x[1].y * a.scale)),
                 "r"(pack_halves(x[1].z * a.scale, x[1].w * a.scale))
                 : "memory");
  }

  float out[kDim / 2];
#pragma unroll
  for (int i = 0; i < kDim / 2; ++i) out[i] = 0;
  float scores[64];
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};  // of this lane's positions
  float shrink[2];
  uint32_t weights[kPositions / 16][4];
  const int group_first = before + first + kGroupRows * group;  // position of the group's first row
  const int row_position = group_first + threadIdx.x % 128 / 32 * 16 + g;
  const uint32_t q_at = base + static_cast<uint32_t>(group * kGroupRows * 128);

  wait_copies<1>();
  publish();
  begin_products();
  start_scores<kDim>(scores, q_at, key_at);
  commit_products();
  wait_products<0>();
  settle(scores);
  soften(scores, largest, sum, shrink, 0, row_position, t, kPositions - 1 > group_first);
  pack_weights(weights, scores);

  // Before each turn: weights of `tile`; its values and the next keys are on their way. All groups
  // take all tiles, also one that lies above the diagonal for them: the matrix instructions want
  // branches that are the same for the whole block.
  int tile = 0;
  uint32_t this_half = 0;
  uint32_t other_half = Parts::kTileBytes;
  for (; tile + kPositions < visible; tile += kPositions) {
    const int next = tile + kPositions;
    wait_copies<0>();
    publish();  // and all groups are done with these keys and the values before
    fetch<kDim>(value_at + other_half, values, next, visible);
    if (next + kPositions < visible) {
      fetch<kDim>(key_at + this_half, keys, next + kPositions, visible);
    }
    commit_copies();

    begin_products();
    start_scores<kDim>(scores, q_at, key_at + other_half);
    commit_products();
    add_values(out, weights, value_at + this_half);
    commit_products();
    wait_products<1>();
    settle(scores);
    soften(scores, largest, sum, shrink, next, row_position, t,
           next + kPositions - 1 > group_first);
    wait_products<0>();
    settle(out);
#pragma unroll
    for (int i = 0; i < kDim / 2; ++i) out[i] *= shrink[i / 2 % 2];
    pack_weights(weights, scores);
    this_half ^= Parts::kTileBytes;
    other_half ^= Parts::kTileBytes;
  }
  wait_copies<0>();
  publish();
  begin_products();
  add_values(out, weights, value_at + this_half);
  commit_products();
  wait_products<0>();
  settle(out);

#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float total = sum[h];
    total += __shfl_xor_sync(0xffffffffU, total, 1);
    total += __shfl_xor_sync(0xffffffffU, total, 2);
    const float inverse = 1.0F / total;
    const int row = row_position - before + 8 * h;
    if (row >= a.rows) continue;
    float* to = a.out + (static_cast<int64_t>(row) * a.heads + head) * kDim + 2 * t;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      *reinterpret_cast<float2*>(to + 8 * n) = {out[4 * n + 2 * h] * inverse,
                                                out[4 * n + 2 * h + 1] * inverse};
    }
  }
}

#endif

template <int kDim>
__global__ void __launch_bounds__(kThreads, 1) attend(const Attend a) {
  extern __shared__ unsigned char memory[];
  release_next();
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  attend_block<kDim>(a, memory);
#endif
}

// Compute capability 9.0: the instructions exist there only.
bool runs_here(KernelContext& context) {
  int device = 0;
  int major = 0;
  if (cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
      major == 9) {
    return true;
  }
  fail(context, "not a device of compute capability 9.0");
  return false;
}

void run(const AttentionArgs& args, KernelContext& context) {
  launch_attend(args, {attend<64>, kThreads, Layout<64>::kBytes},
                {attend<128>, kThreads, Layout<128>::kBytes}, context);
}

}  // namespace

void attention_fast_wgmma(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0 || !runs_here(context)) return;
  store_keys<__half>(args, context);
  run(args, context);
}

void rope_attention_fast_wgmma(const RopeAttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.attention.rows == 0 || !runs_here(context)) return;
  rotate_and_store<__half>(args, context);
  run(args.attention, context);
}

const char* attention_fast_wgmma_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
