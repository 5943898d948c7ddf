// The exact one-weight-stream matmul for 1 ... 16 rows on matrix instructions: the kernel behind
// gemv_mma(), instantiated a weight type a file (gemv_mma_*.cu).
//
// Shape. Weights are the 16-row A operand of mma.m16n8k16 and the rows of x its 8 columns (two
// column groups for 9 ... 16 rows), so 1 row or 8 cost the same instructions and the same bytes.
// A column of an mma depends on that column of B alone, which is what makes rows independent.
//
// Streaming. Each of 8 warps owns one of the 8 canonical segments of K of the strip at hand and has
// its own ring of stages in shared memory. One more warp only fetches: a lane a ring issues bulk
// asynchronous copies (2 to 5 KB each), strip after strip without a break, so that what is in
// flight is bounded by shared memory and the multiplying warps spend no instruction on it. Its
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
// Measured on an H200 (read-only stream 4.55 TB/s; 2026-11-29; graphs of 40 launches, weights cold,
// best geometry a point; serial / overlapped, microseconds), p4:
//               1 row           4 rows          8 rows          16 rows
//   34816x5120  27.6 / 26.1     31.3 / 29.4     32.4 / 30.4     42.2 / 40.9
//   5120x17408  20.1 / 17.5     20.9 / 20.7     23.4 / 23.3     36.5 / 34.8
//   16384x5120  15.6 / 14.7     18.8 / 17.1     19.0 / 17.7     24.6 / 24.3
//   5120x6144    9.6 /  8.9     11.9 / 10.2     11.8 / 11.4     15.7 / 15.0
// Between the first and the last shape a byte costs what the memory takes; what is lost is about 5
// us a launch: the launch itself (1.1), converting x (1.3 at K = 5120), waiting for the copying
// warp to fill the rings (it issues a copy every 50 ns), the last strip with its sums (1). More can
// be had from the middle two: let the other warps go on once the barriers exist; convert with 4
// lanes a tile of x instead of 16.
//
// Tried and rejected, 34816x5120, 1 row, serial:
// - each multiplying warp fetches for itself, 60 more instructions a stage: 33.9 us;
// - sums by remote stores and a release at cluster scope, also in a cluster of one; that is a
//   membar.gpu and an L1 invalidation a strip: 35.6 us;
// - 3 blocks a multiprocessor, 64 registers with spills: 28.4 us;
// - two strips at once in one block of 19 warps, 4 mma chains: 29.1 us, though 11% better at 16
//   rows where K is long, one copy of x feeding 16 warps.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_geometry.h"

