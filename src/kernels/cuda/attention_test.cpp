// Attention: every row of the table against the CPU's reference on the same cache, across the edges
// of tiles, segments and passes; and what exact promises: a row's bits depend on its own position
// only, and rope_attention is its parts.
#include <cmath>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::reference_row;
using testing::expect_rows_close;
using testing::normal_floats;
using testing::Random;
using testing::same_bits;

struct Heads {
  int64_t queries, kv, dim;
};

// Groups of 1, 2, 3, 4, 5, 7 and 16 query heads; dims of models and at the limits.
constexpr Heads kHeads[] = {{8, 2, 128}, {9, 3, 64},  {2, 2, 128}, {4, 1, 256},  {5, 1, 80},
                            {4, 2, 48},  {14, 2, 64}, {3, 3, 16},  {16, 1, 128}, {2, 2, 72}};

std::vector<char> stored(const std::vector<float>& values, DType type) {
  std::vector<char> bytes(values.size() * (type == DType::kF16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = float_to_half(values[i]);
    if (type == DType::kF16) {
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    } else {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    }
  }
  return bytes;
}

std::vector<float> loaded(const std::vector<char>& bytes, DType type) {
  std::vector<float> values(bytes.size() / (type == DType::kF16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    if (type == DType::kF16) {
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      values[i] = half_to_float(half);
    } else {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    }
  }
  return values;
}

// Rows of one sequence from position `first` on, behind a cache of random values; what lies beyond
// them in the cache is no number.
struct Sequence {
  Sequence(const Heads& of, DType type, int64_t first_position, int64_t count, Random& random)
      : heads(of),
        kv_type(type),
        first(first_position),
        rows(count),
        q(normal_floats(rows * heads.queries * heads.dim, 2.5F, random)),
        k(normal_floats(rows * heads.kv * heads.dim, 1, random)),
        v(normal_floats(rows * heads.kv * heads.dim, 1, random)),
        past_k(normal_floats(heads.kv * first * heads.dim, 1, random)),
        past_v(normal_floats(heads.kv * first * heads.dim, 1, random)) {}

  [[nodiscard]] std::vector<char> cache(const std::vector<float>& past, int64_t capacity) const {
    std::vector<float> values(static_cast<size_t>(heads.kv * capacity * heads.dim), std::nanf(""));
    for (int64_t h = 0; h < heads.kv; ++h) {
      std::copy_n(past.begin() + h * first * heads.dim, first * heads.dim,
                  values.begin() + h * capacity * heads.dim);
    }
    return stored(values, kv_type);
  }

  Heads heads;
  DType kv_type;
  int64_t first, rows;
  std::vector<float> q, k, v, past_k, past_v;
};

struct Outcome {
  std::vector<float> out;
  std::vector<char> cache_k, cache_v;

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return same_bits(a.out, b.out) && same_bits(a.cache_k, b.cache_k) &&
           same_bits(a.cache_v, b.cache_v);
  }
};

// What rope_attention does beyond attention.
struct Rotation {
  int64_t dims = 0;
  RopePairing pairing = RopePairing::kHalf;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
};

class CudaAttention : public testing::DeviceTest {
 protected:
  // Calls pass(args) for passes of `chunk` rows.
  template <typename Pass>
  static Outcome in_chunks(Sequence& s, int64_t capacity, int64_t chunk, const Pass& pass) {
    Outcome outcome{std::vector<float>(s.q.size()), s.cache(s.past_k, capacity),
                    s.cache(s.past_v, capacity)};
    for (int64_t at = 0; at < s.rows; at += chunk) {
      AttentionArgs args;
      args.q = s.q.data() + at * s.heads.queries * s.heads.dim;
      args.k = s.k.data() + at * s.heads.kv * s.heads.dim;
      args.v = s.v.data() + at * s.heads.kv * s.heads.dim;
      args.cache_k = outcome.cache_k.data();
      args.cache_v = outcome.cache_v.data();
      args.kv_type = s.kv_type;
      args.out = outcome.out.data() + at * s.heads.queries * s.heads.dim;
      args.rows = std::min(chunk, s.rows - at);
      args.heads = s.heads.queries;
      args.kv_heads = s.heads.kv;
      args.head_dim = s.heads.dim;
      args.capacity = capacity;
      args.first_position = s.first + at;
      args.scale = 1 / std::sqrt(static_cast<float>(s.heads.dim));
      pass(args);
    }
    return outcome;
  }

  Outcome attend(const Variant& row, Sequence& s, int64_t capacity, int64_t chunk) {
    return in_chunks(s, capacity, chunk,
                     [&](const AttentionArgs& args) { device->run(row, args); });
  }

  // The CPU's reference, on float32 values that the cache's type holds.
  Outcome expected(const Sequence& s, int64_t capacity) {
    Sequence floats = s;
    for (std::vector<float>* values : {&floats.k, &floats.v, &floats.past_k, &floats.past_v}) {
      *values = loaded(stored(*values, s.kv_type), s.kv_type);
    }
    floats.kv_type = DType::kF32;
    Outcome outcome = in_chunks(floats, capacity, s.rows, [&](const AttentionArgs& args) {
      host.run(reference_row(Op::kAttention), args);
    });
    for (std::vector<char>* cache : {&outcome.cache_k, &outcome.cache_v}) {
      *cache = stored(loaded(*cache, DType::kF32), s.kv_type);
    }
    return outcome;
  }

  static bool supports(const Variant& row, const Sequence& s, int64_t rows) {
    OpCall call{row.op, Phase::kPrefill, s.kv_type, rows, s.heads.queries, s.heads.dim, s.heads.kv};
    return row.supports == nullptr || row.supports(call).empty();
  }

  static double tolerance(const Variant& row) {
    return row.numerics == NumericsClass::kFast ? 5e-3 : 2e-5;
  }

  void check(const Heads& heads, DType type, int64_t first, int64_t rows) {
    SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(heads.queries) + "/" +
                 std::to_string(heads.kv) + " heads of " + std::to_string(heads.dim) + " at " +
                 std::to_string(first));
    Sequence s(heads, type, first, rows, random);
    const int64_t capacity = first + rows + random.integer(0, 90);
    const Outcome wanted = expected(s, capacity);
    for_each_row(Op::kAttention, [&](const Variant& row) {
      if (!supports(row, s, rows)) return;
      const Outcome outcome = attend(row, s, capacity, rows);
      expect_rows_close(outcome.out, wanted.out, rows * heads.queries, tolerance(row));
      EXPECT_TRUE(same_bits(outcome.cache_k, wanted.cache_k)) << "keys";
      EXPECT_TRUE(same_bits(outcome.cache_v, wanted.cache_v)) << "values";
      device->set_overlap(false);
      EXPECT_TRUE(attend(row, s, capacity, rows) == outcome) << "two runs differ";
      device->set_overlap(true);
    });
  }

  Random random{21};
};

