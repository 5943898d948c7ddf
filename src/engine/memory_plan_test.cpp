#include "engine/memory_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_sessions.h"
#include "models/test_checkpoints.h"

namespace reckon::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

kernels::Planner planner_with(const Assignments& assignments) {
  return {switches_of(assignments), kernels::detect_cpu(), kernels::all_variants()};
}

uint64_t bytes_of(const SessionPlan& plan, MemoryTag tag) {
  uint64_t bytes = 0;
  for (const MemoryTerm& term : plan.terms) bytes += term.tag == tag ? term.bytes : 0;
  return bytes;
}

TEST(ChunkRows, AreTheFullChunkAndTheRest) {
  EXPECT_THAT(chunk_rows(1, 512), ElementsAre(1));
  EXPECT_THAT(chunk_rows(512, 512), ElementsAre(512));
  EXPECT_THAT(chunk_rows(1000, 512), ElementsAre(512, 488));
  EXPECT_THAT(chunk_rows(1024, 512), ElementsAre(512));
  EXPECT_THAT(chunk_rows(0, 512), IsEmpty());
}

TEST(MemoryPlan, CountsWhatTheShapeAsksFor) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  auto planner = planner_with({});
  const auto plan = plan_session(model->model(), planner, {100, 16}, {});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->shape.capacity, 100);
  EXPECT_EQ(plan->shape.chunk, 16);
  EXPECT_EQ(bytes_of(*plan, MemoryTag::kWeights),
            arena_rounded(model->model().info().weight_bytes));
  // Keys and values of 3 layers of 2 heads of 16, in float32.
  EXPECT_EQ(bytes_of(*plan, MemoryTag::kState), 2U * 100 * 3 * 2 * 16 * 4);
  uint64_t total = 0;
  for (const MemoryTerm& term : plan->terms) total += term.bytes;
  EXPECT_EQ(plan->total_bytes, total);
}

TEST(MemoryPlan, FillsInDefaults) {
  const auto model = open_model(golden_path("oracle/llama-s0"));  // 2048 positions
  const auto shape = resolve_shape(model->model(), planner_with({}), {});
  ASSERT_TRUE(shape.ok());
  EXPECT_EQ(shape->capacity, 2048);
  EXPECT_EQ(shape->chunk, 512);
  const auto capped = resolve_shape(model->model(), planner_with({"prefill.chunk=64"}), {20, 0});
  ASSERT_TRUE(capped.ok());
  EXPECT_EQ(capped->chunk, 20);
}

// Plan and run agree to the byte, whatever the chunk and what was run.
TEST(MemoryPlan, IsWhatASessionTakes) {
  const auto model = open_model(golden_path("oracle/qwen3-h80"));
  const std::vector<int32_t> tokens = longest_prompt(*model);
  for (const Assignments& numerics :
       {Assignments{"numerics=reference"}, Assignments{"prefill.numerics=exact"}, Assignments{}}) {
    for (const int chunk : {1, 2, 7, 64, 300, 512, 2048, 4096}) {
      Assignments assignments = numerics;
      assignments.push_back(fmt::format("prefill.chunk={}", chunk));
      auto planner = planner_with(assignments);
      const auto plan = plan_session(model->model(), planner, {}, {{}, true});
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      const auto session = make_session(*model, assignments, {});
      ASSERT_NE(session, nullptr);
      ASSERT_TRUE(session->prefill(tokens).ok());
      ASSERT_TRUE(session->decode(1).ok());
      EXPECT_EQ(session->arenas().peak_bytes(), plan->total_bytes) << chunk;
      for (int tag = 0; tag < kMemoryTagCount; ++tag) {
        const auto memory_tag = static_cast<MemoryTag>(tag);
        EXPECT_EQ(session->arenas().bytes(memory_tag), bytes_of(*plan, memory_tag)) << chunk;
      }
    }
  }
}

TEST(MemoryPlan, DoesNotDependOnThePassesListed) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  auto planner = planner_with({"prefill.chunk=64"});
  const auto all = plan_session(model->model(), planner, {}, {});
  const auto some = plan_session(model->model(), planner, {}, {{64, 3}, false});
  ASSERT_TRUE(all.ok() && some.ok());
  EXPECT_EQ(all->total_bytes, some->total_bytes);
  EXPECT_NE(all->calls.size(), some->calls.size());
}

TEST(MemoryPlan, ImpossibleSizesAreErrors) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  for (const int64_t capacity :
       {int64_t{-1}, int64_t{2049}, int64_t{1000000000000}, int64_t{INT64_MAX}, INT64_MIN}) {
    const auto session = Session::create(*model, {switches_of({}), {capacity, 0}, std::nullopt});
    ASSERT_FALSE(session.ok()) << capacity;
    EXPECT_EQ(session.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(session.error().message, HasSubstr("context of"));
    EXPECT_THAT(session.error().message, HasSubstr("2048"));
  }
  const auto session = Session::create(*model, {switches_of({}), {100, -3}, std::nullopt});
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.error().message, HasSubstr("chunk of -3"));
}

// A model that claims absurd sizes, to reach the overflow checks behind the limits of families.
class HugeModel final : public models::Model {
 public:
  explicit HugeModel(int64_t columns) : columns_(columns) {
    info_.context_limit = INT64_MAX;
    info_.vocabulary = 1;
  }
  const models::ModelInfo& info() const override { return info_; }
  std::vector<models::BufferSpec> state_specs(const models::StateShape& shape) const override {
    return {{MemoryTag::kState, "keys", shape.capacity, columns_, DType::kF32},
            {MemoryTag::kState, "values", shape.capacity, columns_, DType::kF32}};
  }
  std::vector<models::BufferSpec> activation_specs(const models::PassShape& shape) const override {
    return {{MemoryTag::kActivations, "logits", shape.rows, 1, DType::kF32}};
  }
  Status forward(kernels::Ops&, const models::Pass&, models::State,
                 models::Buffers) const override {
    return {};
  }

