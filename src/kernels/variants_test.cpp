#include "kernels/variants.h"

#include <gtest/gtest.h>

#include <set>

#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

TEST(Variants, RowsAreWellFormedAndInOrder) {
  std::set<std::pair<Op, std::string>> names;
  const Variant* previous = nullptr;
  for (const Variant& row : all_variants()) {
    const std::string name = std::string(op_name(row.op)) + " " + row.name;
    EXPECT_TRUE(names.emplace(row.op, row.name).second) << name;
    // Attention with a window has the type of attention without, and none of its own.
    const Op type = row.op == Op::kWindowAttention ? Op::kAttention : row.op;
    EXPECT_EQ(row.function.index(),
              static_cast<size_t>(type) - (type > Op::kWindowAttention ? 1 : 0))
        << name;
    EXPECT_EQ(std::string(row.source_hash).size(), 16u) << name;
    EXPECT_STRNE(row.ledger_id, "") << name;
    if (previous != nullptr) {
      const auto rank = [](const Variant& v) {
        return std::pair(v.numerics != NumericsClass::kReference, v.isa);
      };
      EXPECT_LE(rank(*previous), rank(row)) << name;
    }
    previous = &row;
  }
}

TEST(Variants, EveryOpHasAReferenceThatRunsAnywhere) {
  for (int i = 0; i < kOpCount; ++i) {
    if (is_composition(static_cast<Op>(i))) continue;  // its parts have
    bool found = false;
    for (const Variant& row : all_variants()) {
      found = found || (static_cast<int>(row.op) == i && row.isa == Isa::kScalar &&
                        row.numerics == NumericsClass::kReference);
    }
    EXPECT_TRUE(found) << op_name(static_cast<Op>(i));
  }
}

TEST(Variants, CallsAreWrittenByTheirOp) {
  const auto text = [](Op op, DType type, int64_t groups) {
    return shape_text({op, Phase::kPrefill, type, 5, 9, 64, groups});
  };
  EXPECT_EQ(text(Op::kMatmul, DType::kQ4_1, 0), "5x9x64 q4_1");
  EXPECT_EQ(text(Op::kEmbedding, DType::kQ8_0, 0), "5x9x64 q8_0");
  EXPECT_EQ(text(Op::kRope, DType::kF32, 0), "5x9x64");
  EXPECT_EQ(text(Op::kAttention, DType::kF32, 3), "5x9x64 kv_heads=3");
  EXPECT_EQ(text(Op::kRmsNorm, DType::kF32, 0), "5x64");
  EXPECT_EQ(text(Op::kSwiglu, DType::kF32, 0), "5x64");
  EXPECT_EQ(text(Op::kAdd, DType::kF32, 0), "5x64");
  EXPECT_EQ(text(Op::kAddBias, DType::kF32, 0), "5x64");
  EXPECT_EQ(shape_text({Op::kWindowAttention, Phase::kPrefill, DType::kF32, 5, 9, 64, 3, 512}),
            "5x9x64 kv_heads=3 window=512");
  const auto text_with_m = [](Op op, DType type, int64_t groups) {
    OpCall call{op, Phase::kPrefill, type, 5, 9, 64, groups};
    call.m = 2;
    return shape_text(call);
  };
  EXPECT_EQ(text(Op::kCausalConv, DType::kF32, 4), "5x64 width=4");
  EXPECT_EQ(text_with_m(Op::kGatedDeltaRule, DType::kF32, 3), "5x9x2 key_heads=3x64");
  EXPECT_EQ(text(Op::kGatedRmsNorm, DType::kF32, 0), "5x64");
  EXPECT_EQ(text(Op::kSplitGate, DType::kF32, 0), "5x9x64");
  EXPECT_EQ(text(Op::kSigmoidGate, DType::kF32, 0), "5x64");
  EXPECT_EQ(text(Op::kGatedAdd, DType::kF32, 0), "5x64");
  EXPECT_EQ(text(Op::kConcat, DType::kF32, 0), "5x9+64");
  EXPECT_EQ(text_with_m(Op::kRoute, DType::kF32, 0), "5x9 top=2");
  EXPECT_EQ(text_with_m(Op::kExpertMatmulSwiglu, DType::kP4, 8), "5x9x64 experts=2/8 p4");
  EXPECT_EQ(text_with_m(Op::kExpertMatmulCombine, DType::kP4, 8), "5x9x64 experts=2/8 p4");
  EXPECT_EQ(params_text({}), "");
  EXPECT_EQ(params_text({TileOrder::kBand8}), "tile_order=band8");
}

}  // namespace
}  // namespace reckon::kernels