namespace reckon::kernels::cuda {

template <int kColumns>
inline constexpr int n_tiles_for = n_tiles_of(kColumns);

struct GemvKernelArgs {
  const float* x;
  int64_t x_stride;
  const uint8_t* tiles[kGemvMaxWeights];
  float* out[kGemvMaxWeights];
  int64_t out_stride[kGemvMaxWeights];
  int n[kGemvMaxWeights];
  int first_unit[kGemvMaxWeights];  // of each weight in the launch's units; parts == 1 only
  int weight_count;
  int parts;  // weights a unit: 2 for SwiGLU
  int units;  // strips, over all weights (of one weight for SwiGLU)
  int rows, slab_rows, k, k_tiles;
  int cluster, slots, stage_tiles, stages;
  bool x_aligned;  // rows of x may be read 16 bytes at a time
  GemvShared shared;
};

// A strip of one weight.
struct GemvStrip {
  int weight;
  int index;
};

__device__ __forceinline__ GemvStrip find_strip(const GemvKernelArgs& args, int unit, int part) {
  if (args.parts > 1) return {part, unit};
  int weight = 0;
  if (args.weight_count > 1 && unit >= args.first_unit[1]) weight = 1;
  if (args.weight_count > 2 && unit >= args.first_unit[2]) weight = 2;
  return {weight, unit - args.first_unit[weight]};
}

__device__ __forceinline__ void mma_half(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                         uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// One lane's weights of a tile as loaded, and as operand registers of mma w.
template <TileType kType>
struct LaneTile;

template <>
struct LaneTile<TileType::kP4> {
  uint4 codes;
  uint2 scales;  // {scale, minimum} of row g, of row g + 8

  __device__ __forceinline__ void load(uint32_t tile, uint32_t lane) {
    codes = load_shared_16(tile + lane * 16);
    scales = load_shared_8(tile + 512 + (lane >> 2) * 8);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    const uint32_t low = w == 0 ? codes.x : w == 1 ? codes.y : w == 2 ? codes.z : codes.w;
    const uint32_t high = low >> 8;
    a[0] = low & 0x000f000fu;
    a[1] = high & 0x000f000fu;
    a[2] = low & 0x00f000f0u;
    a[3] = high & 0x00f000f0u;
  }
};

template <>
struct LaneTile<TileType::kP8> {
  uint4 codes[2];
  uint32_t scales;  // of row g, of row g + 8

  __device__ __forceinline__ void load(uint32_t tile, uint32_t lane) {
    codes[0] = load_shared_16(tile + lane * 16);
    codes[1] = load_shared_16(tile + 512 + lane * 16);
    scales = load_shared_4(tile + 1024 + (lane >> 2) * 4);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    const uint4& c = codes[w / 2];
    const uint32_t first = w % 2 == 0 ? c.x : c.z, second = w % 2 == 0 ? c.y : c.w;
    a[0] = first & 0x00ff00ffu;
    a[1] = (first >> 8) & 0x00ff00ffu;
    a[2] = second & 0x00ff00ffu;
    a[3] = (second >> 8) & 0x00ff00ffu;
  }
};

struct LaneTilePlain {
  uint4 weights[4];

  __device__ __forceinline__ void load(uint32_t tile, uint32_t lane) {
#pragma unroll
    for (int w = 0; w < 4; ++w) weights[w] = load_shared_16(tile + w * 512 + lane * 16);
  }
  __device__ __forceinline__ void operand(int w, uint32_t (&a)[4]) const {
    a[0] = weights[w].x, a[1] = weights[w].y, a[2] = weights[w].z, a[3] = weights[w].w;
  }
};
template <>
struct LaneTile<TileType::kF16> : LaneTilePlain {};
template <>
struct LaneTile<TileType::kBf16> : LaneTilePlain {};

// Where a lane finds its operands of x for a tile: rows g and g + 8, columns 16t ... 16t + 15, and
// the {scale, sum} of rows 2t and 2t + 1.
template <int kNTiles>
struct LaneX {
  uint32_t row[kNTiles];
  uint32_t plane;
  uint32_t meta;

  __device__ __forceinline__ void advance(int tiles) {
#pragma unroll
    for (int nt = 0; nt < kNTiles; ++nt) row[nt] += tiles * 128;
    meta += tiles * (64 * kNTiles);
  }
};

// total += kCount tiles * x, tile by tile, for the lane's 4 results of each column group: (row g,
// x 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). The tiles' mma chains are interleaved; each is
// summed by itself. With one row of x nobody wants the odd results.
template <TileType kType, int kColumns, int kCount>
__device__ __forceinline__ void multiply_tiles(uint32_t stage, uint32_t lane,
                                               const LaneX<n_tiles_for<kColumns>>& x,
                                               float (&total)[n_tiles_for<kColumns>][4]) {
  constexpr int kNTiles = n_tiles_for<kColumns>;
  constexpr int kResultStep = kColumns == 1 ? 2 : 1;
  LaneTile<kType> tile[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) tile[i].load(stage + i * kTileBytesOf<kType>, lane);
  if constexpr (kType == TileType::kBf16) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      uint4 high[kNTiles][2], low[kNTiles][2];
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        const uint32_t at = x.row[nt] + i * 128;
        high[nt][0] = load_shared_16(at), high[nt][1] = load_shared_16(at + 16);
        low[nt][0] = load_shared_16(at + x.plane), low[nt][1] = load_shared_16(at + x.plane + 16);
      }
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        uint32_t a[4];
        tile[i].operand(w, a);
#pragma unroll
        for (int nt = 0; nt < kNTiles; ++nt) {
          const uint4 &h = high[nt][w / 2], &l = low[nt][w / 2];
          mma_bf16(total[nt], a, w % 2 ? h.z : h.x, w % 2 ? h.w : h.y);
          mma_bf16(total[nt], a, w % 2 ? l.z : l.x, w % 2 ? l.w : l.y);
        }
      }
    }
    return;
  }
  float sum[kCount][kNTiles][4] = {};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint4 b[kCount][kNTiles];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int nt = 0; nt < kNTiles; ++nt) {
        b[i][nt] = load_shared_16(x.row[nt] + i * 128 + half * 16);
      }
    }
#pragma unroll
    for (int w = 2 * half; w < 2 * half + 2; ++w) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        uint32_t a[4];
        tile[i].operand(w, a);