TEST_F(CudaAttention, MatchesTheReference) {
  for (const Heads& heads : kHeads) {
    for (const DType type : {DType::kF16, DType::kF32}) {
      check(heads, type, 0, 1);
      check(heads, type, 0, random.integer(16, 70));
      check(heads, type, 63, 2);
      check(heads, type, random.integer(64, 200), random.integer(1, 33));
    }
  }
}

TEST_F(CudaAttention, EdgesOfTilesAndSegmentsMatchTheReference) {
  for (const Heads& heads : {Heads{4, 2, 64}, Heads{4, 1, 128}}) {
    for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 63},
                                      {0, 64},
                                      {0, 65},
                                      {0, 127},
                                      {0, 129},
                                      {64, 64},
                                      {127, 17},
                                      {128, 16},
                                      {255, 130},
                                      {1015, 20},
                                      {2040, 16},
                                      {2047, 1},
                                      {4090, 17}}) {
      check(heads, DType::kF16, first, rows);
    }
    for (const int64_t rows : {31, 64, 65, 130}) check(heads, DType::kF32, 0, rows);
  }
}

TEST_F(CudaAttention, ExactRowsDependOnTheirPositionOnly) {
  for (const Heads& heads : {Heads{6, 2, 40}, Heads{8, 2, 64}, Heads{3, 1, 128}}) {
    for (const DType type : {DType::kF16, DType::kF32}) {
      Sequence s(heads, type, 0, 150, random);
      for_each_row(Op::kAttention, [&](const Variant& row) {
        if (row.numerics == NumericsClass::kFast || !supports(row, s, 1)) return;
        const Outcome whole = attend(row, s, s.rows, s.rows);
        for (const int64_t chunk : {1, 2, 3, 7, 16, 17, 33, 64, 100}) {
          const Outcome parts = attend(row, s, s.rows + chunk, chunk);
          EXPECT_TRUE(same_bits(parts.out, whole.out)) << "chunks of " << chunk;
        }
      });
    }
  }
}

TEST_F(CudaAttention, ExactRowsOfLongContextsDependOnTheirPositionOnly) {
  for (const int64_t first : {1015, 2040, 8185}) {
    Sequence s({8, 2, 64}, DType::kF16, first, 20, random);
    const Variant& row = row_of(Op::kAttention, "exact_mma");
    const Outcome whole = attend(row, s, first + s.rows, s.rows);
    for (const int64_t chunk : {1, 3, 8, 16}) {
      const Outcome parts = attend(row, s, first + 1000, chunk);
      EXPECT_TRUE(same_bits(parts.out, whole.out)) << chunk << " rows at " << first;
    }
  }
}

