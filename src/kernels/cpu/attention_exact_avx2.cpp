// Attention with AVX2 and FMA, in the order of attention_exact.h.
//
// The queries of a KV head (all its query heads, all rows) are taken in tiles, block of keys by
// block of keys: 64 positions of 64 dimensions are 16 KB of keys and 16 KB of values, which stay in
// the first-level cache while the queries of the tile pass. Inside, one query against 8 positions
// keeps 8 sums in registers; one horizontal tree then folds all 8. The running output is kept in
// the output row itself.
//
// Threads take every n-th tile, because in a prefill later rows see more positions; in a decode
// step a tile is a thread's equal share of the heads (3 KV heads do not divide among 2 threads, 9
// query heads nearly do).
#include <immintrin.h>

#include "kernels/cpu/attention_common.h"
#include "kernels/cpu/attention_exact.h"
#include "kernels/cpu/attention_exact_avx2.hash.h"
#include "kernels/cpu/exp_avx2.h"
#include "kernels/cpu/fold_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr const char* kName = "exact_avx2";
constexpr int64_t kTileQueries = 48;  // at most

struct Job {
  const AttentionArgs* args;
  float* block_out;  // [threads, block_stride]
  int64_t block_stride;
  int64_t tile_queries, tiles, threads;
};

// Lane i: fold(lanes[i]).
__m256 fold8(const __m256* lanes) {
  const __m256 a =
      _mm256_hadd_ps(_mm256_hadd_ps(lanes[0], lanes[1]), _mm256_hadd_ps(lanes[2], lanes[3]));
  const __m256 b =
      _mm256_hadd_ps(_mm256_hadd_ps(lanes[4], lanes[5]), _mm256_hadd_ps(lanes[6], lanes[7]));
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

// The dots of a query with kCount keys, one after another in memory.
template <int kCount>
void key_lanes(const float* q, const float* keys, int64_t dim, __m256* lanes) {
  for (int i = 0; i < kCount; ++i) lanes[i] = _mm256_setzero_ps();
  int64_t d = 0;
  for (; d + 8 <= dim; d += 8) {
    const __m256 query = _mm256_loadu_ps(q + d);
    for (int i = 0; i < kCount; ++i) {
      lanes[i] = _mm256_fmadd_ps(query, _mm256_loadu_ps(keys + i * dim + d), lanes[i]);
    }
  }
  if (d < dim) {
    const __m256i mask = first_lanes(static_cast<int>(dim - d));
    const __m256 query = _mm256_maskload_ps(q + d, mask);
    for (int i = 0; i < kCount; ++i) {
      lanes[i] = _mm256_fmadd_ps(query, _mm256_maskload_ps(keys + i * dim + d, mask), lanes[i]);
    }
  }
}

// scores[p] for p < count <= kKeyBlock.
void block_scores(const float* q, const float* keys, int64_t dim, int64_t count, float scale,
                  float* scores) {
  int64_t p = 0;
  for (; p + 8 <= count; p += 8) {
    __m256 lanes[8];
    key_lanes<8>(q, keys + p * dim, dim, lanes);
    _mm256_storeu_ps(scores + p, _mm256_mul_ps(fold8(lanes), _mm256_set1_ps(scale)));
  }
  for (; p < count; ++p) {
    __m256 lanes;
    key_lanes<1>(q, keys + p * dim, dim, &lanes);
    scores[p] = fold(lanes) * scale;
  }
}

// Turns scores into weights; lanes beyond `count` become 0. NaN among the scores stays NaN.
void block_weights(float* scores, int64_t count, float& largest, float& sum) {
  const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
  const int64_t vectors = (count + 7) / 8;
  const __m256 last = _mm256_castsi256_ps(first_lanes(static_cast<int>(count - (vectors - 1) * 8)));
  __m256 most = lowest;
  for (int64_t v = 0; v < vectors; ++v) {
    __m256 s = _mm256_loadu_ps(scores + 8 * v);
    if (v == vectors - 1) s = _mm256_blendv_ps(lowest, s, last);
    most = _mm256_max_ps(most, s);
  }
  most = _mm256_max_ps(most, _mm256_permute2f128_ps(most, most, 1));
  most = _mm256_max_ps(most, _mm256_shuffle_ps(most, most, 0x4e));
  most = _mm256_max_ps(most, _mm256_shuffle_ps(most, most, 0xb1));
  __m256 total = _mm256_setzero_ps();
  for (int64_t v = 0; v < vectors; ++v) {
    __m256 w = exp8(_mm256_sub_ps(_mm256_loadu_ps(scores + 8 * v), most));
    if (v == vectors - 1) w = _mm256_and_ps(w, last);
    _mm256_storeu_ps(scores + 8 * v, w);
    total = _mm256_add_ps(total, w);
  }
  largest = _mm256_cvtss_f32(most);
  sum = fold(total);
}

// out[0 ... 8 kVectors) = sum of weights[p] * values[p].
template <int kVectors>
void weigh(const float* weights, const float* values, int64_t dim, int64_t count, float* out) {
  __m256 sums[kVectors];
  for (int i = 0; i < kVectors; ++i) sums[i] = _mm256_setzero_ps();
  for (int64_t p = 0; p < count; ++p) {
    const __m256 weight = _mm256_broadcast_ss(weights + p);
    for (int i = 0; i < kVectors; ++i) {
      sums[i] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(values + p * dim + 8 * i), sums[i]);
    }
  }
  for (int i = 0; i < kVectors; ++i) _mm256_storeu_ps(out + 8 * i, sums[i]);
}

