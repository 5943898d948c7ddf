#include "engine/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/test_sessions.h"
#include "formats/utf8_stream.h"

namespace reckon::engine {
namespace {

using ::testing::Contains;

GenerateOptions up_to(int64_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  return options;
}

// About `length` bytes of the text at `begin`, whole characters.
std::string characters(const std::string& text, size_t begin, size_t length) {
  const auto boundary = [&](size_t at) {
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
    return at;
  };
  begin = boundary(begin);
  return text.substr(begin, boundary(begin + length) - begin);
}

class GenerateTest : public ::testing::Test {
 protected:
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path("gguf/tiny-llama-mixed.gguf"));
  const Tokenizer* tokenizer_ = *model_->tokenizer();
  std::vector<int32_t> prompt_ = longest_prompt(*model_);

  Generation run(Session& session, const GenerateOptions& options, const TextSink& sink = {}) {
    const auto generation = generate(session, prompt_, options, tokenizer_, sink);
    if (!generation.ok()) ADD_FAILURE() << generation.error().message;
    return *generation;
  }
};

TEST_F(GenerateTest, ContinuesGreedilyAsRecorded) {
  const auto prompts = read_oracle_case(model_->checkpoint(), model_->model().info());
  ASSERT_TRUE(prompts.ok());
  for (const OraclePrompt& recorded : *prompts) {
    const auto session = make_session(*model_, {"numerics=reference"}, {256});
    prompt_ = recorded.tokens;
    const Generation generation = run(*session, up_to(16));
    EXPECT_EQ(generation.tokens, recorded.greedy);
    EXPECT_EQ(generation.margins.size(), generation.tokens.size());
    EXPECT_EQ(generation.stop, StopReason::kMaxTokens);
    EXPECT_EQ(generation.prompt_tokens, static_cast<int64_t>(recorded.tokens.size()));
    EXPECT_EQ(generation.decode_passes, 15);
    EXPECT_GT(generation.prefill_ns, 0);
    EXPECT_GT(generation.decode_ns, 0);
    // The last token was not run.
    EXPECT_EQ(session->position(), generation.prompt_tokens + 15);
  }
}

TEST_F(GenerateTest, StreamsTheTextOfItsTokens) {
  const auto session = make_session(*model_, {}, {256});
  std::string text;
  const Generation generation = run(*session, up_to(40), [&](std::string_view piece) {
    EXPECT_FALSE(piece.empty());
    text += piece;
    return Flow::kContinue;
  });
  Utf8Stream stream;
  std::string expected = stream.push(tokenizer_->decode(generation.tokens));
  expected += stream.flush();
  EXPECT_EQ(text, expected);
}

TEST_F(GenerateTest, StopsAtAStopToken) {
  const auto session = make_session(*model_, {}, {256});
  const Generation free = run(*session, up_to(8));
  ASSERT_EQ(free.tokens.size(), 8U);
  const int32_t stop = free.tokens[5];
  const auto first = std::ranges::find(free.tokens, stop);
  ASSERT_TRUE(session->truncate(0).ok());
  GenerateOptions options = up_to(8);
  options.stop_tokens = {stop};
  const Generation stopped = run(*session, options);
  EXPECT_EQ(stopped.stop, StopReason::kEndOfSequence);
  EXPECT_EQ(stopped.tokens, std::vector<int32_t>(free.tokens.begin(), first));
  EXPECT_EQ(stopped.margins.size(), stopped.tokens.size());
}

TEST_F(GenerateTest, StopsWhereTheContextIsFull) {
  const auto length = static_cast<int64_t>(prompt_.size());
  const auto session = make_session(*model_, {}, {length + 3});
  const Generation generation = run(*session, up_to(50));
  EXPECT_EQ(generation.stop, StopReason::kContextFull);
  EXPECT_EQ(generation.tokens.size(), 4U);  // three that were run and the one after them
}

TEST_F(GenerateTest, StopsWhereTheSinkSaysSo) {
  const auto session = make_session(*model_, {}, {256});
  int pieces = 0;
  const Generation generation = run(*session, up_to(50), [&](std::string_view) {
    return ++pieces == 3 ? Flow::kStop : Flow::kContinue;
  });
  EXPECT_EQ(generation.stop, StopReason::kCancelled);
  EXPECT_LT(generation.tokens.size(), 50U);
}

TEST_F(GenerateTest, ZeroTokensIsAPrefill) {
  const auto session = make_session(*model_, {}, {256});
  const Generation generation = run(*session, up_to(0));
  EXPECT_TRUE(generation.tokens.empty());
  EXPECT_EQ(generation.stop, StopReason::kMaxTokens);
  EXPECT_EQ(session->position(), static_cast<int64_t>(prompt_.size()));
}

TEST_F(GenerateTest, SamplingFollowsItsSeed) {
  const auto tokens = [&](uint64_t seed) {
    const auto session = make_session(*model_, {}, {256});
    GenerateOptions options = up_to(20);
    options.sampler = {1.0, seed};
    return run(*session, options).tokens;
  };
  EXPECT_EQ(tokens(11), tokens(11));
  EXPECT_NE(tokens(11), tokens(12));
}

TEST_F(GenerateTest, FiltersAndPenaltiesFollowTheirSeed) {
  const auto tokens = [&](const SamplerOptions& sampler) {
    const auto session = make_session(*model_, {}, {256});
    GenerateOptions options = up_to(20);
    options.sampler = sampler;
    return run(*session, options).tokens;
  };
  const std::vector<int32_t> greedy = tokens({});
  EXPECT_EQ(tokens({1.5, 3, {.top_k = 1}}), greedy);
  const SamplerOptions filtered{1.5, 3, {.top_k = 30, .top_p = 0.9}, 1.2};
  EXPECT_EQ(tokens(filtered), tokens(filtered));
  EXPECT_NE(tokens(filtered), greedy);
}

TEST_F(GenerateTest, APenaltySeesThePromptAndWhatWasGenerated) {
  const auto session = make_session(*model_, {}, {256});
  GenerateOptions options = up_to(12);
  options.sampler.repeat_penalty = 100;
  options.sampler.repeat_window = 1000;
  std::vector<int32_t> all = prompt_;
  for (const int32_t token : run(*session, options).tokens) {
    EXPECT_EQ(std::ranges::count(all, token), 0) << token;
    all.push_back(token);
  }
}

TEST_F(GenerateTest, StopsBeforeAStopText) {
  const auto session = make_session(*model_, {}, {256});
  std::string text;
  const TextSink keep = [&](std::string_view piece) {
    text += piece;
    return Flow::kContinue;
  };
  const Generation free = run(*session, up_to(40), keep);
  const std::string whole = text;
  for (const size_t at : {size_t{3}, whole.size() / 2}) {
    const std::string stop = characters(whole, at, 5);  // tiny vocabulary: spans tokens
    ASSERT_TRUE(session->truncate(0).ok());
    text.clear();
    GenerateOptions options = up_to(40);
    options.stop_texts = {"never in it", stop};
    const Generation stopped = run(*session, options, keep);
    EXPECT_EQ(stopped.stop, StopReason::kStopText);
    EXPECT_EQ(text, whole.substr(0, whole.find(stop)));
    ASSERT_LT(stopped.tokens.size(), free.tokens.size());
    EXPECT_TRUE(
        std::ranges::equal(stopped.tokens, std::span(free.tokens).first(stopped.tokens.size())));
  }
}

TEST_F(GenerateTest, KeepsTextThatOnlyBeginsAStopText) {
  const auto session = make_session(*model_, {}, {256});
  std::string text;
  const TextSink keep = [&](std::string_view piece) {
    text += piece;
    return Flow::kContinue;
  };
  run(*session, up_to(20), keep);
  const std::string whole = text;
  ASSERT_TRUE(session->truncate(0).ok());
  text.clear();
  GenerateOptions options = up_to(20);
  options.stop_texts = {characters(whole, whole.size() - 4, 4) + "\x01"};
  EXPECT_EQ(run(*session, options, keep).stop, StopReason::kMaxTokens);
  EXPECT_EQ(text, whole);
}

TEST_F(GenerateTest, ReportsWhatCannotRun) {
  const auto session = make_session(*model_, {}, {16});
  const GenerateOptions negative = up_to(-1);
  const auto too_long = generate(*session, prompt_, {}, tokenizer_, {});
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(generate(*session, {}, {}, tokenizer_, {}).ok());
  EXPECT_FALSE(generate(*session, std::span(prompt_).first(3), negative, tokenizer_, {}).ok());
  GenerateOptions stop;
  stop.stop_texts = {"x"};
  EXPECT_FALSE(generate(*session, std::span(prompt_).first(3), stop, nullptr, {}).ok());
  EXPECT_EQ(session->position(), 0);
}

TEST_F(GenerateTest, DefaultStopTokensHoldTheEndOfSequence) {
  ASSERT_TRUE(tokenizer_->eos().has_value());
  EXPECT_THAT(default_stop_tokens(*tokenizer_), Contains(*tokenizer_->eos()));
}

}  // namespace
}  // namespace reckon::engine
