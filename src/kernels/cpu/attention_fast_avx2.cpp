// Attention with AVX2 and FMA for many rows (attention_fast.h).
//
// As in attention_fast_avx512.cpp, 16 queries of a KV head stand in the lanes of registers, here
// of two, and keys and values are broadcast from memory: 6 positions (or 6 columns of values) at a
// time are 12 registers of sums. The running output is corrected once a block of 48 positions,
// whose keys and values of 64 dimensions are 24 KB, so that a block stays in the first-level cache.
//
// A position that a lane does not see has a score so low that its weight is 0 beside any that the
// lane does see. Where it sees none of a block (a window that begins later), what the block leaves
// is taken away by the correction of the first one that it sees. A value that is not finite spoils
// the lanes of its tile.
#include <immintrin.h>

#include "kernels/cpu/attention_common.h"
#include "kernels/cpu/attention_fast.h"
#include "kernels/cpu/attention_fast_avx2.hash.h"
#include "kernels/cpu/exp_avx2.h"
#include "kernels/cpu/transpose_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "fast_avx2";
constexpr int64_t kTogether = 6;  // positions or columns
constexpr float kHidden = -1e38F;

struct Job {
  const AttentionArgs* args;
  float* memory;  // [threads, stride]
  int64_t stride;
  int64_t head_tiles;  // of a KV head
};

// 16 queries of one KV head. Query i of a head is row i / group, head i % group of the head's
// group; lanes beyond the last query repeat it and are not stored.
struct Tile {
  int64_t dim;
  const float* keys;                        // [positions, dim]
  const float* values;                      // [positions, dim]
  float* queries;                           // [dim, 16], times the scale
  float* scores;                            // [kFloatKeyBlock, 16]
  float* sums;                              // [dim, 16]
  int64_t offsets[kQueryLanes];             // of the queries in q and out
  alignas(32) int32_t starts[kQueryLanes];  // the first position that a lane sees
  alignas(32) int32_t ends[kQueryLanes];    // behind the last one
  int64_t count;                            // lanes that are stored
  int64_t first, last;          // positions that any lane sees, whole blocks at the front
  int64_t all_first, all_last;  // positions that every lane sees
};

// queries[d, l] = q of lane l, times the scale.
void load_queries(const AttentionArgs& args, const Tile& tile) {
  const __m256 scale = _mm256_set1_ps(args.scale);
  for (int64_t lane = 0; lane < kQueryLanes; lane += 8) {
    int64_t d = 0;
    for (; d + 8 <= tile.dim; d += 8) {
      __m256 rows[8];
      for (int i = 0; i < 8; ++i) {
        rows[i] = _mm256_mul_ps(_mm256_loadu_ps(args.q + tile.offsets[lane + i] + d), scale);
      }
      transpose8(rows);
      for (int i = 0; i < 8; ++i) {
        _mm256_storeu_ps(tile.queries + (d + i) * kQueryLanes + lane, rows[i]);
      }
    }
    for (; d < tile.dim; ++d) {
      for (int i = 0; i < 8; ++i) {
        tile.queries[d * kQueryLanes + lane + i] = args.q[tile.offsets[lane + i] + d] * args.scale;
      }
    }
  }
}

// The lanes' sums over what weights add up to, [16].
void store_outputs(const AttentionArgs& args, const Tile& tile, const float* totals) {
  for (int64_t lane = 0; lane < tile.count; lane += 8) {
    const int64_t lanes = smaller(8, tile.count - lane);
    const __m256 total = _mm256_loadu_ps(totals + lane);
    int64_t d = 0;
    for (; d + 8 <= tile.dim; d += 8) {
      __m256 rows[8];
      for (int i = 0; i < 8; ++i) {
        const float* sums = tile.sums + (d + i) * kQueryLanes + lane;
        rows[i] = _mm256_div_ps(_mm256_loadu_ps(sums), total);
      }
      transpose8(rows);
      for (int64_t i = 0; i < lanes; ++i) {
        _mm256_storeu_ps(args.out + tile.offsets[lane + i] + d, rows[i]);
      }
    }
    for (; d < tile.dim; ++d) {
      for (int64_t i = lane; i < lane + lanes; ++i) {
        args.out[tile.offsets[i] + d] = tile.sums[d * kQueryLanes + i] / totals[i];
      }
    }
  }
}

