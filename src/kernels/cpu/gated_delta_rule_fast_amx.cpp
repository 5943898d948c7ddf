// hashed with "kernels/cpu/delta_rule.cpp"
// The gated delta rule in chunks of 32 rows, its products by AMX tiles of bfloat16 (Yang et al.
// 2024, arXiv:2412.06464, section 3.3). With S the state before a chunk, G[r] the sum of the
// logarithms of decay up to row r of the chunk, and w[r][s] = exp(G[r] - G[s]), the rows' rule
//
//   u[r] = beta[r] * (v[r] - exp(G[r]) * transpose(S) k[r]) -
//          beta[r] * sum over s < r of w[r][s] * (k[r] . k[s]) * u[s]
//   out[r] = exp(G[r]) * transpose(S) q[r] + sum over s <= r of w[r][s] * (q[r] . k[s]) * u[s]
//   S = exp(G[last]) * S + sum over s of w[last][s] * k[s] transpose(u[s])
//
// is a few products of matrices and one triangular system, which is solved row by row in float32.
// The state stays float32 from chunk to chunk. Operands of products are sums of two bfloat16, of
// which all products but that of the two small ones are added: rounded to one bfloat16, a row that
// cancels out would be off by 5 %. Differences of G are at most 0, so that nothing overflows
// however fast a state decays.
//
// A task takes one key head with its value heads through all rows. The last kDeltaTail rows of a
// call go step by step as in the exact kernels, since their states are kept where there are slots:
// always as many, so that no bit depends on the slots (up to one more than that).
//
// Only intrinsics and plain types in here, as in matmul_fast_amx.cpp.
#include "kernels/cpu/delta_operands_amx.h"
#include "kernels/cpu/delta_rule_steps.h"
#include "kernels/cpu/delta_vector_avx512.h"
#include "kernels/cpu/exp_avx512.h"
#include "kernels/cpu/gated_delta_rule_fast_amx.hash.h"
#include "kernels/cpu/lanes_avx512.h"

namespace reckon::kernels::cpu {
namespace {

using namespace delta_amx;

constexpr const char* kName = "fast_amx";

struct ChunkJob {
  const GatedDeltaRuleArgs* args;
  int64_t rows;  // that go in chunks
  char* memory;  // of all threads
  uint64_t thread_bytes;
};

int64_t heads_of_key(const GatedDeltaRuleArgs& args) {
  return args.value_heads / args.key_heads;
}

// The h-th value head of a key head.
int64_t value_head(const GatedDeltaRuleArgs& args, int64_t key_head, int64_t h) {
  return args.key_order == KeyHeadOrder::kTiled ? key_head + h * args.key_heads
                                                : key_head * heads_of_key(args) + h;
}

// What a key head gives to all of its value heads.
void prepare_keys(const GatedDeltaRuleArgs& args, int64_t key_head, int64_t first, int64_t count,
                  const Workspace& w) {
  const int64_t keys = args.key_heads * args.key_dim;
  const int64_t width = 2 * keys + args.value_heads * args.value_dim;
  const float size = static_cast<float>(args.key_dim);
  const float factor = 1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(size)));
  for (int64_t r = 0; r < kDeltaChunk; ++r) {
    float* q = w.q + r * args.key_dim;
    float* k = w.k + r * args.key_dim;
    if (r < count) {
      const float* from = args.qkv + (first + r) * width + key_head * args.key_dim;
      normalise(from, args.key_dim, factor, q);
      normalise(from + keys, args.key_dim, 1, k);
    } else {
      clear(q, args.key_dim);
      clear(k, args.key_dim);
    }
  }
  to_row_tiles(w.q, args.key_dim, w.q_rows);
  to_row_tiles(w.k, args.key_dim, w.k_rows);
  lay_out_keys(w, args.key_dim);
  stores_before_tiles();
  const int64_t depth = args.key_dim / kDeltaChunk;
  multiply(w.k_rows, w.k_pairs, depth, kRowTiles, w.kk);
  multiply(w.q_rows, w.k_pairs, depth, kRowTiles, w.qk);
}

// G and beta of a value head; rows beyond the chunk's decay nothing and update nothing.
void prepare_gates(const GatedDeltaRuleArgs& args, int64_t head, int64_t first, int64_t count,
                   const Workspace& w) {
  float sum = 0;
  for (int64_t r = 0; r < kDeltaChunk; ++r) {
    if (r < count) sum += delta_log_decay(args, first + r, head);
    w.log_decay[r] = sum;
    w.beta[r] = r < count ? delta_beta(args, first + r, head) : 0;
  }
}

