#include "engine/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include <algorithm>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;

std::vector<float> copy_of(const Result<std::span<const float>>& logits) {
  if (!logits.ok()) {
    ADD_FAILURE() << logits.error().message;
    return {};
  }
  return {logits->begin(), logits->end()};
}

class SessionTest : public ::testing::Test {
 protected:
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path("oracle/llama-s0"));
  std::vector<int32_t> tokens_ = longest_prompt(*model_);
};

TEST_F(SessionTest, RefusesBadTokensBeforeItRuns) {
  const auto session = make_session(*model_, {}, {32, 8});
  std::optional<ErrorKind> kind;
  const auto error_of = [&](const std::vector<int32_t>& tokens) {
    const auto logits = session->prefill(tokens);
    EXPECT_EQ(session->position(), 0);
    if (logits.ok()) return std::string();
    kind = logits.error().kind;
    return logits.error().message;
  };
  EXPECT_THAT(error_of({}), HasSubstr("no tokens"));
  EXPECT_EQ(kind, ErrorKind::kUsage);
  EXPECT_THAT(error_of(std::vector<int32_t>(33, 1)), HasSubstr("33 tokens"));
  EXPECT_EQ(kind, ErrorKind::kUsage);
  // What a tokenizer gives that is not the model's: the checkpoint is broken.
  EXPECT_THAT(error_of({1, 2, 256}), HasSubstr("token 256"));
  EXPECT_EQ(kind, ErrorKind::kFailed);
  EXPECT_THAT(error_of({1, -1}), HasSubstr("token -1"));
  EXPECT_FALSE(session->decode(-5).ok());
  EXPECT_TRUE(session->trace().rows().empty());
}

TEST_F(SessionTest, FillsItsContextToTheLastPosition) {
  const auto session = make_session(*model_, {}, {32, 8});
  ASSERT_TRUE(session->prefill(std::span(tokens_).first(31)).ok());
  ASSERT_TRUE(session->decode(tokens_[31]).ok());
  EXPECT_EQ(session->position(), session->capacity());
  EXPECT_FALSE(session->decode(1).ok());
  EXPECT_EQ(session->position(), 32);
}

TEST_F(SessionTest, GoesBackToAnEarlierState) {
  const auto session = make_session(*model_, {"prefill.numerics=exact"}, {100, 8});
  const auto prompt = std::span<const int32_t>(tokens_).first(20);
  const std::vector<float> expected = copy_of(session->prefill(prompt));
  ASSERT_TRUE(session->decode(3).ok());
  ASSERT_TRUE(session->decode(4).ok());
  ASSERT_TRUE(session->truncate(19).ok());
  EXPECT_EQ(session->position(), 19);
  EXPECT_TRUE(same_bits(copy_of(session->decode(prompt[19])), expected));
  ASSERT_TRUE(session->truncate(0).ok());
  EXPECT_TRUE(same_bits(copy_of(session->prefill(prompt)), expected));
  EXPECT_FALSE(session->truncate(21).ok());
  EXPECT_FALSE(session->truncate(-1).ok());
  EXPECT_EQ(session->position(), 20);
}

TEST_F(SessionTest, GivesTheLastRowAlone) {
  const auto prompt = std::vector<int32_t>(tokens_.begin(), tokens_.begin() + 50);
  const std::vector<float> all =
      prefill_rows(*model_, {"prefill.numerics=exact", "prefill.chunk=16"}, prompt);
  const auto session = make_session(*model_, {"prefill.numerics=exact"}, {50, 16});
  EXPECT_TRUE(
      same_bits(copy_of(session->prefill(prompt)), std::vector<float>(all.end() - 256, all.end())));
}