Tile make_tile(const Job& job, int64_t kv_head, int64_t first, float* memory) {
  const AttentionArgs& args = *job.args;
  const int64_t group = args.heads / args.kv_heads;
  const int64_t last = args.rows * group - 1;
  Tile tile{};
  for (int64_t l = 0; l < kQueryLanes; ++l) {
    const int64_t i = smaller(first + l, last);
    const int64_t row = i / group;
    const int64_t end = args.first_position + row + 1;
    tile.offsets[l] = (row * args.heads + kv_head * group + i % group) * args.head_dim;
    tile.ends[l] = static_cast<int32_t>(end);
    tile.starts[l] =
        args.window > 0 && end > args.window ? static_cast<int32_t>(end - args.window) : 0;
  }
  tile.dim = args.head_dim;
  const int64_t cache = kv_head * args.capacity * args.head_dim;
  tile.keys = static_cast<const float*>(args.cache_k) + cache;
  tile.values = static_cast<const float*>(args.cache_v) + cache;
  tile.queries = memory;
  tile.sums = memory + tile.dim * kQueryLanes;
  tile.scores = tile.sums + tile.dim * kQueryLanes;
  tile.count = smaller(kQueryLanes, last + 1 - first);
  tile.first = tile.starts[0] / kFloatKeyBlock * kFloatKeyBlock;
  tile.all_first = tile.starts[kQueryLanes - 1];
  tile.all_last = tile.ends[0];
  tile.last = tile.ends[kQueryLanes - 1];
  load_queries(args, tile);
  return tile;
}

// A lane's score of a position, or kHidden where it does not see it.
__m256 hide(const Tile& tile, int64_t lane, int64_t position, __m256 score) {
  const __m256i at = _mm256_set1_epi32(static_cast<int32_t>(position));
  const __m256i starts = _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.starts + lane));
  const __m256i ends = _mm256_load_si256(reinterpret_cast<const __m256i*>(tile.ends + lane));
  const __m256i seen =
      _mm256_andnot_si256(_mm256_cmpgt_epi32(starts, at), _mm256_cmpgt_epi32(ends, at));
  return _mm256_blendv_ps(_mm256_set1_ps(kHidden), score, _mm256_castsi256_ps(seen));
}

// Scores of kCount positions from `first + p`; the largest of them and `largest`.
template <int kCount>
void score_positions(const Tile& tile, int64_t first, int64_t p, __m256 (&largest)[2]) {
  __m256 low[kCount];
  __m256 high[kCount];
  for (int i = 0; i < kCount; ++i) low[i] = high[i] = _mm256_setzero_ps();
  const float* keys = tile.keys + (first + p) * tile.dim;
  const float* query = tile.queries;
  for (int64_t d = 0; d < tile.dim; ++d, query += kQueryLanes) {
    const __m256 q0 = _mm256_loadu_ps(query);
    const __m256 q1 = _mm256_loadu_ps(query + 8);
    for (int i = 0; i < kCount; ++i) {
      const __m256 key = _mm256_broadcast_ss(keys + i * tile.dim + d);
      low[i] = _mm256_fmadd_ps(q0, key, low[i]);
      high[i] = _mm256_fmadd_ps(q1, key, high[i]);
    }
  }
  for (int i = 0; i < kCount; ++i) {
    const int64_t position = first + p + i;
    if (position < tile.all_first || position >= tile.all_last) {
      low[i] = hide(tile, 0, position, low[i]);
      high[i] = hide(tile, 8, position, high[i]);
    }
    _mm256_storeu_ps(tile.scores + (p + i) * kQueryLanes, low[i]);
    _mm256_storeu_ps(tile.scores + (p + i) * kQueryLanes + 8, high[i]);
    largest[0] = _mm256_max_ps(largest[0], low[i]);
    largest[1] = _mm256_max_ps(largest[1], high[i]);
  }
}

