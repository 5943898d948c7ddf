#include "engine/kl.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

TEST(RowKl, IsTheDivergenceOfTheSoftmaxes) {
  const std::array reference{0.0F, std::log(3.0F)};  // 1/4, 3/4
  const std::array variant{5.0F, 5.0F};              // 1/2, 1/2
  const double expected = 0.25 * std::log(0.5) + 0.75 * std::log(1.5);
  EXPECT_NEAR(row_kl(reference, variant), expected, 1e-7);
  EXPECT_EQ(row_kl(reference, reference), 0);
  const std::array shifted{100.0F, std::log(3.0F) + 100.0F};
  EXPECT_NEAR(row_kl(reference, shifted), 0, 1e-10);
  const std::array extreme{-1e4F, 1e4F};
  EXPECT_EQ(row_kl(extreme, extreme), 0);
}

TEST(CompareKl, ASessionAgreesWithItself) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  const std::vector<int32_t> tokens = longest_prompt(*model);
  const SessionShape shape{0, 0, models::LogitRows::kAll};
  const auto a = make_session(*model, {"prefill.numerics=exact", "prefill.chunk=7"}, shape);
  const auto b = make_session(*model, {"prefill.numerics=exact", "prefill.chunk=64"}, shape);
  const auto report = compare_kl(*a, *b, tokens);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->tokens, static_cast<int64_t>(tokens.size()));
  EXPECT_EQ(report->mean_kl, 0);
  EXPECT_EQ(report->top1_agreement(), 1);
  EXPECT_EQ(report->decisive_agreement(), 1);
  EXPECT_GT(report->decisive, 0);
  EXPECT_LT(report->decisive, report->tokens);
}

TEST(CompareKl, KnowsThePerplexityOfTheTextAndDecodesWhatFollows) {
  const auto model = open_model(golden_path("oracle/llama-s0"));
  std::vector<int32_t> tokens = longest_prompt(*model);
  ASSERT_GE(tokens.size(), 15u);
  tokens.resize(15);
  const std::span<const int32_t> text(tokens.data(), tokens.size() - 3);
  const SessionShape shape{0, 0, models::LogitRows::kAll};
  const auto a = make_session(*model, {"numerics=reference", "prefill.chunk=7"}, shape);
  const auto b = make_session(*model, {"prefill.chunk=64"}, shape);
  auto report = compare_kl(*a, *b, text);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->predicted, static_cast<int64_t>(text.size()) - 1);
  EXPECT_GT(report->mean_kl, 0);
  EXPECT_NE(report->reference_loss, report->variant_loss);
  EXPECT_NEAR(report->reference_loss, report->variant_loss, 0.05);

  // By hand: the loss of each token from a session that stops before it.
  double loss = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    const auto one = make_session(*model, {"numerics=reference"}, {});
    const auto logits = one->prefill(text.first(i));
    ASSERT_TRUE(logits.ok());
    double sum = 0;
    for (const float value : *logits) sum += std::exp(static_cast<double>(value));
    loss += std::log(sum) - static_cast<double>((*logits)[static_cast<size_t>(text[i])]);
  }
  EXPECT_NEAR(report->reference_loss, loss / static_cast<double>(text.size() - 1), 1e-4);

  const double text_loss = report->reference_loss;
  const auto following = std::span<const int32_t>(tokens).last(3);
  ASSERT_TRUE(compare_kl_decode(*a, *b, following, *report).ok());
  EXPECT_EQ(report->tokens, static_cast<int64_t>(tokens.size()));
  EXPECT_EQ(report->reference_loss, text_loss);
  EXPECT_EQ(a->position(), static_cast<int64_t>(tokens.size()));
}

TEST(CompareKl, OtherWeightsDiffer) {
  const auto one = open_model(golden_path("oracle/llama-s0"));
  const auto other = open_model(golden_path("oracle/llama-s1"));
  const std::vector<int32_t> tokens = longest_prompt(*one);
  const SessionShape shape{0, 0, models::LogitRows::kAll};
  const auto report =
      compare_kl(*make_session(*one, {}, shape), *make_session(*other, {}, shape), tokens);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_GT(report->mean_kl, 1);
  EXPECT_LT(report->top1_agreement(), 0.2);
  EXPECT_LT(report->decisive_agreement(), 0.2);
}

TEST(CompareKl, RefusesAnotherVocabulary) {
  const auto one = open_model(golden_path("oracle/llama-s0"));
  const auto other = open_model(golden_path("oracle/qwen3-h80"));
  const SessionShape shape{0, 0, models::LogitRows::kAll};
  const std::array<int32_t, 2> tokens{1, 2};
  const auto report =
      compare_kl(*make_session(*one, {}, shape), *make_session(*other, {}, shape), tokens);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kUsage);
}

