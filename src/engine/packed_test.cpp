// Models whose matrices are packed at load: the promises of exact numerics, the memory plan, and
// that nothing is packed where the plan does not fit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/oracle.h"
#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;

ModelOptions packed(const char* scheme) {
  return {models::QuantScheme::parse(scheme).value()};
}

double row_ratio(const float* got, const float* expected, int64_t count) {
  double squares = 0, norm = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double e = expected[i];
    squares += std::pow(static_cast<double>(got[i]) - e, 2);
    norm += e * e;
  }
  return std::sqrt(squares / norm);
}

// Hidden sizes of 48, 80 and 96 among them, so that rows end in padded groups.
class Packed : public ::testing::TestWithParam<std::string> {};

TEST_P(Packed, ExactIsCloseToReferenceOnTheSameWeights) {
  for (const char* scheme : {"q4", "q8"}) {
    const auto model = open_model(golden_path(GetParam()), packed(scheme));
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> tokens = longest_prompt(*model);
    const std::vector<float> expected = prefill_rows(*model, {"numerics=reference"}, tokens);
    const std::vector<float> got = prefill_rows(*model, {"prefill.numerics=exact"}, tokens);
    ASSERT_EQ(got.size(), expected.size());
    const int64_t columns = model->model().info().vocabulary;
    for (int64_t r = 0; r < static_cast<int64_t>(tokens.size()); ++r) {
      EXPECT_LE(row_ratio(got.data() + r * columns, expected.data() + r * columns, columns), 1e-3)
          << scheme << " row " << r;
    }
  }
}

TEST_P(Packed, ChunksThreadsAndDecodeMoveNoBit) {
  for (const char* scheme : {"q4", "q8"}) {
    const auto model = open_model(golden_path(GetParam()), packed(scheme));
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> tokens = longest_prompt(*model);
    const std::vector<float> expected = decode_rows(*model, {}, tokens);
    for (const int chunk : {1, 7, 512}) {
      for (const int threads : {1, 3}) {
        const Assignments assignments{"prefill.numerics=exact",
                                      fmt::format("prefill.chunk={}", chunk),
                                      fmt::format("cpu.threads={}", threads)};
        EXPECT_TRUE(same_bits(prefill_rows(*model, assignments, tokens), expected))
            << scheme << " " << chunk << " " << threads;
      }
    }
  }
}

