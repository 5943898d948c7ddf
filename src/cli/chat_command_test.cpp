#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

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

TEST(Chat, RefusesALineThatIsTooLongForAnyContext) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(chat(), std::string((16U << 20) + 1, 'x') + "\nHello\n");
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("a line of more than 16.0 MiB"));
}

TEST(Chat, CtrlCEndsItWhereThePromptsComeFromAPipe) {
  Sandbox sandbox;
  std::string prompts = "Hello\n";
  for (int i = 0; i < 100'000; ++i) prompts += "/regen\n";
  const pid_t child = sandbox.start(chat(), prompts);
  usleep(300'000);
  (void)kill(child, SIGINT);
  EXPECT_EQ(sandbox.finish(child).code, 128 + SIGINT);
}

// `reckon chat` on a terminal.
class Terminal {
 public:
  Terminal() {
    std::vector<std::string> words = chat();
    words.insert(words.begin(), RECKON_BINARY_DIR "/reckon");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    child_ = forkpty(&fd_, nullptr, nullptr, nullptr);
    if (child_ != 0) return;
    execv(argv[0], argv.data());
    _exit(127);
  }
  ~Terminal() {
    (void)kill(child_, SIGKILL);
    (void)waitpid(child_, nullptr, 0);
    close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view text) const {
    while (!text.empty()) {  // no more at once than the terminal takes
      const ssize_t written = write(fd_, text.data(), std::min<size_t>(text.size(), 500));
      ASSERT_GT(written, 0);
      text.remove_prefix(static_cast<size_t>(written));
      usleep(10'000);
    }
  }
  // Reads until the text came, at most a minute; behind what the last call found.
  bool sees(std::string_view text) {
    for (;;) {
      if (const size_t found = screen_.find(text); found != std::string::npos) {
        screen_.erase(0, found + text.size());
        return true;
      }
      pollfd ready{fd_, POLLIN, 0};
      char buffer[4096];
      if (poll(&ready, 1, 60'000) != 1) return false;
      const ssize_t count = read(fd_, buffer, sizeof buffer);
      if (count <= 0) return false;
      screen_.append(buffer, static_cast<size_t>(count));
    }
  }
  // How it ended, as a shell says it.
  int code() {
    (void)sees("\a nothing prints this");
    int status = 0;
    (void)waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
  int fd_ = -1;
  std::string screen_;
};

constexpr const char* kPrompt = "> ";

TEST(ChatOnATerminal, CtrlCTwiceEnds) {
  Terminal terminal;
  ASSERT_TRUE(terminal.sees(kPrompt));
  terminal.type("\x03");
  ASSERT_TRUE(terminal.sees("Ctrl-C again"));
  ASSERT_TRUE(terminal.sees(kPrompt));
  terminal.type("\x03");
  EXPECT_EQ(terminal.code(), 130);
}

TEST(ChatOnATerminal, ALineBetweenThemKeepsIt) {
  Terminal terminal;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(terminal.sees(kPrompt));
    terminal.type("\x03");
    ASSERT_TRUE(terminal.sees("Ctrl-C again"));
    ASSERT_TRUE(terminal.sees(kPrompt));
    terminal.type("/reset\n");
  }
  ASSERT_TRUE(terminal.sees(kPrompt));
  terminal.type("\x04");
  EXPECT_EQ(terminal.code(), 0);
}

TEST(ChatOnATerminal, ALineThatTheTerminalCutsIsRefused) {
  Terminal terminal;
  ASSERT_TRUE(terminal.sees(kPrompt));
  terminal.type(std::string(5000, 'x') + "\n");
  EXPECT_TRUE(terminal.sees("a terminal cuts a line after 4095 bytes"));
  ASSERT_TRUE(terminal.sees(kPrompt));
  terminal.type("\x04");
  EXPECT_EQ(terminal.code(), 0);
}

TEST(Chat, TakesATemplateByHand) {
  Sandbox sandbox;
  const std::string plain = golden_path("gguf/tiny-llama-v2.gguf");
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