#pragma unroll
        for (int nt = 0; nt < kNTiles; ++nt) {
          const uint4& v = b[i][nt];
          mma_half(sum[i][nt], a, w % 2 ? v.z : v.x, w % 2 ? v.w : v.y);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int nt = 0; nt < kNTiles; ++nt) {
      const uint32_t meta = x.meta + i * (64 * kNTiles) + nt * 64;
      float x_scale[2] = {}, x_sum[2] = {};
      if constexpr (kColumns == 1) {
        const uint2 bits = load_shared_8(meta);
        x_scale[0] = __uint_as_float(bits.x), x_sum[0] = __uint_as_float(bits.y);
      } else {
        const uint4 bits = load_shared_16(meta);
        x_scale[0] = __uint_as_float(bits.x), x_sum[0] = __uint_as_float(bits.y);
        x_scale[1] = __uint_as_float(bits.z), x_sum[1] = __uint_as_float(bits.w);
      }
      if constexpr (kType == TileType::kP4) {
        const float2 row[2] = {
            __half22float2(*reinterpret_cast<const __half2*>(&tile[i].scales.x)),
            __half22float2(*reinterpret_cast<const __half2*>(&tile[i].scales.y))};
#pragma unroll
        for (int r = 0; r < 4; r += kResultStep) {
          const float shifted = __fmaf_rn(row[r / 2].y, x_sum[r % 2], total[nt][r]);
          total[nt][r] = __fmaf_rn(row[r / 2].x, __fmul_rn(x_scale[r % 2], sum[i][nt][r]), shifted);
        }
      } else if constexpr (kType == TileType::kP8) {
        const float2 scale = __half22float2(*reinterpret_cast<const __half2*>(&tile[i].scales));
#pragma unroll
        for (int r = 0; r < 4; r += kResultStep) {
          const float value = __fmaf_rn(x_scale[r % 2], sum[i][nt][r], -x_sum[r % 2]);
          total[nt][r] = __fmaf_rn(r / 2 ? scale.y : scale.x, value, total[nt][r]);
        }
      } else {
#pragma unroll
        for (int r = 0; r < 4; r += kResultStep) {
          total[nt][r] = __fmaf_rn(x_scale[r % 2], sum[i][nt][r], total[nt][r]);
        }
      }
    }
  }
}

__device__ __forceinline__ float4 load_x(const GemvKernelArgs& args, const float* row, int column) {
  if (args.x_aligned && column + 3 < args.k) return *reinterpret_cast<const float4*>(row + column);
  float4 v;
  v.x = column < args.k ? row[column] : 0.0f;
  v.y = column + 1 < args.k ? row[column + 1] : 0.0f;
  v.z = column + 2 < args.k ? row[column + 2] : 0.0f;
  v.w = column + 3 < args.k ? row[column + 3] : 0.0f;
  return v;
}

// Converts 64 columns of a row, 4 a lane of a half warp, into operand halves at `to`, and their
// scale and sum at `meta`. All 32 lanes call it; a half warp without a group does not store.
template <TileType kType>
__device__ __forceinline__ void stage_group(float4 v, bool store, uint32_t to, uint32_t plane,
                                            uint32_t meta, uint32_t lane16) {
  if constexpr (kType == TileType::kBf16) {
    const float in[4] = {v.x, v.y, v.z, v.w};
    uint32_t high[2], low[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const __nv_bfloat16 a = __float2bfloat16_rn(in[2 * i]);
      const __nv_bfloat16 b = __float2bfloat16_rn(in[2 * i + 1]);
      const __nv_bfloat162 h = __halves2bfloat162(a, b);
      const __nv_bfloat162 l = __floats2bfloat162_rn(__fsub_rn(in[2 * i], __bfloat162float(a)),
                                                     __fsub_rn(in[2 * i + 1], __bfloat162float(b)));
      high[i] = *reinterpret_cast<const uint32_t*>(&h);
      low[i] = *reinterpret_cast<const uint32_t*>(&l);
    }
    if (store) {
      store_shared_8(to + lane16 * 8, make_uint2(high[0], high[1]));
      store_shared_8(to + plane + lane16 * 8, make_uint2(low[0], low[1]));
    }
  } else {
    float largest = fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w)));
