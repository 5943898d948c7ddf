#include "engine/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;

class ConversationTest : public ::testing::Test {
 protected:
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path("gguf/tiny-llama-mixed.gguf"));
  const Tokenizer* tokenizer_ = *model_->tokenizer();
  ChatTemplate chat_ = *ChatTemplate::from_checkpoint(model_->checkpoint());

  ConversationOptions options_;
  ConversationTest() { options_.generate.max_tokens = 12; }

  Conversation start(Session& session) {
    auto conversation = Conversation::create(session, *tokenizer_, chat_, options_);
    EXPECT_TRUE(conversation.ok()) << conversation.error().message;
    return std::move(conversation).value();
  }

  // What a fresh session answers to the whole of a conversation.
  std::vector<int32_t> fresh_answer(const std::vector<ChatMessage>& messages) {
    const auto session = make_session(*model_, {}, {512});
    const auto prompt = chat_.encode(*tokenizer_, messages, GenerationPrompt::kAdd);
    GenerateOptions options;
    options.max_tokens = options_.generate.max_tokens;
    return generate(*session, *prompt, options, tokenizer_, {})->tokens;
  }
};

TEST_F(ConversationTest, AnswersAsIfTheWholeHadBeenRunAnew) {
  const auto session = make_session(*model_, {}, {512});
  Conversation conversation = start(*session);
  std::vector<ChatMessage> said;
  int64_t cached = 0;
  for (const char* question : {"Who are you?", "And then?", "Why?"}) {
    said.push_back({"user", question});
    const auto turn = conversation.ask(question, {});
    ASSERT_TRUE(turn.ok()) << turn.error().message;
    EXPECT_EQ(turn->generation.tokens, fresh_answer(said));
    EXPECT_GE(turn->cached_tokens, cached);
    cached = turn->cached_tokens + turn->generation.prompt_tokens;
    said.push_back({"assistant", turn->text});
    ASSERT_EQ(conversation.messages().size(), said.size());
    EXPECT_EQ(conversation.messages().back().content, turn->text);
  }
}

TEST_F(ConversationTest, AnswersTheSameWithDrafts) {
  const auto session =
      make_session(*model_, {"decode.drafter=lookup", "decode.mtp_depth=4"}, {512});
  Conversation conversation = start(*session);
  std::vector<ChatMessage> said;
  int64_t drafting = 0;
  for (const char* question : {"Who are you?", "And then?", "Who are you?"}) {
    said.push_back({"user", question});
    const auto turn = conversation.ask(question, {});
    ASSERT_TRUE(turn.ok()) << turn.error().message;
    EXPECT_EQ(turn->generation.tokens, fresh_answer(said));
    drafting += turn->generation.speculation->drafting_passes();
    said.push_back({"assistant", turn->text});
  }
  EXPECT_GT(drafting, 0);
}

TEST_F(ConversationTest, RunsOnlyWhatIsNew) {
  const auto session = make_session(*model_, {}, {512});
  Conversation conversation = start(*session);
  const auto first = conversation.ask("Who are you?", {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->cached_tokens, 0);
  const auto second = conversation.ask("Yes", {});
  ASSERT_TRUE(second.ok());
  EXPECT_GE(second->cached_tokens, first->generation.prompt_tokens);
}

TEST_F(ConversationTest, AnswersAgain) {
  const auto session = make_session(*model_, {}, {512});
  options_.generate.sampler = {1.5, 3};
  Conversation conversation = start(*session);
  EXPECT_FALSE(conversation.ask_again({}).ok());
  const auto first = conversation.ask("Who are you?", {});
  const auto again = conversation.ask_again({});
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_NE(again->text, first->text);  // its random numbers go on
  EXPECT_EQ(conversation.messages().size(), 2U);
  EXPECT_EQ(conversation.messages().back().content, again->text);
  EXPECT_EQ(again->generation.prompt_tokens, 1);  // for the logits after the prompt
}

TEST_F(ConversationTest, StartsOver) {
  const auto session = make_session(*model_, {}, {512});
  Conversation conversation = start(*session);
  const auto first = conversation.ask("Who are you?", {});
  conversation.reset();
  EXPECT_TRUE(conversation.messages().empty());
  EXPECT_EQ(conversation.ask("Who are you?", {})->generation.tokens, first->generation.tokens);
  conversation.set_system("Count to ten.");
  EXPECT_TRUE(conversation.messages().empty());
  const auto other = conversation.ask("Who are you?", {});
  EXPECT_EQ(other->generation.tokens,
            fresh_answer({{"system", "Count to ten."}, {"user", "Who are you?"}}));
}

TEST_F(ConversationTest, KeepsAnAnswerThatWasCutShort) {
  const auto session = make_session(*model_, {}, {512});
  Conversation conversation = start(*session);
  int pieces = 0;
  const auto cut = conversation.ask("Who are you?", [&](std::string_view) {
    return ++pieces == 3 ? Flow::kStop : Flow::kContinue;
  });
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->generation.stop, StopReason::kCancelled);
  EXPECT_EQ(conversation.messages().back().content, cut->text);
  std::vector<ChatMessage> said = conversation.messages();
  said.push_back({"user", "Go on"});
  EXPECT_EQ(conversation.ask("Go on", {})->generation.tokens, fresh_answer(said));
}

TEST_F(ConversationTest, RefusesWhatNoLongerFitsAndStaysAsItWas) {
  const auto session = make_session(*model_, {}, {96});
  Conversation conversation = start(*session);
  const auto first = conversation.ask("Hi", {});
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto refused = conversation.ask(std::string(400, 'x'), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("the context holds 96"));
  EXPECT_EQ(conversation.messages().size(), 2U);
  EXPECT_EQ(conversation.ask_again({})->generation.tokens, first->generation.tokens);
}

}  // namespace
}  // namespace reckon::engine