// The last dim % 8 columns; out has room for 8.
void weigh_tail(const float* weights, const float* values, int64_t dim, int64_t count,
                int64_t columns, float* out) {
  const __m256i mask = first_lanes(static_cast<int>(columns));
  __m256 sums = _mm256_setzero_ps();
  for (int64_t p = 0; p < count; ++p) {
    sums = _mm256_fmadd_ps(_mm256_broadcast_ss(weights + p),
                           _mm256_maskload_ps(values + p * dim, mask), sums);
  }
  _mm256_storeu_ps(out, sums);
}

void block_values(const float* weights, const float* values, int64_t dim, int64_t count,
                  float* out) {
  int64_t d = 0;
  for (; d + 64 <= dim; d += 64) weigh<8>(weights, values + d, dim, count, out + d);
  if (d + 32 <= dim) {
    weigh<4>(weights, values + d, dim, count, out + d);
    d += 32;
  }
  for (; d + 8 <= dim; d += 8) weigh<1>(weights, values + d, dim, count, out + d);
  if (d < dim) weigh_tail(weights, values + d, dim, count, dim - d, out + d);
}

// What a query knows of the blocks so far, beside its output row.
struct Running {
  float largest, sum;
};

// out = out * a + block * b; the block's buffer is padded to whole vectors, the row is not.
void combine(float* out, const float* block, int64_t dim, __m256 a, __m256 b) {
  for (int64_t d = 0; d < dim; d += 8) {
    const __m256i mask = first_lanes(static_cast<int>(smaller(8, dim - d)));
    const __m256 sum = _mm256_fmadd_ps(_mm256_maskload_ps(out + d, mask), a,
                                       _mm256_mul_ps(_mm256_loadu_ps(block + d), b));
    _mm256_maskstore_ps(out + d, mask, sum);
  }
}

