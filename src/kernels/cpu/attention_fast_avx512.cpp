// Attention with AVX-512 for many rows (attention_fast.h).
//
// 16 queries of a KV head stand in the lanes of registers, so that scores, weights and outputs of a
// query never leave its lane: nothing is summed across lanes, and keys and values are broadcast
// from memory, which takes no vector port. 8 positions (or 16 columns of values) at a time make
// enough independent chains of multiply-adds.
//
// The running output is corrected once a block of 64 positions (Milakov & Gimelshein 2018,
// arXiv:1805.02867; Dao et al. 2022, arXiv:2205.14135). A position that a lane does not see has
// score -infinity and weight 0; a value there that is not finite spoils the lanes of its tile.
#include <immintrin.h>

#include "kernels/cpu/attention_common.h"
#include "kernels/cpu/attention_fast.h"
#include "kernels/cpu/attention_fast_avx512.hash.h"
#include "kernels/cpu/exp_avx512.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "fast_avx512";

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
  const float* keys;     // [positions, dim]
  const float* values;   // [positions, dim]
  float* queries;        // [dim, 16], times the scale
  float* scores;         // [kFastKeyBlock, 16]
  float* sums;           // [dim, 16]
  __m512i offsets;       // of the queries in q and out
  __m512i visible;       // positions that a lane sees
  int64_t fewest, most;  // of them
  __mmask16 stored;
};

Tile make_tile(const Job& job, int64_t kv_head, int64_t first, float* memory) {
  const AttentionArgs& args = *job.args;
  const int64_t group = args.heads / args.kv_heads;
  const int64_t last = args.rows * group - 1;
  alignas(64) int32_t offsets[kQueryLanes];
  alignas(64) int32_t visible[kQueryLanes];
  Tile tile{};
  for (int64_t l = 0; l < kQueryLanes; ++l) {
    const int64_t i = smaller(first + l, last);
    const int64_t row = i / group;
    offsets[l] =
        static_cast<int32_t>((row * args.heads + kv_head * group + i % group) * args.head_dim);
    visible[l] = static_cast<int32_t>(args.first_position + row + 1);
  }
  tile.dim = args.head_dim;
  const int64_t cache = kv_head * args.capacity * args.head_dim;
  tile.keys = static_cast<const float*>(args.cache_k) + cache;
  tile.values = static_cast<const float*>(args.cache_v) + cache;
  tile.queries = memory;
  tile.sums = memory + tile.dim * kQueryLanes;
  tile.scores = tile.sums + tile.dim * kQueryLanes;
  tile.offsets = _mm512_load_si512(offsets);
  tile.visible = _mm512_load_si512(visible);
  tile.fewest = visible[0];
  tile.most = visible[kQueryLanes - 1];
  const int64_t count = smaller(kQueryLanes, last + 1 - first);
  tile.stored = static_cast<__mmask16>((1U << count) - 1);
  const __m512 scale = _mm512_set1_ps(args.scale);
  for (int64_t d = 0; d < tile.dim; ++d) {
    const __m512 column = _mm512_i32gather_ps(tile.offsets, args.q + d, 4);
    _mm512_store_ps(tile.queries + d * kQueryLanes, _mm512_mul_ps(column, scale));
  }
  return tile;
}

// Scores of kCount positions from `first + p`; gives the largest of them and `largest`.
template <int kCount>
__m512 score_positions(const Tile& tile, int64_t first, int64_t p, __m512 largest) {
  __m512 dots[kCount];
  for (int i = 0; i < kCount; ++i) dots[i] = _mm512_setzero_ps();
  const float* keys = tile.keys + (first + p) * tile.dim;
  for (int64_t d = 0; d < tile.dim; ++d) {
    const __m512 query = _mm512_load_ps(tile.queries + d * kQueryLanes);
    for (int i = 0; i < kCount; ++i) {
      dots[i] = _mm512_fmadd_ps(query, _mm512_set1_ps(keys[i * tile.dim + d]), dots[i]);
    }
  }
  for (int i = 0; i < kCount; ++i) {
    const int64_t position = first + p + i;
    if (position >= tile.fewest) {
      const __mmask16 hidden =
          _mm512_cmple_epi32_mask(tile.visible, _mm512_set1_epi32(static_cast<int32_t>(position)));
      dots[i] = _mm512_mask_mov_ps(dots[i], hidden, _mm512_set1_ps(-__builtin_inff()));
    }
    _mm512_store_ps(tile.scores + (p + i) * kQueryLanes, dots[i]);
    largest = _mm512_max_ps(largest, dots[i]);
  }
  return largest;
}