// w[row][s] of 16 rows s; 0 where `keeps` has no bit.
__m512 decay_weights(const Workspace& w, int64_t row, int64_t s, __mmask16 keeps) {
  const __m512 later = _mm512_set1_ps(w.log_decay[row]);
  return _mm512_maskz_mov_ps(keeps, exp16(_mm512_sub_ps(later, _mm512_loadu_ps(w.log_decay + s))));
}

// One row of the triangular system, kCount registers of columns.
struct Substitution {
  const float* v;         // of the row
  const float* recalled;  // of the row, tiles of columns on
  const float* takes;     // [row]: what it takes of each earlier u
  float* updates;         // of row 0
  int64_t row, stride;    // between rows of updates
  __m512 beta, decay;
};

template <int kCount>
inline void substitute(const Substitution& given, int64_t column) {
  const Substitution row = given;
  __m512 sums[kCount];
#pragma GCC unroll 8
  for (int c = 0; c < kCount; ++c) {
    const __m512 recalled = _mm512_loadu_ps(row.recalled + (column + c) * kTileFloats);
    const __m512 v = _mm512_loadu_ps(row.v + (column + c) * kSide);
    sums[c] = _mm512_mul_ps(row.beta, _mm512_fnmadd_ps(row.decay, recalled, v));
  }
  const float* earlier = row.updates + column * kSide;
  for (int64_t s = 0; s < row.row; ++s, earlier += row.stride) {
    const __m512 takes = _mm512_set1_ps(row.takes[s]);
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) {
      sums[c] = _mm512_fnmadd_ps(takes, _mm512_loadu_ps(earlier + c * kSide), sums[c]);
    }
  }
  float* u = row.updates + row.row * row.stride + column * kSide;
#pragma GCC unroll 8
  for (int c = 0; c < kCount; ++c) _mm512_storeu_ps(u + c * kSide, sums[c]);
}

// What row r takes of u of the rows before it: beta * w * (k . k).
void lay_out_takes(const Workspace& w, int64_t r, float* takes) {
  const __m512 beta = _mm512_set1_ps(w.beta[r]);
  for (int64_t c = 0; c < kRowTiles; ++c) {
    const __m512 weight = decay_weights(w, r, c * kSide, first_lanes(r - c * kSide));
    const __m512 dot = _mm512_loadu_ps(tile_row(w.kk, kRowTiles, r, c));
    _mm512_store_ps(takes + c * kSide, _mm512_mul_ps(beta, _mm512_mul_ps(weight, dot)));
  }
}

// exp(G[r])
__m512 decay_of(const Workspace& w, int64_t r) {
  return exp16(_mm512_set1_ps(w.log_decay[r]));
}

// u of all rows, by forward substitution.
void solve_updates(const GatedDeltaRuleArgs& args, int64_t head, int64_t first, int64_t count,
                   const Workspace& w) {
  const int64_t columns = args.value_dim / kSide;
  const int64_t keys = args.key_heads * args.key_dim;
  const int64_t width = 2 * keys + args.value_heads * args.value_dim;
  alignas(64) float takes[kDeltaChunk];
  Substitution row{};
  row.takes = takes;
  row.updates = w.updates;
  row.stride = args.value_dim;
  for (int64_t r = 0; r < count; ++r) {
    lay_out_takes(w, r, takes);
    row.row = r;
    row.v = args.qkv + (first + r) * width + 2 * keys + head * args.value_dim;
    row.recalled = tile_row(w.recalled, columns, r, 0);
    row.beta = _mm512_set1_ps(w.beta[r]);
    row.decay = decay_of(w, r);
    int64_t c = 0;
    for (; c + 8 <= columns; c += 8) substitute<8>(row, c);
    for (; c < columns; ++c) substitute<1>(row, c);
  }
  for (int64_t r = count; r < kDeltaChunk; ++r)
    clear(w.updates + r * args.value_dim, args.value_dim);
}

// Pairs of rows of u, each times its factor, as tiles.
void pair_updates(const Workspace& w, int64_t value_dim, const float* factors, const Split& tiles) {
  for (int64_t p = 0; p < kSide; ++p) {
    const float* u = w.updates + 2 * p * value_dim;
    const __m512 first = _mm512_set1_ps(factors[2 * p]);
    const __m512 second = _mm512_set1_ps(factors[2 * p + 1]);
    for (int64_t c = 0; c < value_dim / kSide; ++c) {
      split_pairs(_mm512_mul_ps(first, _mm512_loadu_ps(u + c * kSide)),
                  _mm512_mul_ps(second, _mm512_loadu_ps(u + value_dim + c * kSide)), tiles,
                  c * kSide + p);
    }
  }
}