TEST_F(CudaAttention, FastRowsOfAnyChunksMatchTheReference) {
  for (const Heads& heads : {Heads{8, 2, 64}, Heads{4, 4, 128}}) {
    Sequence s(heads, DType::kF16, 0, 400, random);
    const Outcome wanted = expected(s, 400);
    for_each_row(Op::kAttention, [&](const Variant& row) {
      if (row.numerics != NumericsClass::kFast) return;
      for (const int64_t chunk : {16, 33, 128, 200, 400}) {
        expect_rows_close(attend(row, s, 400, chunk).out, wanted.out, s.rows * heads.queries,
                          tolerance(row));
      }
    });
  }
}

TEST_F(CudaAttention, RopeAttentionIsItsParts) {
  constexpr double kBase = 10000;
  constexpr float kEpsilon = 1e-6F;
  const std::vector<float> weights = random.floats(512);
  for (const Heads& heads : {Heads{4, 2, 64}, Heads{6, 2, 128}, Heads{5, 1, 80}}) {
    const Rotation rotations[] = {
        {heads.dim, RopePairing::kHalf, weights.data(), weights.data() + 256},
        {heads.dim / 2, RopePairing::kHalf, nullptr, nullptr},
        {heads.dim, RopePairing::kAdjacent, nullptr, nullptr},
        {heads.dim / 2, RopePairing::kAdjacent, weights.data(), nullptr}};
    for (const Rotation& rotation : rotations) {
      for (const auto& [type, chunk] : {std::pair<DType, int64_t>{DType::kF16, 1},
                                        {DType::kF16, 5},
                                        {DType::kF16, 40},
                                        {DType::kF32, 7}}) {
        Sequence s(heads, type, 70, 40, random);
        for_each_row(Op::kRopeAttention, [&](const Variant& row) {
          if (!supports(row, s, chunk)) return;
          const Outcome fused = in_chunks(s, 130, chunk, [&](const AttentionArgs& args) {
            device->run(row, RopeAttentionArgs{args, rotation.q_norm, rotation.k_norm, kEpsilon,
                                               rotation.dims, kBase, rotation.pairing});
          });
          const Outcome apart = in_chunks(s, 130, chunk, [&](AttentionArgs args) {
            const auto turned = [&](const float* from, int64_t count, const float* norm) {
              std::vector<float> x(from, from + args.rows * count * args.head_dim);
              if (norm != nullptr) {
                device->run(row_of(Op::kRmsNorm, "exact_cuda"),
                            RmsNormArgs{x.data(), norm, x.data(), args.rows * count, args.head_dim,
                                        kEpsilon});
              }
              device->run(row_of(Op::kRope, "exact_cuda"),
                          RopeArgs{x.data(), args.rows, count, args.head_dim, rotation.dims,
                                   args.first_position, kBase, rotation.pairing});
              return x;
            };
            const std::vector<float> q = turned(args.q, args.heads, rotation.q_norm);
            const std::vector<float> k = turned(args.k, args.kv_heads, rotation.k_norm);
            args.q = q.data();
            args.k = k.data();
            device->run(row_of(Op::kAttention, row.name), args);
          });
          EXPECT_TRUE(fused == apart) << heads.dim << " " << rotation.dims << " " << chunk;
        });
      }
    }
  }
}

// A key or value that is not a number spoils the rows that see it, and no row before them. (Tensor
// cores multiply what they mask: see attention.h.)
TEST_F(CudaAttention, BadRowsDoNotReachBack) {
  constexpr int64_t kRows = 12, kBad = 6, kDim = 40;
  const Sequence clean({1, 1, kDim}, DType::kF32, 0, kRows, random);
  for_each_row(Op::kAttention, [&](const Variant& row) {
    if (row.numerics == NumericsClass::kFast || !supports(row, clean, kRows)) return;
    Sequence s = clean;
    const Outcome expected = attend(row, s, kRows, kRows);
    Sequence bad_k = clean, bad_v = clean;
    bad_k.k[kBad * kDim + 3] = bad_v.v[kBad * kDim + 3] = std::nanf("");
    for (Sequence* bad : {&bad_k, &bad_v}) {
      const Outcome outcome = attend(row, *bad, kRows, kRows);
      for (int64_t i = 0; i < kBad * kDim; ++i) EXPECT_EQ(outcome.out[i], expected.out[i]);
      for (int64_t r = kBad; r < kRows; ++r) EXPECT_TRUE(std::isnan(outcome.out[r * kDim + 3]));
    }
  });
}

TEST_F(CudaAttention, RefusesWithAReason) {
  for (const Op op : {Op::kAttention, Op::kRopeAttention}) {
    for_each_row(op, [&](const Variant& row) {
      if (row.supports == nullptr) return;
      const OpCall call{op, Phase::kPrefill, DType::kF16, 64, 8, 64, 2};
      OpCall odd_heads = call, odd_dim = call, large_dim = call, other_cache = call;
      odd_heads.n = 7;
      odd_dim.k = 60;
      large_dim.k = 264;
      other_cache.weight_type = DType::kBF16;
      for (const OpCall& bad : {odd_heads, odd_dim, large_dim, other_cache}) {
        EXPECT_NE(row.supports(bad), "");
      }
    });
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
