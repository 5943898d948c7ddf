#include "engine/cost.h"

#include <gtest/gtest.h>

#include "engine/test_sessions.h"
#include "kernels/variants.h"

namespace reckon::engine {
namespace {

using kernels::Cost;
using kernels::Phase;

// 3 layers, hidden 96, 6 query and 2 KV heads of 16 (the folder's config.json), in float32; the
// cache in float32 as well.
constexpr const char* kModel = "oracle/llama-s0";

class CostTest : public ::testing::Test {
 protected:
  [[nodiscard]] SessionShape shape_of(int64_t chunk) const {
    auto shape = resolve_shape(model_->model(), planner_, {.capacity = 128, .chunk = chunk});
    return shape.ok() ? *shape : SessionShape{};
  }
  [[nodiscard]] Cost prefill(int64_t chunk, int64_t tokens) const {
    const auto cost = prefill_cost(model_->model(), planner_, shape_of(chunk), 0, tokens);
    EXPECT_TRUE(cost.ok());
    return cost.ok() ? *cost : Cost{};
  }
  [[nodiscard]] Cost decode(int64_t first_position, int64_t tokens) const {
    const auto cost = decode_cost(model_->model(), planner_, shape_of(16), first_position, tokens);
    EXPECT_TRUE(cost.ok());
    return cost.ok() ? *cost : Cost{};
  }

  std::unique_ptr<LoadedModel> model_ = open_model(golden_path(kModel));
  kernels::Planner planner_{switches_of({}), kernels::detect_cpu(), kernels::all_variants()};
};

TEST_F(CostTest, APassIsTheSumOfItsPhase) {
  const kernels::OpCall matmul{kernels::Op::kMatmul, Phase::kDecode, DType::kF32, 1, 8, 16, 0};
  kernels::OpCall other = matmul;
  other.phase = Phase::kPrefill;
  const std::vector<PlannedCall> calls = {{matmul, nullptr, 3}, {other, nullptr, 5}};
  EXPECT_EQ(pass_cost(calls, Phase::kDecode, 0), (Cost{3 * 8 * 16 * 4, 3 * 2 * 8 * 16}));
}

// All that a decode reads: the weights but for the table's other rows, and the cache.
TEST_F(CostTest, ADecodeReadsTheWeightsAndTheCache) {
  const auto& info = model_->model().info();
  const Cost first = decode(0, 1);
  EXPECT_LE(first.bytes, info.weight_bytes + 3 * 2 * 2 * 16 * 4);
  EXPECT_GT(first.bytes, info.weight_bytes / 2);
  // A position more in each of 3 layers: keys and values of 2 heads of 16; 6 query heads.
  const Cost later = decode(9, 1);
  EXPECT_EQ(later.bytes - first.bytes, 9U * 3 * 2 * 2 * 16 * 4);
  EXPECT_EQ(later.operations - first.operations, 9U * 3 * 4 * 6 * 16);
}

TEST_F(CostTest, DecodesAddUp) {
  Cost sum;
  for (int64_t i = 0; i < 5; ++i) sum += decode(7 + i, 1);
  EXPECT_EQ(decode(7, 5), sum);
  EXPECT_EQ(decode(7, 0), Cost{});
}

// Chunks change how often weights are read and how many rows the head sees, nothing else.
TEST_F(CostTest, ChunksReadTheWeightsAgain) {
  const Cost whole = prefill(50, 50);
  const Cost chunks = prefill(16, 50);  // 16, 16, 16, 2
  EXPECT_GT(chunks.bytes, 3 * whole.bytes);
  EXPECT_LT(chunks.bytes, 5 * whole.bytes);
  const uint64_t head = 2 * static_cast<uint64_t>(model_->model().info().vocabulary) * 96;
  EXPECT_EQ(chunks.operations, whole.operations + 3 * head);
}

TEST_F(CostTest, APrefillOfOneTokenIsADecode) {
  EXPECT_EQ(prefill(16, 1), decode(0, 1));
}

}  // namespace
}  // namespace reckon::engine