#pragma unroll
    for (int step = 8; step > 0; step /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, step));
    }
    // x * 2^(14 - e) with 2^e <= largest < 2^(e + 1): at most 2^15 after rounding to half.
    const int exponent = max(static_cast<int>(__float_as_uint(largest) >> 23), 40);
    const float down = __uint_as_float(static_cast<uint32_t>(268 - exponent) << 23);
    const __half2 a = __floats2half2_rn(__fmul_rn(v.x, down), __fmul_rn(v.y, down));
    const __half2 b = __floats2half2_rn(__fmul_rn(v.z, down), __fmul_rn(v.w, down));
    const float2 fa = __half22float2(a), fb = __half22float2(b);
    float sum = __fadd_rn(__fadd_rn(fa.x, fa.y), __fadd_rn(fb.x, fb.y));
#pragma unroll
    for (int step = 8; step > 0; step /= 2) {
      sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, step));
    }
    // The codes of columns 4i + 2 and 4i + 3 come 16 times too large (weight_tiles.h).
    const __half2 b_operand =
        kType == TileType::kP4 ? __floats2half2_rn(fb.x * 0.0625f, fb.y * 0.0625f) : b;
    if (store) {
      store_shared_8(to + lane16 * 8, make_uint2(*reinterpret_cast<const uint32_t*>(&a),
                                                 *reinterpret_cast<const uint32_t*>(&b_operand)));
      if (lane16 == 0) {
        // Integer codes are half subnormals, c * 2^-24. A scale over float32 becomes infinite.
        const int code_exponent = kType == TileType::kF16 ? 0 : 24;
        const float up = __uint_as_float(static_cast<uint32_t>(exponent - 14) << 23);
        const int scale_exponent = min(exponent - 14 + code_exponent, 255);
        const float x_sum = __fmul_rn(__fmul_rn(sum, up), kType == TileType::kP8 ? 128.0f : 1.0f);
        store_shared_8(
            meta, make_uint2(static_cast<uint32_t>(scale_exponent) << 23, __float_as_uint(x_sum)));
      }
    }
  }
}

// All warps but the copying one convert the slab's rows of tiles slice_begin ... + slice_tiles - 1.
template <TileType kType, int kNTiles>
__device__ __forceinline__ void stage_x(const GemvKernelArgs& args, const float* x, int rows,
                                        uint32_t shared, int slice_begin, int slice_tiles) {
  constexpr int kUnroll = 4;
  constexpr int kGroups = kCopyWarp * 2;
  const uint32_t lane16 = threadIdx.x % 16;
  const int items = rows * slice_tiles;
  const int first = static_cast<int>(threadIdx.x / 16);
  // Both halves of a warp go round together: the shuffles want all 32 lanes.
  for (int base = 0; base < items; base += kUnroll * kGroups) {
    float4 v[kUnroll];
    int row[kUnroll], tile[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int item = base + u * kGroups + first;
      row[u] = item / slice_tiles;
      tile[u] = item - row[u] * slice_tiles;
      v[u] = make_float4(0, 0, 0, 0);
      if (item < items) {
        v[u] = load_x(args, x + row[u] * args.x_stride,
                      (slice_begin + tile[u]) * 64 + static_cast<int>(lane16) * 4);
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (base + u * kGroups >= items) break;
      const uint32_t to = shared + args.shared.x + row[u] * args.shared.x_row + tile[u] * 128;
      const uint32_t meta = shared + args.shared.meta + (tile[u] * 8 * kNTiles + row[u]) * 8;
      stage_group<kType>(v[u], base + u * kGroups + first < items, to, args.shared.x_plane, meta,
                         lane16);
    }
  }
}

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
  int first, step, segments;
  int rank;

  __device__ __forceinline__ explicit GemvWork(const GemvKernelArgs& args) {
    first = static_cast<int>(blockIdx.x) / args.cluster * args.cluster;
    step = static_cast<int>(gridDim.x);
    segments = kGemvSegments / args.cluster;  // of a strip, in this block
    rank = args.cluster > 1 ? static_cast<int>(cluster_rank()) : 0;
  }
  // What multiplying warp w does: a segment of the `target`-th unit of a batch.
  __device__ __forceinline__ int segment(int w) const { return rank * segments + w % segments; }
  __device__ __forceinline__ int target(int w) const { return w / segments; }
};

