// Exact attention over a cache of f16. The order of operations is in attention.h. Numbers: H200, 32
// query and 8 KV heads of 128, us a layer, 32 layers in turn.
//
// A block of 4 warps takes up to 64 queries of one KV head (the heads of its group times the rows),
// so that the cache is read once for them. For each tile of 64 positions a warp computes the scores
// of its 16 positions, the warps exchange maxima and weights through shared memory, and then a warp
// adds up its quarter of the columns: no result is ever split between warps, so nothing has to be
// folded, and an element's order does not depend on how many queries come along. The usual
// alternative for decode, a warp a part of the positions, would need another order in prefill.
//
// Keys and values have one buffer each: the next keys come while weights and values are worked on,
// the next values while scores are. 50 KB a block at head_dim 128 and one row leave room for 4
// blocks on a multiprocessor.
//
// Few rows (a decode or verify step): the segments of a row are dealt to blocks, the longest first,
// and a second kernel combines them. Combined by the last block of a KV head (a ticket, fences, a
// warp a query) a layer of decode at 1k positions took 9.2 instead of 6.7. Blocks norm and rotate
// their queries themselves, and the block that comes to the pass's own positions does so with the
// keys and stores them: with a kernel of its own for that a decode step took 7.5 at 1k positions
// instead of 6.4. Cached positions and angles are fetched and computed while the kernel before
// still runs. Many rows: a kernel before this one rotates and stores; a block walks through all
// segments and combines them in registers; nothing goes through scratch.
#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_exact.hash.h"
#include "kernels/cuda/attention_segments.cuh"
#include "kernels/cuda/attention_store.cuh"
#include "kernels/cuda/mma.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kName = "exact_mma";
constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kWeightStride = kTile + 8;  // halves; 16 bytes of padding keep ldmatrix conflict-free
constexpr float kLog2E = 1.44269504F;

struct Attend {
  const float* q;  // [rows, heads, head_dim]
  const float* k;  // [rows, kv_heads, head_dim]; k to k_norm for few rows only
  const float* v;
  const float* q_norm;  // [head_dim] or null
  const float* k_norm;
  __half* keys;    // [kv_heads, capacity, head_dim]
  __half* values;  // [kv_heads, capacity, head_dim]
  float* out;      // [rows, heads, head_dim]
  const StepInput* input;
  float* partial_out;     // [rows, heads, segments, head_dim]
  float2* partial_state;  // [rows, heads, segments] maximum and sum
  int64_t capacity;
  int rows, heads, kv_heads, head_dim;
  int segments;  // of the capacity
  int pairs;     // rotated; 0: none
  bool half;     // pairing
  float scale, epsilon;
};

// M, S of a combination step and the factors of both sides.
struct Step {
  float largest, a, b;
};

__device__ __forceinline__ Step combination(float largest, float next) {
  const float most = fmaxf(largest, next);
  const float base = most == -INFINITY ? 0 : most;
  return {most, exp2_fast(largest - base), exp2_fast(next - base)};
}

// Tiles in the order in which a block takes them.
template <bool kSplit>
struct Cursor {
  int segments, worker, workers, round;
  int segment, tile, end;  // the tile's first position; where its segment ends

  __device__ void start(int count, int block, int blocks, int visible) {
    segments = count;
    worker = block;
    workers = blocks;
    round = 0;
    segment = kSplit ? count - 1 - block : 0;
    enter(visible);
  }
  __device__ void enter(int visible) {
    tile = segment_begin(segment);
    end = min(segment_begin(segment + 1), visible);
  }
  __device__ bool last_of_segment() const { return tile + kTile >= end; }
  // False at the end.
  __device__ bool advance(int visible) {
    tile += kTile;
    if (tile < end) return true;
    if constexpr (kSplit) {
      // Longest first, each round in the other direction than the one before.
      ++round;
      const int index = round * workers + (round % 2 == 0 ? worker : workers - 1 - worker);
      segment = segments - 1 - index;
    } else {
      ++segment;
    }
    if (segment < 0 || segment >= segments) return false;
    enter(visible);
    return true;
  }
};

