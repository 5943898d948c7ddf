// Attention: every row of the table against the CPU's reference on the same cache, across the edges
// of tiles, segments and passes.
#include "kernels/cuda/attention_testing.h"

namespace reckon::kernels::cuda {
namespace {

using testing::expect_rows_close;
using testing::Heads;
using testing::Outcome;
using testing::same_bits;
using testing::Sequence;

// Groups of 1, 2, 3, 4, 5, 7 and 16 query heads; dims of models and at the limits.
constexpr Heads kHeads[] = {{8, 2, 128}, {9, 3, 64},  {2, 2, 128}, {4, 1, 256},  {5, 1, 80},
                            {4, 2, 48},  {14, 2, 64}, {3, 3, 16},  {16, 1, 128}, {2, 2, 72}};

class CudaAttention : public testing::AttentionTest {
 protected:
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

TEST_F(CudaAttention, FastRowsOfAnyChunksMatchTheReference) {
  for (const Heads& heads : {Heads{4, 2, 64}, Heads{2, 2, 128}}) {
    Sequence s(heads, DType::kF16, 0, 260, random);
    const Outcome wanted = expected(s, 260);
    for_each_row(Op::kAttention, [&](const Variant& row) {
      if (row.numerics != NumericsClass::kFast) return;
      for (const int64_t chunk : {16, 33, 128, 260}) {
        expect_rows_close(attend(row, s, 260, chunk).out, wanted.out, s.rows * heads.queries,
                          tolerance(row));
      }
    });
  }
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