// The quality bound of docs/numerics.md on real text with a real model.
void expect_near(const LoadedModel& model, const Assignments& reference,
                 const Assignments& variant) {
  const std::vector<int32_t> tokens = prose_tokens(model, 2000);
  const SessionShape shape{2000, 0, models::LogitRows::kAll};
  const auto report = compare_kl(*make_session(model, reference, shape),
                                 *make_session(model, variant, shape), tokens);
  ASSERT_TRUE(report.ok()) << report.error().message;
  fmt::print(
      "{} against {}, {} tokens: mean KL {:.3e}, largest {:.3e}, top-1 equal {}, where the margin "
      "is over 0.5: {} of {}\n",
      fmt::join(variant, " "), fmt::join(reference, " "), report->tokens, report->mean_kl,
      report->largest_kl, report->top1_equal, report->decisive_equal, report->decisive);
  EXPECT_EQ(report->tokens, 2000);
  EXPECT_LE(report->mean_kl, 1e-3);
  EXPECT_EQ(report->decisive_equal, report->decisive);
}

class KlOfRealModels : public ::testing::TestWithParam<std::string> {};

TEST_P(KlOfRealModels, ExactKernelsStayNearTheReferenceOnProse) {
  RECKON_REQUIRE_MODEL(GetParam());
  const auto model = open_model(real_model(GetParam()));
  expect_near(*model, {"numerics=reference"}, {"prefill.numerics=exact"});
}

// Against exact, which is near the reference and much faster.
TEST_P(KlOfRealModels, FastKernelsStayNearExactOnesOnProse) {
  RECKON_REQUIRE_MODEL(GetParam());
  const auto model = open_model(real_model(GetParam()));
  expect_near(*model, {"prefill.numerics=exact"}, {"prefill.numerics=fast"});
}

std::unique_ptr<LoadedModel> packed_tiny(const std::string& scheme) {
  ModelOptions options;
  options.quant = *models::QuantScheme::parse(scheme);
  return open_model(real_model("tiny"), options);
}

TEST(KlOfPackedTiny, ExactKernelsStayNearTheReferenceOnProse) {
  RECKON_REQUIRE_TINY();
  for (const char* scheme : {"q8", "q4"}) {
    expect_near(*packed_tiny(scheme), {"numerics=reference"}, {"prefill.numerics=exact"});
  }
}

// What packing the weights themselves costs; docs/tiny-model.md has the figures.
TEST(KlOfPackedTiny, WeightsStayNearThoseInBfloat16OnProse) {
  RECKON_REQUIRE_TINY();
  const auto plain = open_model(real_model("tiny"));
  const std::vector<int32_t> tokens = prose_tokens(*plain, 2000);
  const SessionShape shape{2000, 0, models::LogitRows::kAll};
  const Assignments exact{"prefill.numerics=exact"};
  for (const auto& [scheme, most] : {std::pair{"q8", 5e-4}, std::pair{"q4", 0.05}}) {
    const auto packed = packed_tiny(scheme);
    const auto report = compare_kl(*make_session(*plain, exact, shape),
                                   *make_session(*packed, exact, shape), tokens);
    ASSERT_TRUE(report.ok()) << report.error().message;
    fmt::print("{}: mean KL {:.3e}, largest {:.3e}, top-1 equal {} of {}, loss {:.4f} for {:.4f}\n",
               scheme, report->mean_kl, report->largest_kl, report->top1_equal, report->tokens,
               report->variant_loss, report->reference_loss);
    EXPECT_LE(report->mean_kl, most) << scheme;
    EXPECT_GT(report->mean_kl, 0) << scheme;
  }
}

// Prose that is run in verifies of six tokens by another kernel than plain decode's.
KlReport verified_prose(const LoadedModel& model, const std::string& kernel) {
  const std::vector<int32_t> tokens = prose_tokens(model, 600);
  const SessionShape shape{600, 0, models::LogitRows::kAll};
  const auto plain = make_session(model, {}, shape);
  const auto verifying = make_session(
      model, {"decode.drafter=lookup", "decode.mtp_depth=5", "decode.verify_kernel=" + kernel},
      shape);
  KlReport report;
  const Status compared = compare_kl_decode(*plain, *verifying, tokens, report);
  EXPECT_TRUE(compared.ok()) << compared.error().message;
  EXPECT_EQ(report.tokens, 600);
  fmt::print("{}: mean KL {:.3e}, largest {:.3e}, top-1 equal {}, over a margin of 0.5 {} of {}\n",
             kernel, report.mean_kl, report.largest_kl, report.top1_equal, report.decisive_equal,
             report.decisive);
  return report;
}

TEST_P(KlOfRealModels, VerifiesByOtherKernelsStayNearPlainDecodeOnProse) {
  RECKON_REQUIRE_MODEL(GetParam());
  const auto model = open_model(real_model(GetParam()));
  const KlReport exact = verified_prose(*model, "exact");
  EXPECT_EQ(exact.mean_kl, 0);
  EXPECT_EQ(exact.top1_equal, exact.tokens);
  EXPECT_LE(verified_prose(*model, "fast").mean_kl, 1e-3);
  EXPECT_LE(verified_prose(*model, "stream").mean_kl, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Text, KlOfRealModels, ::testing::ValuesIn(real_models()), test_name);

}  // namespace
}  // namespace reckon::engine