template <int kDim, int kTiles>
struct Shared {
  static constexpr int kStride = kDim + 8;  // halves
  static constexpr int kQueries = 16 * kTiles;
  __half q_high[kQueries][kStride], q_low[kQueries][kStride];
  __half keys[kTile][kStride], values[kTile][kStride];
  __half w_high[kQueries][kWeightStride], w_low[kQueries][kWeightStride];
  float maxima[kWarps][kQueries], sums[kWarps][kQueries];
  float factors[kQueries];           // from the product of scaled queries to the exponent of 2
  float4 vectors[kWarps][kDim / 4];  // for rotations; angles [rows, pairs] follow the struct
};

// Starts copying a tile of keys or values. Positions from `cached` to `visible` are the pass's own
// and left alone; from there on the tile gets zeros: the cache may hold anything, and 0 * NaN is
// NaN.
template <int kDim>
__device__ __forceinline__ void fetch(__half (*to)[kDim + 8], const __half* from, int tile,
                                      int cached, int visible, int head_dim) {
  constexpr int kChunks = kDim / 8;
  const int chunk = threadIdx.x % kChunks;
  const bool in_head = 8 * chunk < head_dim;
#pragma unroll
  for (int i = 0; i < kTile * kChunks / kThreads; ++i) {
    const int p = threadIdx.x / kChunks + i * (kThreads / kChunks);
    const int position = tile + p;
    if (in_head && cached <= position && position < visible) continue;
    const bool valid = in_head && position < cached;
    const __half* source =
        valid ? from + static_cast<int64_t>(position) * head_dim + 8 * chunk : from;
    copy_async(shared_of(&to[p][8 * chunk]), source, valid);
  }
}

constexpr int kBatch = 4;  // own rows of a warp in flight

// Loads the queries first + from, and every kWarps-th after it, a batch.
template <int kCount, int kChunks>
__device__ __forceinline__ void load_queries(float4 (&x)[kCount][kChunks], const Attend& a,
                                             int from, int first, int count, int group,
                                             int kv_head) {
#pragma unroll
  for (int b = 0; b < kCount; ++b) {
    const int query = first + from + b * kWarps;
    const int64_t vector =
        static_cast<int64_t>(query / group) * a.heads + kv_head * group + query % group;
    load_vector(x[b], a.q + vector * a.head_dim, a.head_dim, query < count);
  }
}

// The largest magnitude's bits.
__device__ __forceinline__ uint32_t magnitude(float4 v) {
  return max(max(__float_as_uint(fabsf(v.x)), __float_as_uint(fabsf(v.y))),
             max(__float_as_uint(fabsf(v.z)), __float_as_uint(fabsf(v.w))));
}

// Queries as the sum of two halves, after a power of two that brings the largest to 2^13 ... 2^14.
template <bool kSplit, int kDim, int kTiles, int kCount, int kChunks>
__device__ __forceinline__ void keep_queries(float4 (&x)[kCount][kChunks],
                                             Shared<kDim, kTiles>& shared, const float2* angles,
                                             const Attend& a, int from, int first, int count,
                                             int group) {
  const int lane = threadIdx.x % 32;
  if constexpr (kSplit) {
    int steps[kCount];
#pragma unroll
    for (int b = 0; b < kCount; ++b) {
      steps[b] = min(first + from + b * kWarps, count - 1) / group * a.pairs;
    }
    norm_and_rotate(x, a.head_dim, a.q_norm, a.epsilon, a.pairs, a.half, angles, steps,
                    shared.vectors[threadIdx.x / 32]);
  }
#pragma unroll
  for (int b = 0; b < kCount; ++b) {
    const int i = from + b * kWarps;
    uint32_t largest = magnitude(x[b][0]);
#pragma unroll
    for (int j = 1; j < kChunks; ++j) largest = max(largest, magnitude(x[b][j]));
    largest = __reduce_max_sync(0xffffffffU, largest);
    const int exponent = min(max(static_cast<int>(largest >> 23), 27), 254);
    const float up = __uint_as_float(static_cast<uint32_t>(267 - exponent) << 23);
    const float down = __uint_as_float(static_cast<uint32_t>(exponent - 13) << 23);
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      const int column = 4 * (lane + 32 * j);
      if (column >= kDim) continue;
      const float4 v = {x[b][j].x * up, x[b][j].y * up, x[b][j].z * up, x[b][j].w * up};
      const __half2 high[2] = {__floats2half2_rn(v.x, v.y), __floats2half2_rn(v.z, v.w)};
      const __half2 low[2] = {
          __floats2half2_rn(v.x - __low2float(high[0]), v.y - __high2float(high[0])),
          __floats2half2_rn(v.z - __low2float(high[1]), v.w - __high2float(high[1]))};
      *reinterpret_cast<uint2*>(&shared.q_high[i][column]) = *reinterpret_cast<const uint2*>(high);
      *reinterpret_cast<uint2*>(&shared.q_low[i][column]) = *reinterpret_cast<const uint2*>(low);
    }
    if (lane == 0) shared.factors[i] = down * (a.scale * kLog2E);
  }
}