// Panels of packed weights give the bits of their rows, and a session that would read rows which
// were not kept is refused by name.
TEST_P(Packed, PanelsAloneMoveNoBit) {
  for (const char* scheme : {"q4", "q8"}) {
    ModelOptions options = packed(scheme);
    const auto rows = open_model(golden_path(GetParam()), options);
    options.layouts.session = kernels::SwitchSet();
    const auto model = open_model(golden_path(GetParam()), options);
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> tokens = longest_prompt(*model);
    EXPECT_TRUE(same_bits(decode_rows(*model, {}, tokens), decode_rows(*rows, {}, tokens)));
    EXPECT_TRUE(same_bits(prefill_rows(*model, {"prefill.numerics=exact"}, tokens),
                          prefill_rows(*rows, {"prefill.numerics=exact"}, tokens)));
    const bool alone = std::ranges::any_of(
        model->weights(), [](const auto& weight) { return weight.placed.panels_alone; });
    const auto refused = Session::create(*model, {switches_of({"numerics=reference"}), {}, {}});
    ASSERT_EQ(refused.ok(), !alone);
    if (refused.ok()) continue;
    EXPECT_THAT(refused.error().message, HasSubstr("panels alone were kept"));
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Packed,
                         ::testing::Values("oracle/llama-h48-tied", "oracle/llama-h48-untied",
                                           "oracle/qwen3-h80", "gguf/tiny-llama-mixed.gguf"),
                         test_name);

// Packing moves the logits, but not far: of a tiny model with random weights, which has nothing to
// average errors out.
TEST(PackedModel, StaysNearTheCheckpoint) {
  const std::string path = golden_path("oracle/llama-h48-tied");
  const auto plain = open_model(path);
  const std::vector<int32_t> tokens = longest_prompt(*plain);
  const std::vector<float> expected = prefill_rows(*plain, {"numerics=reference"}, tokens);
  for (const auto& [scheme, limit] : {std::pair{"q4", 0.5}, {"q8", 0.05}}) {
    const auto model = open_model(path, packed(scheme));
    const std::vector<float> got = prefill_rows(*model, {"numerics=reference"}, tokens);
    ASSERT_EQ(got.size(), expected.size());
    const double ratio =
        row_ratio(got.data(), expected.data(), static_cast<int64_t>(expected.size()));
    EXPECT_LE(ratio, limit) << scheme;
    EXPECT_GT(ratio, 1e-5) << scheme;
  }
}

TEST(PackedModel, SaysItsWeightFormat) {
  const std::string path = golden_path("gguf/tiny-llama-mixed.gguf");
  const auto plain = open_model(path);
  EXPECT_EQ(plain->weight_format(), plain->checkpoint().weight_format());
  EXPECT_FALSE(plain->is_packed());
  EXPECT_EQ(open_model(path, packed("none"))->weight_format(), plain->weight_format());
  EXPECT_EQ(open_model(path, packed("q4"))->weight_format(), "p4");
  EXPECT_EQ(open_model(path, packed("q8"))->weight_format(), "p8");
  EXPECT_TRUE(open_model(path, packed("q8"))->is_packed());
}

TEST(PackedModel, ThePlanCountsWhatPackingTakes) {
  for (const char* scheme : {"q4", "q8"}) {
    const auto model = open_model(golden_path("oracle/llama-h48-untied"), packed(scheme));
    const auto plain = open_model(golden_path("oracle/llama-h48-untied"));
    EXPECT_EQ(model->allocated_bytes(), 0U);
    EXPECT_LT(model->model().info().weight_bytes, plain->model().info().weight_bytes);
    const auto session = make_session(*model, {}, {64, 8});
    ASSERT_NE(session, nullptr);
    // Float32 vectors stay in the file.
    uint64_t in_place = 0;
    for (const CheckpointTensor& tensor : model->checkpoint().tensors()) {
      if (tensor.shape.size() == 1 && tensor.type_name == "f32") in_place += tensor.bytes;
    }
    EXPECT_EQ(model->allocated_bytes() + in_place, model->model().info().weight_bytes);
    EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes);
  }
}

TEST(PackedModel, IsNotPackedWhereThePlanDoesNotFit) {
  const auto model = open_model(golden_path("oracle/llama-h48-tied"), packed("q4"));
  bool packing = false;
  SessionOptions options{switches_of({}), {64, 8}, "10KiB"};
  options.load_progress = [&](uint64_t, uint64_t) { packing = true; };
  const auto refused = Session::create(*model, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_FALSE(packing);
  EXPECT_EQ(model->allocated_bytes(), 0U);

  options.memory_limit.reset();
  ASSERT_TRUE(Session::create(*model, options).ok());
  EXPECT_TRUE(packing);
  const uint64_t allocated = model->allocated_bytes();
  EXPECT_GT(allocated, 0U);
  packing = false;
  ASSERT_TRUE(Session::create(*model, options).ok());  // packed once for all sessions
  EXPECT_FALSE(packing);
  EXPECT_EQ(model->allocated_bytes(), allocated);
}

TEST(PackedModel, IsHeldToTheToleranceOfQuantisedWeights) {
  const auto model = open_model(golden_path("oracle/llama-h48-tied"), packed("q8"));
  const OracleTolerance tolerance = oracle_tolerance(*model, switches_of({"numerics=reference"}));
  EXPECT_EQ(tolerance.measure, OracleMeasure::kRowNorm);
  EXPECT_EQ(tolerance.limit, 2e-2);
}

TEST(DetectBudget, CountsWhatThePlanHoldsAlreadyAsAvailable) {
  constexpr uint64_t kHeld = uint64_t{1} << 45;
  const auto machine = detect_budget(std::nullopt);
  const auto holding = detect_budget(std::nullopt, kHeld);
  ASSERT_TRUE(machine.ok() && holding.ok());
  EXPECT_GT(holding->bytes, kHeld);
  EXPECT_EQ(detect_budget("1MiB", kHeld)->bytes, 1048576U);  // a limit is on all of it
}

}  // namespace
}  // namespace reckon::engine
