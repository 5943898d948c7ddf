#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;

std::vector<std::string> chat(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"chat", "-m", tiny_model(), "-n", "8"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<nlohmann::json> turns(const Finished& finished) {
  std::vector<nlohmann::json> objects;
  for (const std::string& line : lines_of(finished.out)) {
    objects.push_back(nlohmann::json::parse(line));
  }
  return objects;
}

TEST(Chat, AnswersALineOfAPipeATurn) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(chat({"--json"}), "Hello\n\nWho are you?");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const auto answers = turns(finished);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]["user"], "Hello");
  EXPECT_EQ(answers[1]["user"], "Who are you?");
  EXPECT_EQ(answers[0]["cached_tokens"], 0);
  EXPECT_GE(answers[1]["cached_tokens"], answers[0]["prompt_tokens"]);
  EXPECT_LE(answers[0]["tokens"].size(), 8U);
  // The first turn is what `run` makes of the same prompt.
  const Finished run = sandbox.run({"run", "-m", tiny_model(), "-n", "8", "-p", "Hello", "--json"});
  EXPECT_EQ(run.json()["tokens"], answers[0]["tokens"]);

  const Finished text = sandbox.run(chat(), "Hello\n");
  EXPECT_EQ(text.out, answers[0]["text"].get<std::string>() + "\n");
  EXPECT_EQ(text.err, "");
}

TEST(Chat, ObeysItsCommands) {
  Sandbox sandbox;
  const auto answers = turns(
      sandbox.run(chat({"--json"}),
                  "Hello\n/reset\nHello\n/regen\n/system Be brief.\nHello\n//x\n/exit\nno\n"));
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_EQ(answers[1]["tokens"], answers[0]["tokens"]);
  EXPECT_EQ(answers[1]["prompt_tokens"], answers[0]["prompt_tokens"]);
  EXPECT_EQ(answers[2]["tokens"], answers[0]["tokens"]);
  EXPECT_NE(answers[3]["prompt_tokens"], answers[0]["prompt_tokens"]);
  EXPECT_EQ(answers[4]["user"], "/x");
  EXPECT_THAT(sandbox.run(chat(), "/help\n").err, HasSubstr("/regen"));
}

TEST(Chat, APipeEndsAtTheFirstLineThatCannotBe) {
  Sandbox sandbox;
  const Finished unknown = sandbox.run(chat(), "/nonsense\nHello\n");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "");
  EXPECT_TRUE(unknown.one_error_line()) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("unknown command '/nonsense'"));
  const Finished full = sandbox.run(chat({"--ctx", "80"}), std::string(400, 'x') + "\n");
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err, HasSubstr("the context holds 80"));
}

TEST(Chat, SaysThatTheContextIsFull) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"chat", "-m", tiny_model(), "--ctx", "80"}, "Hello\n");
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("the context of 80 tokens is full"));
}

TEST(Chat, TakesATemplateByHand) {
  Sandbox sandbox;
  const std::string plain = golden("gguf/tiny-llama-v2.gguf");
  const Finished none = sandbox.run({"chat", "-m", plain}, "Hello\n");
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(none.one_error_line()) << none.err;
  EXPECT_THAT(none.err, HasSubstr("--chat-template NAME"));
  const Finished wrong = sandbox.run(chat({"--chat-template", "llama3"}), "Hello\n");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no token '<|begin_of_text|>'"));
  EXPECT_EQ(sandbox.run(chat({"--chat-template", "chatml"}), "Hello\n").code, 0);
  EXPECT_EQ(sandbox.run(chat({"--thinking", "on"}), "Hello\n").code, 2);
  EXPECT_EQ(sandbox.run(chat({"--thinking", "maybe"}), "Hello\n").code, 2);
  EXPECT_THAT(sandbox.run(chat({"--chat-template", "chatlm"}), "").err, HasSubstr("'chatml'"));
}

}  // namespace
}  // namespace reckon::cli