// The pass's own positions in a tile, [begin, end) in rows; this warp takes begin + warp and every
// kWarps-th after it, at most kBatch of them.
static_assert(kSplitRows <= kBatch * kWarps);

struct OwnRows {
  int begin, end, tile_row;  // tile_row + row is its place in the tile

  __device__ OwnRows(int tile, int before, int visible)
      : begin(max(tile - before, 0)),
        end(min(tile + kTile, visible) - before),
        tile_row(before - tile) {}
  [[nodiscard]] __device__ int row(int b) const {
    return begin + static_cast<int>(threadIdx.x / 32) + b * kWarps;
  }
};

template <int kChunks>
__device__ __forceinline__ void load_own(float4 (&x)[kBatch][kChunks], const OwnRows& own,
                                         const float* from, const Attend& a, int kv_head) {
#pragma unroll
  for (int b = 0; b < kBatch; ++b) {
    const int row = own.row(b);
    load_vector(x[b], from + (static_cast<int64_t>(row) * a.kv_heads + kv_head) * a.head_dim,
                a.head_dim, row < own.end);
  }
}

// Puts own keys (with angles) or values (without) into the tile, and into the cache where `stores`.
template <int kDim, int kChunks>
__device__ __forceinline__ void keep_own(float4 (&x)[kBatch][kChunks], const OwnRows& own,
                                         __half (*to)[kDim + 8], __half* cache, int before,
                                         bool stores, const float2* angles, float4* buffer,
                                         const Attend& a) {
  const int lane = threadIdx.x % 32;
  if (angles != nullptr) {
    int steps[kBatch];
#pragma unroll
    for (int b = 0; b < kBatch; ++b) steps[b] = min(own.row(b), own.end - 1) * a.pairs;
    norm_and_rotate(x, a.head_dim, a.k_norm, a.epsilon, a.pairs, a.half, angles, steps, buffer);
  }
#pragma unroll
  for (int b = 0; b < kBatch; ++b) {
    const int row = own.row(b);
    if (row >= own.end) continue;
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      const int column = 4 * (lane + 32 * j);
      if (column >= a.head_dim) continue;
      store_four(&to[own.tile_row + row][column], x[b][j]);
      if (stores) {
        store_four(cache + static_cast<int64_t>(before + row) * a.head_dim + column, x[b][j]);
      }
    }
  }
}