// The copying warp. `synchronise` is called once, when the rings are full for the first time.
template <TileType kType, typename Synchronise>
__device__ __forceinline__ void copy_weights(const GemvKernelArgs& args, const GemvWork& work,
                                             const GemvBarriers& barriers, uint32_t shared,
                                             uint32_t lane, Synchronise synchronise) {
  constexpr int kTile = kTileBytesOf<kType>;
  const int warp = static_cast<int>(lane) % kGemvWarps;  // lanes over 7 only keep step
  const int segment = work.segment(warp), target = work.target(warp);
  const int begin = segment_begin(segment, args.k_tiles);
  const int tiles = segment_begin(segment + 1, args.k_tiles) - begin;
  const uint64_t policy = evict_first_policy();
  const int slot_bytes = kGemvWarps * args.shared.stage;
  RingPosition at{0, 1};  // a fresh barrier is past its phase of parity 1
  int until_full = args.slots;
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
        if (until_full == 0) synchronise();
        --until_full;
        barrier_wait(barriers.read + at.slot * 8, at.parity);
        const int bytes = min(left, args.stage_tiles) * kTile;
        copy_stages(shared + at.slot * slot_bytes + warp * args.shared.stage, from,
                    static_cast<uint32_t>(bytes), barriers.arrived + (at.slot * 8 + warp) * 8,
                    policy, lane, kGemvWarps);
        from += bytes;
        left -= min(left, args.stage_tiles);
        at.step(args.slots);
      }
    }
  }
  if (until_full >= 0) synchronise();
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
      __syncwarp();
      if (args.cluster == 1) {
        if (lane == 0) barrier_arrive(barriers.sums_read + at.slot * 8);
      } else {
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
  constexpr int kTile = kTileBytesOf<kType>;
  constexpr int kNTiles = n_tiles_for<kColumns>;
  // Tiles whose mma chains are interleaved; two column groups are two chains already.
  constexpr int kTogether = kNTiles == 1 && kTileBytesOf<kType> < 2048 ? 2 : 1;
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
        uint32_t from = ring + at.slot * slot_bytes;
        barrier_wait(barriers.arrived + (at.slot * kGemvWarps + warp) * 8, at.parity);
        int count = min(left, args.stage_tiles);
        left -= count;
        if constexpr (kTogether > 1) {
          for (; count >= kTogether; count -= kTogether) {
            multiply_tiles<kType, kColumns, kTogether>(from, lane, x, total);
            x.advance(kTogether);
            from += kTogether * kTile;
          }
        }
        for (; count > 0; --count) {
          multiply_tiles<kType, kColumns, 1>(from, lane, x, total);
          x.advance(1);
          from += kTile;
        }
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
      if (args.cluster == 1) {
        __syncwarp();
        if (lane == 0) barrier_arrive(barriers.sums_arrived + sums_at.slot * 8);
      }
      sums_at.step(kGemvPartialSlots);
    }
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
  const int warp = static_cast<int>(threadIdx.x / 32);
  const GemvWork work(args);
  const GemvBarriers barriers(args, shared);
  const int first_row = static_cast<int>(blockIdx.y) * args.slab_rows;
  const int rows = min(args.rows - first_row, args.slab_rows);

  let_dependents_start();
  if (warp == kCopyWarp) {
    for (int i = static_cast<int>(lane); i < args.slots * kGemvWarps; i += 32) {
      barrier_init(barriers.arrived + i * 8, kStageArrivals);
    }
    if (static_cast<int>(lane) < args.slots) barrier_init(barriers.read + lane * 8, kGemvWarps);
    if (lane < kGemvPartialSlots) {
      barrier_init(barriers.sums_arrived + lane * 8, args.cluster > 1 ? 1 : kGemvWarps);
      barrier_init(barriers.sums_read + lane * 8, args.cluster);
    }
    barrier_init_fence();
    if (args.cluster > 1 && lane < kGemvPartialSlots) {
      barrier_expect(barriers.sums_arrived + lane * 8, kGemvSegments * kNTiles * 512);
    }
    __syncwarp();
    copy_weights<kType>(args, work, barriers, shared, lane, [&] { cluster_sync(args.cluster); });
  } else {
    const int slice_begin = segment_begin(work.rank * work.segments, args.k_tiles);
    const int slice_end = segment_begin((work.rank + 1) * work.segments, args.k_tiles);
    wait_for_inputs();
    stage_x<kType, kNTiles>(args, args.x + first_row * args.x_stride, rows, shared, slice_begin,
                            slice_end - slice_begin);
    cluster_sync(args.cluster);
    if (warp == kCombineWarp) {
      combine_strips<kNTiles>(args, work, barriers, shared, lane, first_row, rows);
    } else {
      multiply_segments<kType, kColumns>(args, work, barriers, shared, lane, warp, rows);
    }
  }
  // A block's shared memory must outlive what the others still send to it.
  if (args.cluster > 1) cluster_sync(args.cluster);
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