// `starts`: nothing of the query was taken before.
void take_block(const AttentionArgs& args, const float* q, int64_t kv_head, int64_t first,
                int64_t count, bool starts, float* block_out, Running& running, float* out) {
  const int64_t dim = args.head_dim;
  const int64_t at = (kv_head * args.capacity + first) * dim;
  alignas(32) float scores[kKeyBlock];
  float largest;
  float sum;
  block_scores(q, static_cast<const float*>(args.cache_k) + at, dim, count, args.scale, scores);
  block_weights(scores, count, largest, sum);
  block_values(scores, static_cast<const float*>(args.cache_v) + at, dim, count, block_out);
  if (starts) {
    running = {largest, sum};
    for (int64_t d = 0; d < dim; ++d) out[d] = block_out[d];
    return;
  }
  const float most = running.largest > largest ? running.largest : largest;
  const __m256 both =
      exp8(_mm256_setr_ps(running.largest - most, largest - most, 0, 0, 0, 0, 0, 0));
  const __m256 a = _mm256_broadcastss_ps(_mm256_castps256_ps128(both));
  const __m256 b = _mm256_broadcastss_ps(_mm_movehdup_ps(_mm256_castps256_ps128(both)));
  const __m128 new_sum = _mm_fmadd_ss(_mm_set_ss(running.sum), _mm256_castps256_ps128(a),
                                      _mm_mul_ss(_mm_set_ss(sum), _mm256_castps256_ps128(b)));
  running = {most, _mm_cvtss_f32(new_sum)};
  combine(out, block_out, dim, a, b);
}

// The first position that a row sees.
int64_t first_seen(const AttentionArgs& args, int64_t row) {
  const int64_t positions = args.first_position + row + 1;
  return args.window > 0 && positions > args.window ? positions - args.window : 0;
}

// Queries [begin, end) of one KV head; query i is row i / group, head i % group of the head's
// group.
void attend(const AttentionArgs& args, int64_t kv_head, int64_t begin, int64_t end,
            float* block_out) {
  const int64_t group = args.heads / args.kv_heads;
  const int64_t dim = args.head_dim;
  Running running[kTileQueries];
  const int64_t positions = args.first_position + (end - 1) / group + 1;
  int64_t first = first_seen(args, begin / group) / kKeyBlock * kKeyBlock;
  for (; first < positions; first += kKeyBlock) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / group;
      const int64_t seen = first_seen(args, row);
      const int64_t from = seen > first ? seen : first;
      const int64_t to = smaller(args.first_position + row + 1, first + kKeyBlock);
      if (from >= to) continue;
      const int64_t at = (row * args.heads + kv_head * group + i % group) * dim;
      take_block(args, args.q + at, kv_head, from, to - from, from == seen, block_out,
                 running[i - begin], args.out + at);
    }
  }
  for (int64_t i = begin; i < end; ++i) {
    float* out = args.out + (i / group * args.heads + kv_head * group + i % group) * dim;
    const float inverse = 1.0F / running[i - begin].sum;
    for (int64_t d = 0; d < dim; ++d) out[d] *= inverse;
  }
}

// Task: every threads-th tile. Tiles cut the queries of all KV heads, one head after another.
void attend_tiles(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const AttentionArgs& args = *job.args;
  const int64_t per_head = args.rows * (args.heads / args.kv_heads);
  float* block_out = job.block_out + thread * job.block_stride;
  for (int64_t tile = task; tile < job.tiles; tile += job.threads) {
    const int64_t end = smaller((tile + 1) * job.tile_queries, args.kv_heads * per_head);
    for (int64_t i = tile * job.tile_queries; i < end;) {
      const int64_t kv_head = i / per_head;
      const int64_t stop = smaller(end, (kv_head + 1) * per_head);
      attend(args, kv_head, i - kv_head * per_head, stop - kv_head * per_head, block_out);
      i = stop;
    }
  }
}

}  // namespace

void attention_exact_avx2(const AttentionArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  if (args.rows == 0) return;
  store_rows(args);
  const int threads = thread_count(context);
  const uint64_t bytes = attention_scratch_bytes(args.head_dim, threads);
  const int64_t queries = args.rows * args.heads;
  Job job{};
  job.args = &args;
  job.block_out = static_cast<float*>(scratch(context, bytes));
  job.block_stride = static_cast<int64_t>(bytes / sizeof(float)) / threads;
  job.tile_queries = smaller(kTileQueries, (queries + threads - 1) / threads);
  job.tiles = (queries + job.tile_queries - 1) / job.tile_queries;
  job.threads = threads;
  parallel_for(context, threads, attend_tiles, &job);
}

const char* attention_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