template <int kDim, int kTiles, bool kSplit>
__global__ void __launch_bounds__(kThreads)
    attend(const Attend a, const __grid_constant__ RopeTable table) {
  using Memory = Shared<kDim, kTiles>;
  constexpr int kStride = Memory::kStride;
  constexpr int kColumns = kDim / kWarps;  // of a warp
  constexpr int kPieces = kColumns / 8;
  extern __shared__ __align__(16) unsigned char memory[];
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  auto* angles = reinterpret_cast<float2*>(memory + sizeof(Memory));
  constexpr int kChunks = kDim > 128 ? kDim / 128 : 1;

  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int g = lane / 4;
  const int t = lane % 4;
  const int group = a.heads / a.kv_heads;
  const int count = a.rows * group;  // queries of a KV head
  // The first blocks of a grid land on different multiprocessors, and they are the longest: for few
  // rows the first segments of each KV head, for many the last rows.
  const int kv_head = static_cast<int>(blockIdx.x);
  const int first =
      Memory::kQueries * static_cast<int>(kSplit ? blockIdx.z : gridDim.y - 1 - blockIdx.y);
  const int before = static_cast<int>(a.input->first_position);  // positions of earlier passes
  const int last = min(first + Memory::kQueries, count) - 1;
  const int visible = before + last / group + 1;
  const int segments = segment_of(visible - 1) + 1;
  if (kSplit && static_cast<int>(blockIdx.y) >= segments) return;

  __half* keys = a.keys + kv_head * a.capacity * a.head_dim;
  __half* values = a.values + kv_head * a.capacity * a.head_dim;
  const int cached = kSplit ? before : visible;  // positions to be read from the cache
  Cursor<kSplit> cursor;
  cursor.start(segments, blockIdx.y, gridDim.y, visible);
  if constexpr (!kSplit) {
    release_next();
    wait_for_previous();
  }
  fetch<kDim>(shared.keys, keys, cursor.tile, cached, visible, a.head_dim);
  commit_copies();
  fetch<kDim>(shared.values, values, cursor.tile, cached, visible, a.head_dim);
  commit_copies();
  const bool stores = blockIdx.z == gridDim.z - 1;  // the last query tile sees all rows
  if constexpr (kSplit) {
    // A thread keeps its frequency: reading the table at 32 places takes 32 turns.
    const int pair = threadIdx.x % (kDim / 2);
    if (pair < a.pairs) {
      const double turns = table.turns[pair];
      for (int row = threadIdx.x / (kDim / 2); row < a.rows; row += kThreads / (kDim / 2)) {
        angles[row * a.pairs + pair] = rope_angle(before + row, turns);
      }
    }
    __syncthreads();
    wait_for_previous();
  }
  {
    constexpr int kCount = kTiles == 1 ? 4 : 8;  // queries of a warp in flight
    float4 x[kCount][kChunks];
    load_queries(x, a, warp, first, count, group, kv_head);
    if constexpr (kSplit) {
      const OwnRows own(cursor.tile, before, visible);
      if (own.begin < own.end) {
        float4 k[kBatch][kChunks];
        float4 v[kBatch][kChunks];
        load_own(k, own, a.k, a, kv_head);
        load_own(v, own, a.v, a, kv_head);
        keep_own<kDim>(k, own, shared.keys, keys, before, stores, angles, shared.vectors[warp], a);
        keep_own<kDim>(v, own, shared.values, values, before, stores, nullptr, nullptr, a);
      }
    }
    keep_queries<kSplit>(x, shared, angles, a, warp, first, count, group);
#pragma unroll 1
    for (int from = warp + kCount * kWarps; from < Memory::kQueries; from += kCount * kWarps) {
      load_queries(x, a, from, first, count, group, kv_head);
      keep_queries<kSplit>(x, shared, angles, a, from, first, count, group);
    }
  }

  int positions[kTiles][2];  // of this lane's queries
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      positions[m][h] = before + min(first + 16 * m + 8 * h + g, count - 1) / group;
    }
  }
  float largest[kTiles][2];
  float sum[kTiles][2];
  float out[kTiles][kPieces][4];
  // All segments so far; used where one block takes them all.
  float total_largest[kTiles][2];
  float total_sum[kTiles][2];
  float total[kTiles][kPieces][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      largest[m][h] = total_largest[m][h] = -INFINITY;
      sum[m][h] = total_sum[m][h] = 0;
    }
