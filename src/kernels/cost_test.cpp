#include "kernels/cost.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

OpCall call_of(Op op, DType type, int64_t rows, int64_t n, int64_t k, int64_t groups = 0) {
  return {op, Phase::kDecode, type, rows, n, k, groups};
}

TEST(CallCost, OfAMatmulIsItsWeightOnceAndTwoOperationsAProduct) {
  // p4: blocks of 64 weights in 36 bytes. Rows of 5120 are 80 blocks.
  const Cost one = call_cost(call_of(Op::kMatmul, DType::kP4, 1, 16384, 5120), 0);
  EXPECT_EQ(one.bytes, 16384U * 80 * 36);
  EXPECT_EQ(one.operations, 2U * 16384 * 5120);
  const Cost eight = call_cost(call_of(Op::kMatmul, DType::kP4, 8, 16384, 5120), 0);
  EXPECT_EQ(eight.bytes, one.bytes);
  EXPECT_EQ(eight.operations, 8 * one.operations);
}

TEST(CallCost, OfCompositionsIsThatOfTheirParts) {
  const Cost gate = call_cost(call_of(Op::kMatmul, DType::kBF16, 3, 1536, 576), 0);
  EXPECT_EQ(call_cost(call_of(Op::kMatmulSwiglu, DType::kBF16, 3, 1536, 576), 0), gate * 2);
  EXPECT_EQ(gate.bytes, 1536U * 576 * 2);

  Cost parts;  // queries of 576, keys and values of 192
  for (const int64_t n : {576, 192, 192}) {
    parts += call_cost(call_of(Op::kMatmul, DType::kF16, 3, n, 576), 0);
  }
  EXPECT_EQ(call_cost(call_of(Op::kMatmulGroup, DType::kF16, 3, 960, 576, 3), 0), parts);

  const OpCall attention = call_of(Op::kAttention, DType::kF16, 5, 9, 64, 3);
  OpCall with_rope = attention;
  with_rope.op = Op::kRopeAttention;
  EXPECT_EQ(call_cost(with_rope, 100), call_cost(attention, 100));
  EXPECT_EQ(call_cost(call_of(Op::kAddRmsNorm, DType::kF32, 5, 0, 576), 0),
            call_cost(call_of(Op::kRmsNorm, DType::kF32, 5, 0, 576), 0));
}

TEST(CallCost, OfAttentionGrowsWithThePosition) {
  // 32 query heads over 8 KV heads of 128 in float16.
  const OpCall decode = call_of(Op::kAttention, DType::kF16, 1, 32, 128, 8);
  EXPECT_EQ(call_cost(decode, 0).bytes, 2U * 8 * 128 * 2);
  EXPECT_EQ(call_cost(decode, 0).operations, 4U * 32 * 128);
  EXPECT_EQ(call_cost(decode, 1023).bytes, 1024 * call_cost(decode, 0).bytes);
  EXPECT_EQ(call_cost(decode, 1023).operations, 1024 * call_cost(decode, 0).operations);
}

// The keys of earlier positions are read once for all rows of a pass; its operations are those of
// its rows, one by one.
TEST(CallCost, OfAttentionOverRowsReadsTheCacheOnce) {
  const OpCall one = call_of(Op::kAttention, DType::kF32, 1, 4, 16, 2);
  OpCall rows = one;
  rows.rows = 7;
  Cost sum;
  for (int64_t r = 0; r < 7; ++r) sum += call_cost(one, 50 + r);
  EXPECT_EQ(call_cost(rows, 50).operations, sum.operations);
  EXPECT_EQ(call_cost(rows, 50).bytes, call_cost(one, 56).bytes);
}

TEST(CallCost, OfAnEmbeddingIsTheRowsOfItsTokens) {
  const Cost cost = call_cost(call_of(Op::kEmbedding, DType::kQ8_0, 3, 49152, 576), 0);
  EXPECT_EQ(cost.bytes, 3U * 18 * 34);  // 18 blocks of 32 in 34 bytes
  EXPECT_EQ(cost.operations, 0U);
}

TEST(CallCost, OfRecurrentLayersIsTheirStateInAndOut) {
  OpCall delta = call_of(Op::kGatedDeltaRule, DType::kF32, 3, 48, 128, 16);
  delta.m = 64;
  EXPECT_EQ(call_cost(delta, 0).bytes, 2U * 48 * 128 * 64 * 4);
  EXPECT_EQ(call_cost(delta, 0).operations, 3U * 6 * 48 * 128 * 64);
  EXPECT_EQ(call_cost(call_of(Op::kCausalConv, DType::kF32, 3, 0, 100, 4), 0).bytes,
            (4U + 3) * 100 * 4);
  EXPECT_EQ(call_cost(call_of(Op::kGatedRmsNorm, DType::kF32, 3, 0, 128), 0).bytes, 512U);
}

// One row touches what it selects; of many rows, evenly spread, nearly all experts are touched.
TEST(CallCost, OfExpertsIsThoseThatAreTouched) {
  const auto cost = [](Op op, int64_t rows) {
    OpCall call = call_of(op, DType::kP4, rows, 512, 2048, 256);
    call.m = 8;
    return call_cost(call, 0);
  };
  const uint64_t expert = 512U * 32 * 36;
  EXPECT_EQ(cost(Op::kExpertMatmulCombine, 1).bytes, 8 * expert);
  EXPECT_EQ(cost(Op::kExpertMatmulSwiglu, 1).bytes, 2 * 8 * expert);
  EXPECT_EQ(cost(Op::kExpertMatmulSwiglu, 1).operations, 2U * 2 * 8 * 512 * 2048);
  EXPECT_EQ(cost(Op::kExpertMatmulCombine, 2).bytes, 16 * expert);  // 15.75
  EXPECT_EQ(cost(Op::kExpertMatmulCombine, 512).bytes, 256 * expert);
  EXPECT_EQ(cost(Op::kExpertMatmulCombine, 512).operations, uint64_t{512} * 2 * 8 * 512 * 2048);
}

TEST(CallCost, OfWhatStaysInACacheIsNothing) {
  for (const Op op : {Op::kRope, Op::kSwiglu, Op::kGeglu, Op::kScale, Op::kAdd, Op::kSample,
                      Op::kSplitGate, Op::kSigmoidGate, Op::kGatedAdd, Op::kConcat, Op::kRoute}) {
    EXPECT_EQ(call_cost(call_of(op, DType::kF32, 4, 8, 64), 10), Cost{});
  }
}

// Every pair of a query and a key that it sees, counted one by one.
TEST(Cost, AWindowCutsWhatIsRead) {
  const int64_t heads = 4, dim = 16, kv_heads = 2;
  for (const int64_t window : {1, 5, 40}) {
    for (const int64_t rows : {1, 3, 20}) {
      for (const int64_t first : {0, 2, 30}) {
        int64_t pairs = 0;
        int64_t lowest = first;
        for (int64_t p = first; p < first + rows; ++p) {
          for (int64_t key = 0; key <= p; ++key) {
            if (p - key >= window) continue;
            ++pairs;
            lowest = std::min(lowest, key);
          }
        }
        const Cost cost = call_cost({Op::kWindowAttention, Phase::kPrefill, DType::kF32, rows,
                                     heads, dim, kv_heads, window},
                                    first);
        EXPECT_EQ(cost.operations, static_cast<uint64_t>(4 * heads * dim * pairs));
        const int64_t positions = first + rows - lowest;
        EXPECT_EQ(cost.bytes, static_cast<uint64_t>(2 * kv_heads * positions * dim * 4));
      }
    }
  }
}

}  // namespace
}  // namespace reckon::kernels