// sums of kColumns columns of values from d: sums * decay + weights * values.
template <int kColumns>
void add_values(const Tile& tile, int64_t first, int64_t count, int64_t d,
                const __m256 (&decay)[2]) {
  __m256 low[kColumns];
  __m256 high[kColumns];
  float* sums = tile.sums + d * kQueryLanes;
  const bool adds = first > tile.first;
  for (int j = 0; j < kColumns; ++j) {
    low[j] = high[j] = _mm256_setzero_ps();
    if (adds) {
      low[j] = _mm256_mul_ps(_mm256_loadu_ps(sums + j * kQueryLanes), decay[0]);
      high[j] = _mm256_mul_ps(_mm256_loadu_ps(sums + j * kQueryLanes + 8), decay[1]);
    }
  }
  const float* values = tile.values + first * tile.dim + d;
  const float* weights = tile.scores;
  for (int64_t p = 0; p < count; ++p, values += tile.dim, weights += kQueryLanes) {
    const __m256 w0 = _mm256_loadu_ps(weights);
    const __m256 w1 = _mm256_loadu_ps(weights + 8);
    for (int j = 0; j < kColumns; ++j) {
      const __m256 value = _mm256_broadcast_ss(values + j);
      low[j] = _mm256_fmadd_ps(w0, value, low[j]);
      high[j] = _mm256_fmadd_ps(w1, value, high[j]);
    }
  }
  for (int j = 0; j < kColumns; ++j) {
    _mm256_storeu_ps(sums + j * kQueryLanes, low[j]);
    _mm256_storeu_ps(sums + j * kQueryLanes + 8, high[j]);
  }
}

// Scores of `count` positions to weights; `largest` is that of all blocks so far.
void weigh(const Tile& tile, int64_t count, const __m256 (&largest)[2], __m256 (&sums)[2]) {
  for (int64_t p = 0; p < count; ++p) {
    float* at = tile.scores + p * kQueryLanes;
    const __m256 w0 = exp8(_mm256_sub_ps(_mm256_loadu_ps(at), largest[0]));
    const __m256 w1 = exp8(_mm256_sub_ps(_mm256_loadu_ps(at + 8), largest[1]));
    _mm256_storeu_ps(at, w0);
    _mm256_storeu_ps(at + 8, w1);
    sums[0] = _mm256_add_ps(sums[0], w0);
    sums[1] = _mm256_add_ps(sums[1], w1);
  }
}

void attend(const AttentionArgs& args, const Tile& tile) {
  __m256 largest[2] = {_mm256_set1_ps(kHidden), _mm256_set1_ps(kHidden)};
  __m256 totals[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (int64_t first = tile.first; first < tile.last; first += kFloatKeyBlock) {
    const int64_t count = smaller(kFloatKeyBlock, tile.last - first);
    __m256 next[2] = {largest[0], largest[1]};
    int64_t p = 0;
    for (; p + kTogether <= count; p += kTogether) score_positions<kTogether>(tile, first, p, next);
    for (; p < count; ++p) score_positions<1>(tile, first, p, next);
    __m256 decay[2];
    __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    weigh(tile, count, next, sums);
    for (int h = 0; h < 2; ++h) {
      decay[h] = exp8(_mm256_sub_ps(largest[h], next[h]));
      totals[h] = _mm256_fmadd_ps(totals[h], decay[h], sums[h]);
      largest[h] = next[h];
    }
    int64_t d = 0;
    for (; d + kTogether <= tile.dim; d += kTogether) {
      add_values<kTogether>(tile, first, count, d, decay);
    }
    for (; d + 2 <= tile.dim; d += 2) add_values<2>(tile, first, count, d, decay);
    if (d < tile.dim) add_values<1>(tile, first, count, d, decay);
  }
  float all[kQueryLanes];
  _mm256_storeu_ps(all, totals[0]);
  _mm256_storeu_ps(all + 8, totals[1]);
  store_outputs(args, tile, all);
}

// Task: one tile, those that see most first.
void attend_tile(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t kv_head = task % job.args->kv_heads;
  const int64_t tile = job.head_tiles - 1 - task / job.args->kv_heads;
  attend(*job.args, make_tile(job, kv_head, tile * kQueryLanes, job.memory + thread * job.stride));
}

}  // namespace

void attention_fast_avx2(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  store_rows(args);
  const int threads = thread_count(context);
  const uint64_t bytes = float_attention_scratch_bytes(args.head_dim, threads);
  Job job{};
  job.args = &args;
  job.memory = static_cast<float*>(scratch(context, bytes));
  job.stride = static_cast<int64_t>(bytes / sizeof(float)) / threads;
  job.head_tiles = (args.rows * (args.heads / args.kv_heads) + kQueryLanes - 1) / kQueryLanes;
  parallel_for(context, args.kv_heads * job.head_tiles, attend_tile, &job);
}

const char* attention_fast_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