#pragma unroll
    for (int n = 0; n < kPieces; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) out[m][n][r] = total[m][n][r] = 0;
    }
  }

  // Where this lane's matrix rows begin.
  const uint32_t a_row = (lane / 8 % 2) * 8 + lane % 8;  // of an A operand; column 8 * (lane / 16)
  const uint32_t q_high = shared_of(&shared.q_high[a_row][8 * (lane / 16)]);
  const uint32_t q_low = shared_of(&shared.q_low[a_row][8 * (lane / 16)]);
  const uint32_t w_high = shared_of(&shared.w_high[a_row][8 * (lane / 16)]);
  const uint32_t w_low = shared_of(&shared.w_low[a_row][8 * (lane / 16)]);
  const uint32_t key_at =
      shared_of(&shared.keys[16 * warp + 8 * (lane / 16) + lane % 8][8 * (lane / 8 % 2)]);
  const uint32_t value_at = shared_of(&shared.values[a_row][kColumns * warp + 8 * (lane / 16)]);

  wait_copies<1>();
  __syncthreads();
  while (true) {
    const int tile = cursor.tile;
    const int segment = cursor.segment;
    const bool ends = cursor.last_of_segment();

    float scores[kTiles][2][4];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 4; ++r) scores[m][0][r] = scores[m][1][r] = 0;
    }
#pragma unroll
    for (int step = 0; step < kDim / 16; ++step) {
      uint32_t key[4];
      load_matrices(key, key_at + step * 32);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        uint32_t high[4];
        uint32_t low[4];
        load_matrices(high, q_high + (m * 16 * kStride + step * 16) * 2);
        load_matrices(low, q_low + (m * 16 * kStride + step * 16) * 2);
        mma_f16(scores[m][0], high, key[0], key[1]);
        mma_f16(scores[m][1], high, key[2], key[3]);
        mma_f16(scores[m][0], low, key[0], key[1]);
        mma_f16(scores[m][1], low, key[2], key[3]);
      }
    }

    // Scores become exponents of 2; what a query does not see is -inf.
    const int position = tile + 16 * warp + 2 * t;
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float factor = shared.factors[16 * m + 8 * h + g];
        float most = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            float& score = scores[m][n][2 * h + c];
            score = position + 8 * n + c <= positions[m][h] ? __fmul_rn(score, factor) : -INFINITY;
            most = fmaxf(most, score);
          }
        }
        most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 2));
        if (t == 0) shared.maxima[warp][16 * m + 8 * h + g] = most;
      }
    }
    __syncthreads();  // maxima are there; all warps are done with the keys

    const bool more = cursor.advance(visible);
    if (more) fetch<kDim>(shared.keys, keys, cursor.tile, cached, visible, a.head_dim);
    commit_copies();
    if constexpr (kSplit) {
      // Not earlier: blocks of the kernels to come would take places on some multiprocessors and
      // leave those with more of this one's blocks behind (64k positions: 120 us instead of 102).
      if (!more) release_next();
      const OwnRows own(cursor.tile, before, visible);
      if (more && own.begin < own.end) {
        float4 k[kBatch][kChunks];
        load_own(k, own, a.k, a, kv_head);
        keep_own<kDim>(k, own, shared.keys, keys, before, stores, angles, shared.vectors[warp], a);
      }
    }

    float shrink[kTiles][2];
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int query = 16 * m + 8 * h + g;
        float most = fmaxf(fmaxf(shared.maxima[0][query], shared.maxima[1][query]),
                           fmaxf(shared.maxima[2][query], shared.maxima[3][query]));
        most = fmaxf(most, largest[m][h]);
        const float base = most == -INFINITY ? 0 : most;
        shrink[m][h] = exp2_fast(__fsub_rn(largest[m][h], base));
        largest[m][h] = most;
        // Weights are 2^14 times what they stand for, out of reach of subnormal halves; the sum
        // has the same factor, and it cancels.
        const float shift = __fsub_rn(base, 14.0F);
        float parts[2];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const float w0 = exp2_fast(__fsub_rn(scores[m][n][2 * h], shift));
          const float w1 = exp2_fast(__fsub_rn(scores[m][n][2 * h + 1], shift));
          const __half2 high = __floats2half2_rn(w0, w1);
          const __half2 low = __floats2half2_rn(__fsub_rn(w0, __low2float(high)),
                                                __fsub_rn(w1, __high2float(high)));
          const int column = 16 * warp + 8 * n + 2 * t;
          *reinterpret_cast<__half2*>(&shared.w_high[query][column]) = high;
          *reinterpret_cast<__half2*>(&shared.w_low[query][column]) = low;
          parts[n] = __fadd_rn(w0, w1);
        }
        float part = __fadd_rn(parts[0], parts[1]);
        part = __fadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 1));
        part = __fadd_rn(part, __shfl_xor_sync(0xffffffffU, part, 2));
        if (t == 0) shared.sums[warp][query] = part;
      }
    }
    wait_copies<1>();
    __syncthreads();  // weights, sums and values are there