// sums of kColumns columns of values from d: sums * decay + weights * values.
template <int kColumns>
void add_values(const Tile& tile, int64_t first, int64_t count, int64_t d, __m512 decay,
                bool adds) {
  __m512 sums[kColumns];
  for (int j = 0; j < kColumns; ++j) {
    sums[j] = adds ? _mm512_mul_ps(_mm512_load_ps(tile.sums + (d + j) * kQueryLanes), decay)
                   : _mm512_setzero_ps();
  }
  const float* values = tile.values + first * tile.dim + d;
  for (int64_t p = 0; p < count; ++p, values += tile.dim) {
    const __m512 weight = _mm512_load_ps(tile.scores + p * kQueryLanes);
    for (int j = 0; j < kColumns; ++j) {
      sums[j] = _mm512_fmadd_ps(weight, _mm512_set1_ps(values[j]), sums[j]);
    }
  }
  for (int j = 0; j < kColumns; ++j) _mm512_store_ps(tile.sums + (d + j) * kQueryLanes, sums[j]);
}

void attend(const Job& job, const Tile& tile) {
  __m512 largest = _mm512_set1_ps(-__builtin_inff());
  __m512 total = _mm512_setzero_ps();
  for (int64_t first = 0; first < tile.most; first += kFastKeyBlock) {
    const int64_t count = smaller(kFastKeyBlock, tile.most - first);
    __m512 next = largest;
    int64_t p = 0;
    for (; p + 8 <= count; p += 8) next = score_positions<8>(tile, first, p, next);
    for (; p < count; ++p) next = score_positions<1>(tile, first, p, next);
    const __m512 decay = exp16(_mm512_sub_ps(largest, next));
    __m512 sum = _mm512_setzero_ps();
    for (p = 0; p < count; ++p) {
      float* at = tile.scores + p * kQueryLanes;
      const __m512 weight = exp16(_mm512_sub_ps(_mm512_load_ps(at), next));
      _mm512_store_ps(at, weight);
      sum = _mm512_add_ps(sum, weight);
    }
    total = _mm512_fmadd_ps(total, decay, sum);
    largest = next;
    int64_t d = 0;
    for (; d + 16 <= tile.dim; d += 16) add_values<16>(tile, first, count, d, decay, first > 0);
    for (; d + 4 <= tile.dim; d += 4) add_values<4>(tile, first, count, d, decay, first > 0);
    for (; d < tile.dim; ++d) add_values<1>(tile, first, count, d, decay, first > 0);
  }
  for (int64_t d = 0; d < tile.dim; ++d) {
    const __m512 column = _mm512_div_ps(_mm512_load_ps(tile.sums + d * kQueryLanes), total);
    _mm512_mask_i32scatter_ps(job.args->out + d, tile.stored, tile.offsets, column, 4);
  }
}

// Task: one tile, those that see most first.
void attend_tile(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t kv_head = task % job.args->kv_heads;
  const int64_t tile = job.head_tiles - 1 - task / job.args->kv_heads;
  attend(job, make_tile(job, kv_head, tile * kQueryLanes, job.memory + thread * job.stride));
}

}  // namespace

void attention_fast_avx512(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  store_rows(args);
  const int threads = thread_count(context);
  const uint64_t bytes = fast_attention_scratch_bytes(args.head_dim, threads);
  Job job{};
  job.args = &args;
  job.memory = static_cast<float*>(scratch(context, bytes));
  job.stride = static_cast<int64_t>(bytes / sizeof(float)) / threads;
  job.head_tiles = (args.rows * (args.heads / args.kv_heads) + kQueryLanes - 1) / kQueryLanes;
  parallel_for(context, args.kv_heads * job.head_tiles, attend_tile, &job);
}

const char* attention_fast_avx512_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
