// Exact numerics of hybrids in every weight format: the bits of a row of logits depend neither on
// chunks and threads, nor on how many rows are verified with it, nor on how many of them are kept.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <tuple>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

constexpr size_t kTokens = 40;
constexpr int64_t kMostRows = 16;

ModelOptions packed_as(const std::string& quant) {
  ModelOptions options;
  const auto scheme = models::QuantScheme::parse(quant);
  if (!scheme.ok()) {
    ADD_FAILURE() << scheme.error().message;
    return options;
  }
  options.quant = *scheme;
  options.packed_cache.enabled = false;
  return options;
}

class HybridExactness : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  std::unique_ptr<LoadedModel> model_ =
      open_model(golden_path(std::get<0>(GetParam())), packed_as(std::get<1>(GetParam())));
  size_t vocabulary_ = static_cast<size_t>(model_->model().info().vocabulary);
  std::vector<int32_t> tokens_ = longest_prompt(*model_);
  std::vector<float> expected_;  // [kTokens, vocabulary], of plain decode

  void SetUp() override {
    tokens_.resize(kTokens);
    expected_ = decode_rows(*model_, {}, tokens_);
    ASSERT_EQ(expected_.size(), kTokens * vocabulary_);
  }

  [[nodiscard]] bool is_row(const float* logits, size_t position) const {
    return std::memcmp(logits, expected_.data() + position * vocabulary_,
                       vocabulary_ * sizeof(float)) == 0;
  }
};

TEST_P(HybridExactness, ChunksAndThreadsMoveNoBit) {
  for (const int chunk : {1, 7, 16, 512}) {
    for (const int threads : {1, 2, 3}) {
      const Assignments assignments{"prefill.numerics=exact",
                                    fmt::format("prefill.chunk={}", chunk),
                                    fmt::format("cpu.threads={}", threads)};
      EXPECT_TRUE(same_bits(prefill_rows(*model_, assignments, tokens_), expected_))
          << fmt::format("{}", fmt::join(assignments, " "));
    }
  }
}

TEST_P(HybridExactness, VerifiesOfEveryWidthMayKeepAnyNumberOfRows) {
  constexpr size_t kFirst = 5;
  SessionShape shape{64, 32};
  shape.verify_rows = kMostRows;
  const auto session =
      make_session(*model_, {"prefill.numerics=exact", "decode.drafter=none"}, shape);
  ASSERT_TRUE(session->append(std::span(tokens_).first(kFirst)).ok());
  for (size_t width = 1; width <= kMostRows; ++width) {
    for (size_t kept = 1; kept <= width; ++kept) {
      std::vector<int32_t> rows(tokens_.begin() + kFirst,
                                tokens_.begin() + static_cast<ptrdiff_t>(kFirst + width));
      for (size_t r = kept; r < width; ++r)
        rows[r] = (rows[r] + 7) % static_cast<int32_t>(vocabulary_);
      const auto logits = session->verify(rows);
      ASSERT_TRUE(logits.ok()) << logits.error().message;
      for (size_t r = 0; r < kept; ++r) {
        EXPECT_TRUE(is_row(logits->data + r * vocabulary_, kFirst + r))
            << fmt::format("row {} of {}, {} kept", r, width, kept);
      }
      ASSERT_TRUE(session->truncate(static_cast<int64_t>(kFirst + kept)).ok());
      const auto next = session->decode(tokens_[kFirst + kept]);
      ASSERT_TRUE(next.ok()) << next.error().message;
      EXPECT_TRUE(is_row(next->data(), kFirst + kept))
          << fmt::format("behind {} of {} rows", kept, width);
      ASSERT_TRUE(session->truncate(kFirst).ok());
    }
  }
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<std::string, std::string>>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Golden, HybridExactness,
                         ::testing::Combine(::testing::ValuesIn(hybrid_folders()),
                                            ::testing::Values("none", "bf16", "q8", "q4")),
                         case_name);

}  // namespace
}  // namespace reckon::engine