#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int query = 16 * m + 8 * h + g;
        const float part = __fadd_rn(__fadd_rn(shared.sums[0][query], shared.sums[1][query]),
                                     __fadd_rn(shared.sums[2][query], shared.sums[3][query]));
        sum[m][h] = __fmaf_rn(sum[m][h], shrink[m][h], part);
#pragma unroll
        for (int n = 0; n < kPieces; ++n) {
          out[m][n][2 * h] = __fmul_rn(out[m][n][2 * h], shrink[m][h]);
          out[m][n][2 * h + 1] = __fmul_rn(out[m][n][2 * h + 1], shrink[m][h]);
        }
      }
    }
#pragma unroll
    for (int step = 0; step < kTile / 16; ++step) {
      uint32_t high[kTiles][4];
      uint32_t low[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        load_matrices(high[m], w_high + (m * 16 * kWeightStride + step * 16) * 2);
        load_matrices(low[m], w_low + (m * 16 * kWeightStride + step * 16) * 2);
      }
#pragma unroll
      for (int n = 0; n < kPieces; n += 2) {
        uint32_t value[4];
        load_transposed(value, value_at + (step * 16 * kStride + n * 8) * 2);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          mma_f16(out[m][n], high[m], value[0], value[1]);
          mma_f16(out[m][n + 1], high[m], value[2], value[3]);
          mma_f16(out[m][n], low[m], value[0], value[1]);
          mma_f16(out[m][n + 1], low[m], value[2], value[3]);
        }
      }
    }

    if (ends) {
      const int begin = segment_begin(segment);
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int query = first + 16 * m + 8 * h + g;
          if (query < count && begin <= positions[m][h]) {
            if constexpr (kSplit) {
              const int64_t vector =
                  static_cast<int64_t>(query / group) * a.heads + kv_head * group + query % group;
              const int64_t at = vector * a.segments + segment;
              if (warp == 0 && t == 0) a.partial_state[at] = {largest[m][h], sum[m][h]};
#pragma unroll
              for (int n = 0; n < kPieces; ++n) {
                const int column = kColumns * warp + 8 * n + 2 * t;
                if (column < a.head_dim) {
                  *reinterpret_cast<float2*>(a.partial_out + at * a.head_dim + column) = {
                      out[m][n][2 * h], out[m][n][2 * h + 1]};
                }
              }
            } else {
              const Step fold = combination(total_largest[m][h], largest[m][h]);
              total_largest[m][h] = fold.largest;
              total_sum[m][h] = __fmaf_rn(total_sum[m][h], fold.a, __fmul_rn(sum[m][h], fold.b));
#pragma unroll
              for (int n = 0; n < kPieces; ++n) {
#pragma unroll
                for (int r = 2 * h; r < 2 * h + 2; ++r) {
                  total[m][n][r] =
                      __fmaf_rn(total[m][n][r], fold.a, __fmul_rn(out[m][n][r], fold.b));
                }
              }
            }
          }
          largest[m][h] = -INFINITY;
          sum[m][h] = 0;
#pragma unroll
          for (int n = 0; n < kPieces; ++n) out[m][n][2 * h] = out[m][n][2 * h + 1] = 0;
        }
      }
    }
    if (!more) break;
    wait_copies<0>();
    __syncthreads();  // the next keys are there; all warps are done with values and weights
    fetch<kDim>(shared.values, values, cursor.tile, cached, visible, a.head_dim);
    commit_copies();
    if constexpr (kSplit) {
      const OwnRows own(cursor.tile, before, visible);
      if (own.begin < own.end) {
        float4 v[kBatch][kChunks];
        load_own(v, own, a.v, a, kv_head);
        keep_own<kDim>(v, own, shared.values, values, before, stores, nullptr, nullptr, a);
      }
    }
  }

  if constexpr (!kSplit) {
#pragma unroll
    for (int m = 0; m < kTiles; ++m) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int query = first + 16 * m + 8 * h + g;
        if (query >= count) continue;
        const int64_t vector =
            static_cast<int64_t>(query / group) * a.heads + kv_head * group + query % group;
        const float inverse = __fdiv_rn(1.0F, total_sum[m][h]);
#pragma unroll
        for (int n = 0; n < kPieces; ++n) {
          const int column = kColumns * warp + 8 * n + 2 * t;
          if (column < a.head_dim) {
            *reinterpret_cast<float2*>(a.out + vector * a.head_dim + column) = {
                __fmaf_rn(total[m][n][2 * h], inverse, 0.0F),
                __fmaf_rn(total[m][n][2 * h + 1], inverse, 0.0F)};
          }
        }
      }
    }
  }
}