TEST_F(SessionTest, ShowsTheResidualStreamToAnObserver) {
  const auto session = make_session(*model_, {}, {64, 8, models::LogitRows::kAll});
  std::vector<std::pair<int64_t, int64_t>> seen;
  session->observe([&](int64_t layer, Activation hidden) {
    EXPECT_EQ(hidden.columns, 96);
    seen.emplace_back(layer, hidden.rows);
  });
  ASSERT_TRUE(session->prefill(std::span(tokens_).first(10)).ok());
  const std::vector<std::pair<int64_t, int64_t>> expected{{0, 8}, {1, 8}, {2, 8}, {3, 8},
                                                          {0, 2}, {1, 2}, {2, 2}, {3, 2}};
  EXPECT_EQ(seen, expected);
  session->observe({});
  ASSERT_TRUE(session->decode(1).ok());
  EXPECT_EQ(seen.size(), 8U);
}

TEST_F(SessionTest, AForcedKernelThatCannotRunIsAnError) {
  for (const kernels::Variant& variant : kernels::all_variants()) {
    if (variant.op != kernels::Op::kMatmul || variant.numerics != kernels::NumericsClass::kFast) {
      continue;
    }
    const auto session = Session::create(
        *model_, {switches_of({std::string("kernel.matmul=") + variant.name}), {}, std::nullopt});
    ASSERT_FALSE(session.ok());  // decode is exact
    EXPECT_THAT(session.error().message, HasSubstr(variant.name));
  }
}

// ---- predicted and observed dispatch ----

std::vector<kernels::DispatchRow> observed_rows(Session& session) {
  std::vector<kernels::DispatchRow> rows;
  for (const kernels::TraceCount& counted : session.trace().rows()) rows.push_back(counted.row);
  return rows;
}

std::vector<kernels::DispatchRow> predicted_rows(const SessionPlan& plan) {
  std::vector<kernels::DispatchRow> rows;
  for (const PlannedCall& planned : plan.calls) {
    rows.push_back(kernels::predicted_row(planned.call, *planned.choice));
  }
  std::ranges::sort(rows);
  return rows;
}

class Dispatch : public ::testing::TestWithParam<std::string> {};

// A dense model knows every call beforehand: all that was predicted is certain, so that observed
// and predicted are equal.
TEST_P(Dispatch, IsWhatThePlanPredicts) {
  const auto model = open_model(golden_path(GetParam()));
  const std::vector<int32_t> tokens = longest_prompt(*model);
  for (const Assignments& assignments :
       {Assignments{"prefill.chunk=16"}, Assignments{"prefill.chunk=16", "prefill.numerics=exact"},
        Assignments{"numerics=reference"}, Assignments{"cpu.isa=scalar", "prefill.chunk=33"},
        Assignments{"prefill.tile_order=band8"}}) {
    for (const auto logit_rows : {models::LogitRows::kLast, models::LogitRows::kAll}) {
      const SessionShape shape{0, 0, logit_rows};
      const auto session = make_session(*model, assignments, shape);
      ASSERT_NE(session, nullptr);
      ASSERT_TRUE(session->prefill(tokens).ok());
      ASSERT_TRUE(session->decode(1).ok());
      ASSERT_TRUE(session->decode(2).ok());
      ASSERT_TRUE(session->pick({}).ok());

      kernels::Planner planner(switches_of(assignments), kernels::detect_cpu(),
                               kernels::all_variants());
      const PassKinds passes{
          chunk_rows(static_cast<int64_t>(tokens.size()), session->plan().shape.chunk), true};
      const auto plan = plan_session(model->model(), planner, shape, passes);
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      EXPECT_EQ(observed_rows(*session), predicted_rows(*plan));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Dispatch, ::testing::ValuesIn(oracle_models()), test_name);

TEST_F(SessionTest, CountsOfThePlanAreThoseOfOnePassOfEachKind) {
  const auto session = make_session(*model_, {}, {64, 16});
  ASSERT_TRUE(session->prefill(std::span(tokens_).first(16)).ok());
  ASSERT_TRUE(session->decode(1).ok());
  ASSERT_TRUE(session->pick({}).ok());
  uint64_t observed = 0;
  for (const kernels::TraceCount& counted : session->trace().rows()) observed += counted.count;
  uint64_t planned = 0;
  for (const PlannedCall& call : session->plan().calls) planned += call.count;
  EXPECT_EQ(observed, planned);
}

}  // namespace
}  // namespace reckon::engine