// Outputs hold transpose(S) q of the chunk: out = exp(G) * that + weights x u.
void finish_outputs(const GatedDeltaRuleArgs& args, int64_t head, int64_t first, int64_t count,
                    const Workspace& w) {
  const int64_t columns = args.value_dim / kSide;
  for (int64_t r = 0; r < kDeltaChunk; ++r) {
    const __m512 low = _mm512_mul_ps(decay_weights(w, r, 0, first_lanes(r + 1)),
                                     _mm512_loadu_ps(tile_row(w.qk, kRowTiles, r, 0)));
    const __m512 high = _mm512_mul_ps(decay_weights(w, r, kSide, first_lanes(r + 1 - kSide)),
                                      _mm512_loadu_ps(tile_row(w.qk, kRowTiles, r, 1)));
    split_rows(low, high, w.weights, r);
    const __m512 decay = decay_of(w, r);
    for (int64_t c = 0; c < columns; ++c) {
      float* out = tile_row(w.outputs, columns, r, c);
      _mm512_storeu_ps(out, _mm512_mul_ps(decay, _mm512_loadu_ps(out)));
    }
  }
  stores_before_tiles();
  for (int64_t c = 0; c < columns; ++c) {
    float* upper = w.outputs + c * kTileFloats;
    float* lower = w.outputs + (columns + c) * kTileFloats;
    _tile_loadd(0, upper, 64);
    _tile_loadd(1, lower, 64);
    multiply_tiles(w.weights, 0, kSide, w.update_pairs, c * kSide);
    _tile_stored(0, upper, 64);
    _tile_stored(1, lower, 64);
  }
  stores_before_tiles();
  for (int64_t r = 0; r < count; ++r) {
    float* out = args.out + ((first + r) * args.value_heads + head) * args.value_dim;
    for (int64_t c = 0; c < columns; ++c) {
      const float* from = tile_row(w.outputs, columns, r, c);
      _mm512_storeu_ps(out + c * kSide, _mm512_loadu_ps(from));
    }
  }
}

// S = decay * S + transpose(k) x (w[last] * u).
void update_state(const Workspace& w, int64_t key_dim, int64_t value_dim) {
  const int64_t columns = value_dim / kSide;
  const __m512 factor = decay_of(w, kDeltaChunk - 1);
  for (int64_t at = 0; at < key_dim * value_dim; at += kSide) {
    _mm512_storeu_ps(w.state + at, _mm512_mul_ps(factor, _mm512_loadu_ps(w.state + at)));
  }
  stores_before_tiles();
  for (int64_t i = 0; i < key_dim / kSide; i += 2) {
    for (int64_t c = 0; c < columns; ++c) {
      float* upper = w.state + (i * columns + c) * kTileFloats;
      float* lower = upper + columns * kTileFloats;
      _tile_loadd(0, upper, 64);
      _tile_loadd(1, lower, 64);
      multiply_tiles(w.k_columns, i * kSide, kSide, w.decayed_pairs, c * kSide);
      _tile_stored(0, upper, 64);
      _tile_stored(1, lower, 64);
    }
  }
  stores_before_tiles();
}

// The state as an operand.
void pair_state(const Workspace& w, int64_t key_dim, int64_t value_dim) {
  const int64_t columns = value_dim / kSide;
  for (int64_t i = 0; i < key_dim; i += 2) {
    for (int64_t c = 0; c < columns; ++c) {
      const float* rows = tile_row(w.state, columns, i, c);
      split_pairs(_mm512_loadu_ps(rows), _mm512_loadu_ps(rows + kSide), w.state_pairs,
                  (i / kDeltaChunk * columns + c) * kSide + i % kDeltaChunk / 2);
    }
  }
}

// Between a head's state as it is kept, [key_dim][value_dim], and tiles.
void read_state(const float* kept, bool zero, int64_t key_dim, int64_t value_dim, float* tiles) {
  const int64_t columns = value_dim / kSide;
  for (int64_t i = 0; i < key_dim; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      const __m512 value =
          zero ? _mm512_setzero_ps() : _mm512_loadu_ps(kept + i * value_dim + c * kSide);
      _mm512_storeu_ps(tile_row(tiles, columns, i, c), value);
    }
  }
}

void write_state(const float* tiles, int64_t key_dim, int64_t value_dim, float* kept) {
  const int64_t columns = value_dim / kSide;
  for (int64_t i = 0; i < key_dim; ++i) {
    for (int64_t c = 0; c < columns; ++c) {
      _mm512_storeu_ps(kept + i * value_dim + c * kSide,
                       _mm512_loadu_ps(tile_row(tiles, columns, i, c)));
    }
  }
}