// One block a row and head, one thread a column; whole warps.
__global__ void __launch_bounds__(kMaxHead) combine_segments(const Attend a) {
  release_next();
  __shared__ float2 factors[kMaxSegments];
  __shared__ float sums[kMaxSegments];
  const int64_t vector = blockIdx.x;
  const int position =
      static_cast<int>(a.input->first_position) + static_cast<int>(vector / a.heads);
  const int segments = segment_of(position) + 1;
  const float2* state = a.partial_state + vector * a.segments;
  const int column = min(static_cast<int>(threadIdx.x), a.head_dim - 1);
  const float* partial = a.partial_out + vector * a.segments * a.head_dim + column;
  wait_for_previous();
  if (threadIdx.x < 32) {
    // The running maximum is a scan: maxima can be taken in any order.
    float carry = -INFINITY;
    for (int base = 0; base < segments; base += 32) {
      const int s = base + static_cast<int>(threadIdx.x);
      const float2 own = s < segments ? state[s] : float2{-INFINITY, 0};
      float inclusive = own.x;
      for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(0xffffffffU, inclusive, step);
        if (threadIdx.x >= static_cast<unsigned>(step)) inclusive = fmaxf(inclusive, other);
      }
      inclusive = fmaxf(inclusive, carry);
      float before = __shfl_up_sync(0xffffffffU, inclusive, 1);
      if (threadIdx.x == 0) before = carry;
      carry = __shfl_sync(0xffffffffU, inclusive, 31);
      if (s < segments) {
        const Step fold = combination(before, own.x);
        factors[s] = {fold.a, fold.b};
        sums[s] = own.y;
      }
    }
  }
  constexpr int kAhead = 16;
  float next[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    if (i < segments) next[i] = partial[static_cast<int64_t>(i) * a.head_dim];
  }
  __syncthreads();
  float sum = 0;
  float out = 0;
  for (int base = 0; base < segments; base += kAhead) {
    float now[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      now[i] = next[i];
      const int ahead = base + kAhead + i;
      if (ahead < segments) next[i] = partial[static_cast<int64_t>(ahead) * a.head_dim];
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      if (base + i >= segments) break;
      const float2 factor = factors[base + i];
      sum = __fmaf_rn(sum, factor.x, __fmul_rn(sums[base + i], factor.y));
      out = __fmaf_rn(out, factor.x, __fmul_rn(now[i], factor.y));
    }
  }
  if (static_cast<int>(threadIdx.x) < a.head_dim) {
    a.out[vector * a.head_dim + column] = __fmaf_rn(out, __fdiv_rn(1.0F, sum), 0.0F);
  }
}

int multiprocessors() {
  int device = 0;
  int count = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) {
    return 0;
  }
  return count;
}

template <int kDim, int kTiles, bool kSplit>
void launch_attend(const Attend& a, const RopeTable& table, KernelContext& context) {
  using Memory = Shared<kDim, kTiles>;
  const int count = a.rows * (a.heads / a.kv_heads);
  const int tiles = (count + Memory::kQueries - 1) / Memory::kQueries;
  dim3 grid(a.kv_heads, tiles);
  auto bytes = static_cast<uint32_t>(sizeof(Memory));
  if (kSplit) {
    // As many as are resident together; the result does not depend on how many share a KV head.
    bytes += static_cast<uint32_t>(a.rows * a.pairs * sizeof(float2));
    const int fit = (227 * 1024) / (static_cast<int>(bytes) + 1024);
    const int resident = fit < 1 ? 1 : fit > 4 ? 4 : fit;
    const int share = resident * multiprocessors() / (a.kv_heads * tiles);
    const int workers = share < kSegmentsOfDoubling ? kSegmentsOfDoubling : share;
    grid = dim3(a.kv_heads, workers < a.segments ? workers : a.segments, tiles);
  }
  launch(context, attend<kDim, kTiles, kSplit>, grid, dim3(kThreads), bytes, a, table);
}