 private:
  int64_t columns_;
  models::ModelInfo info_;
};

TEST(MemoryPlan, OverflowIsARefusal) {
  auto planner = planner_with({});
  for (const int64_t capacity : {int64_t{1} << 40, int64_t{1} << 61, int64_t{INT64_MAX}}) {
    for (const int64_t columns : {int64_t{1} << 22, int64_t{1} << 40}) {
      const HugeModel model(columns);
      const auto plan = plan_session(model, planner, {capacity, 0}, {});
      ASSERT_FALSE(plan.ok());
      EXPECT_EQ(plan.error().kind, ErrorKind::kRefused);
      EXPECT_THAT(plan.error().message, HasSubstr(std::to_string(capacity)));
    }
  }
}

// ---- refusals ----

struct Refused {
  std::string message;
  int64_t chunk = 0;  // what the remedy says, 0 where it says none
  int64_t context = 0;
};

int64_t number_after(const std::string& text, const std::string& marker) {
  const size_t at = text.find(marker);
  return at == std::string::npos ? 0 : std::stoll(text.substr(at + marker.size()));
}

Refused refuse(const models::Model& model, const SessionShape& shape, uint64_t bytes) {
  auto planner = planner_with({});
  const auto plan = plan_session(model, planner, shape, {});
  EXPECT_TRUE(plan.ok());
  const Status status = check_budget(model, planner, *plan, {bytes, "the test's limit"});
  if (status.ok()) return {};
  EXPECT_EQ(status.error().kind, ErrorKind::kRefused);
  const std::string& message = status.error().message;
  const std::string remedy = message.substr(message.rfind(';'));
  return {message, number_after(remedy, "chunk of "), number_after(remedy, "context of ")};
}

uint64_t total(const models::Model& model, const SessionShape& shape) {
  auto planner = planner_with({});
  const auto plan = plan_session(model, planner, shape, {});
  EXPECT_TRUE(plan.ok());
  return plan->total_bytes;
}

TEST(CheckBudget, AcceptsWhatFits) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  const uint64_t bytes = total(model->model(), {2048, 512});
  EXPECT_EQ(refuse(model->model(), {2048, 512}, bytes).message, "");
  EXPECT_NE(refuse(model->model(), {2048, 512}, bytes - 1).message, "");
}

TEST(CheckBudget, NamesFiguresTermsAndARemedyThatFits) {
  const auto loaded = open_model(golden_path("oracle/llama-s0"));
  const models::Model& model = loaded->model();
  const uint64_t budget = total(model, {2048, 512}) * 9 / 10;
  const Refused refused = refuse(model, {2048, 512}, budget);
  EXPECT_THAT(refused.message, HasSubstr("the test's limit"));
  EXPECT_THAT(refused.message, HasSubstr("largest terms are"));
  EXPECT_THAT(refused.message, HasSubstr("keys"));
  ASSERT_GT(refused.chunk, 0);
  ASSERT_GT(refused.context, 0);
  EXPECT_LE(total(model, {2048, refused.chunk}), budget);
  EXPECT_GT(total(model, {2048, refused.chunk + 1}), budget);
  EXPECT_LE(total(model, {refused.context, 512}), budget);
  EXPECT_GT(total(model, {refused.context + 1, 512}), budget);
}

TEST(CheckBudget, SaysWhereOnlyOneRemedyHelps) {
  const auto loaded = open_model(golden_path("oracle/llama-s0"));
  const models::Model& model = loaded->model();
  // The state alone is over this budget: no chunk helps.
  const uint64_t state = 2U * 2048 * 3 * 2 * 16 * 4;
  const Refused refused = refuse(model, {2048, 16}, state);
  EXPECT_EQ(refused.chunk, 0);
  ASSERT_GT(refused.context, 0);
  EXPECT_LE(total(model, {refused.context, 16}), state);
  // Nothing helps where the weights do not fit.
  const Refused hopeless = refuse(model, {2048, 16}, 1000);
  EXPECT_EQ(hopeless.chunk, 0);
  EXPECT_EQ(hopeless.context, 0);
  EXPECT_THAT(hopeless.message, HasSubstr("no smaller chunk or context"));
}

TEST(CheckBudget, ASessionOverTheUsersLimitIsRefused) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  const auto refused = Session::create(*model, {switches_of({}), {}, "2MB"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("the memory limit 2MB"));
  EXPECT_TRUE(Session::create(*model, {switches_of({}), {}, "1GiB"}).ok());
  const auto unreadable = Session::create(*model, {switches_of({}), {}, "lots"});
  ASSERT_FALSE(unreadable.ok());
  EXPECT_EQ(unreadable.error().kind, ErrorKind::kUsage);
}

TEST(DetectBudget, TakesTheSmallestLimit) {
  const auto machine = detect_budget(std::nullopt);
  ASSERT_TRUE(machine.ok()) << machine.error().message;
  EXPECT_GT(machine->bytes, 0U);
  const auto limited = detect_budget("1MiB");
  ASSERT_TRUE(limited.ok());
  EXPECT_EQ(limited->bytes, 1048576U);
  EXPECT_EQ(limited->source, "the memory limit 1MiB");
  const auto generous = detect_budget("100%");  // of the physical memory: never the smallest
  ASSERT_TRUE(generous.ok());
  EXPECT_NE(generous->source, "the memory limit 100%");
  EXPECT_FALSE(detect_budget("0%").ok());
}

}  // namespace
}  // namespace reckon::engine