// One chunk of one value head, whose state is in w.state.
void run_chunk(const GatedDeltaRuleArgs& args, int64_t head, int64_t first, int64_t count,
               const Workspace& w) {
  const int64_t depth = args.key_dim / kDeltaChunk;
  const int64_t columns = args.value_dim / kSide;
  prepare_gates(args, head, first, count, w);
  pair_state(w, args.key_dim, args.value_dim);
  stores_before_tiles();
  multiply(w.k_rows, w.state_pairs, depth, columns, w.recalled);
  multiply(w.q_rows, w.state_pairs, depth, columns, w.outputs);
  stores_before_tiles();
  solve_updates(args, head, first, count, w);
  alignas(64) float ones[kDeltaChunk];
  alignas(64) float to_last[kDeltaChunk];
  for (int64_t c = 0; c < kDeltaChunk; c += kSide) {
    _mm512_store_ps(ones + c, _mm512_set1_ps(1));
    _mm512_store_ps(to_last + c, decay_weights(w, kDeltaChunk - 1, c, 0xffff));
  }
  pair_updates(w, args.value_dim, ones, w.update_pairs);
  pair_updates(w, args.value_dim, to_last, w.decayed_pairs);
  finish_outputs(args, head, first, count, w);
  update_state(w, args.key_dim, args.value_dim);
}

// Task: a key head with its value heads.
void run_key_head(void* argument, int64_t key_head, int thread) {
  const auto& job = *static_cast<const ChunkJob*>(argument);
  const GatedDeltaRuleArgs& args = *job.args;
  const int64_t heads = heads_of_key(args);
  char* memory = job.memory + static_cast<uint64_t>(thread) * job.thread_bytes;
  Workspace w = workspace_in(memory, heads, args.key_dim, args.value_dim);
  const int64_t size = args.key_dim * args.value_dim;
  const auto slot = [&](int64_t position, int64_t head) {
    return args.states + (position % args.slots * args.value_heads + head) * size;
  };
  for (int64_t h = 0; h < heads; ++h) {
    read_state(slot(args.first_position, value_head(args, key_head, h)), args.first_position == 0,
               args.key_dim, args.value_dim, w.states + h * size);
  }
  configure_tiles();
  for (int64_t first = 0; first < job.rows; first += kDeltaChunk) {
    const int64_t left = job.rows - first;
    const int64_t count = left < kDeltaChunk ? left : kDeltaChunk;
    prepare_keys(args, key_head, first, count, w);
    for (int64_t h = 0; h < heads; ++h) {
      w.state = w.states + h * size;
      run_chunk(args, value_head(args, key_head, h), first, count, w);
    }
  }
  release_tiles();
  for (int64_t h = 0; h < heads; ++h) {
    write_state(w.states + h * size, args.key_dim, args.value_dim,
                slot(args.first_position + job.rows, value_head(args, key_head, h)));
  }
}

// Rows [first, first + rows) of the call as a call of their own.
GatedDeltaRuleArgs part_of(const GatedDeltaRuleArgs& args, int64_t first, int64_t rows) {
  GatedDeltaRuleArgs part = args;
  part.qkv += first * (2 * args.key_heads * args.key_dim + args.value_heads * args.value_dim);
  part.a += first * args.value_heads;
  part.b += first * args.value_heads;
  part.out += first * args.value_heads * args.value_dim;
  part.rows = rows;
  part.first_position += first;
  return part;
}

}  // namespace

void gated_delta_rule_fast_amx(const GatedDeltaRuleArgs& args, KernelContext& context) {
  stamp(context, kName, kSourceHash, args);
  const int threads = thread_count(context);
  const uint64_t total = fast_delta_scratch_bytes(args.key_heads, args.value_heads, args.key_dim,
                                                  args.value_dim, threads);
  const uint64_t stepping =
      delta_scratch_bytes(kDeltaChunk, args.key_heads, args.value_heads, args.key_dim, threads);
  const uint64_t chunks_at = (stepping + 63) / 64 * 64;
  ChunkJob job{};
  job.args = &args;
  job.rows = args.rows - (args.slots - 1 > kDeltaTail ? args.slots - 1 : kDeltaTail);
  job.memory = static_cast<char*>(scratch(context, total)) + chunks_at;
  job.thread_bytes = (total - chunks_at) / static_cast<uint64_t>(threads) / 64 * 64;
  if (job.rows > 0) parallel_for(context, args.key_heads, run_key_head, &job);
  for (int64_t first = job.rows > 0 ? job.rows : 0; first < args.rows; first += kDeltaChunk) {
    const int64_t left = args.rows - first;
    run_delta_rule<Vector512>(part_of(args, first, left < kDeltaChunk ? left : kDeltaChunk),
                              context);
  }
}

const char* gated_delta_rule_fast_amx_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