template <int kDim>
void launch_dim(const Attend& a, const RopeTable& table, KernelContext& context) {
  if (a.rows > kSplitRows) {
    // Two sets of 16 x 64 sums a warp and query tile would not fit the registers.
    constexpr int kTiles = kDim == 256 ? 2 : 4;
    return launch_attend<kDim, kTiles, false>(a, table, context);
  }
  const int count = a.rows * (a.heads / a.kv_heads);
  // Two blocks of 32 queries instead of one of 64 gain nothing at short context (19 us a layer for
  // 16 rows of 4 heads a KV head) and lose at 4k positions (52 us instead of 36).
  if (count <= 16) {
    launch_attend<kDim, 1, true>(a, table, context);
  } else if (count <= 32 || kDim == 256) {
    launch_attend<kDim, 2, true>(a, table, context);
  } else {
    launch_attend<kDim, kDim == 256 ? 2 : 4, true>(a, table, context);
  }
  launch(context, combine_segments, dim3(a.rows * a.heads), dim3((a.head_dim + 31) / 32 * 32), 0,
         a);
}

Attend attend_of(const AttentionArgs& args, KernelContext& context) {
  Attend a{};
  a.q = args.q;
  a.k = args.k;
  a.v = args.v;
  a.keys = static_cast<__half*>(args.cache_k);
  a.values = static_cast<__half*>(args.cache_v);
  a.out = args.out;
  a.input = queue(context).input;
  a.capacity = args.capacity;
  a.rows = static_cast<int>(args.rows);
  a.heads = static_cast<int>(args.heads);
  a.kv_heads = static_cast<int>(args.kv_heads);
  a.head_dim = static_cast<int>(args.head_dim);
  a.segments = segment_of(static_cast<int>(args.capacity) - 1) + 1;
  a.scale = args.scale;
  if (args.rows <= kSplitRows) {
    const uint64_t bytes = attention_scratch_bytes(args.rows, args.heads, args.head_dim);
    a.partial_out = static_cast<float*>(scratch(context, bytes));
    a.partial_state = reinterpret_cast<float2*>(a.partial_out + args.rows * args.heads *
                                                                    a.segments * args.head_dim);
  }
  return a;
}

void run(const Attend& a, const RopeTable& table, KernelContext& context) {
  if (a.head_dim <= 64) return launch_dim<64>(a, table, context);
  if (a.head_dim <= 128) return launch_dim<128>(a, table, context);
  launch_dim<256>(a, table, context);
}

bool too_long(const AttentionArgs& args, KernelContext& context) {
  if (args.capacity <= kMaxPositions) return false;
  fail(context, "a cache of more than 1048576 positions");
  return true;
}

}  // namespace

void attention_exact_mma(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0 || too_long(args, context)) return;
  if (args.rows > kSplitRows) store_keys<__half>(args, context);
  run(attend_of(args, context), RopeTable{}, context);
}

void rope_attention_exact_mma(const RopeAttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.attention.rows == 0 || too_long(args.attention, context)) return;
  Attend a = attend_of(args.attention, context);
  if (a.rows > kSplitRows) {
    rotate_and_store<__half>(args, context);
    return run(a, RopeTable{}, context);
  }
  a.q_norm = args.q_norm;
  a.k_norm = args.k_norm;
  a.epsilon = args.epsilon;
  a.pairs = static_cast<int>(args.rope_dims / 2);
  a.half = args.pairing == RopePairing::kHalf;
  run(a, rope_table(args.rope_dims, args.rope_base), context);
}

const char* attention_exact_mma_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
