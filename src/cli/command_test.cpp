// What every command does alike: help, suggestions, exit codes, one-line errors, broken outputs.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "cli/command_testing.h"

namespace reckon::cli {

bool Finished::one_error_line() const {
  return err.starts_with("reckon: ") && err.find('\n') == err.size() - 1;
}

nlohmann::json Finished::json() const {
  return nlohmann::json::parse(out, nullptr, false);
}

Sandbox::Sandbox() {
  std::string pattern = ::testing::TempDir() + "reckon_cli_XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  folder_ = pattern;
}

Sandbox::~Sandbox() {
  std::filesystem::remove_all(folder_);
}

Finished Sandbox::run(const std::vector<std::string>& arguments, std::string_view input) {
  return finish(start(arguments, input));
}

Finished Sandbox::run_to(Stdout target, const std::vector<std::string>& arguments) {
  return finish(start(arguments, "", target));
}

pid_t Sandbox::start(const std::vector<std::string>& arguments, std::string_view input,
                     Stdout target) {
  std::vector<std::string> words = {RECKON_BINARY_DIR "/reckon"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string in = write(".stdin", input);
  const std::string out = target == Stdout::kFullDisk ? "/dev/full" : path(".stdout").string();
  const std::string err = path(".stderr").string();

  const pid_t child = fork();
  if (child != 0) return child;
  dup2(open(in.c_str(), O_RDONLY), STDIN_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  if (target == Stdout::kClosedPipe) {
    int ends[2];
    if (pipe(ends) != 0) _exit(127);
    close(ends[0]);
    dup2(ends[1], STDOUT_FILENO);
  } else {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  }
  if (target == Stdout::kNoStreams) {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(fd);
  }
  if (chdir(folder_.c_str()) != 0) _exit(127);
  setenv("HOME", folder_.c_str(), 1);
  for (const char* name : {"XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) unsetenv(name);
  setenv("RECKON_WRITER", "tester", 1);
  execv(argv[0], argv.data());
  _exit(127);
}

Finished Sandbox::finish(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  Finished finished;
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  finished.out = file_text(path(".stdout"));
  finished.err = file_text(path(".stderr"));
  return finished;
}

std::string Sandbox::write(std::string_view name, std::string_view text) const {
  const std::filesystem::path file = path(name);
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  return file.string();
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string tiny_model() {
  return golden_path("gguf/tiny-llama-mixed.gguf");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Command, PrintsHelpForEveryCommand) {
  Sandbox sandbox;
  const std::vector<std::vector<std::string>> commands = {{},
                                                          {"run"},
                                                          {"bench"},
                                                          {"plan"},
                                                          {"tune"},
                                                          {"ab"},
                                                          {"queue"},
                                                          {"check-oracle"},
                                                          {"queue", "check"},
                                                          {"queue", "run"},
                                                          {"ledger"},
                                                          {"ledger", "list"},
                                                          {"ledger", "show"},
                                                          {"ledger", "consult"},
                                                          {"ledger", "replay"},
                                                          {"ledger", "verify"}};
  for (std::vector<std::string> command : commands) {
    const std::string name = join(command, " ");
    command.emplace_back("--help");
    const Finished help = sandbox.run(command);
    EXPECT_EQ(help.code, 0) << name;
    EXPECT_THAT(help.out, HasSubstr("Usage: reckon")) << name;
    EXPECT_EQ(help.err, "") << name;
    // Examples are of the command itself.
    for (const std::string& line : lines_of(help.out)) {
      EXPECT_LE(line.size(), 100U) << name << ": " << line;
      if (line.starts_with("  reckon ") && line.find("--ledger") == std::string::npos) {
        EXPECT_THAT(line, StartsWith(("  reckon " + name))) << name;
      }
    }
  }
  EXPECT_THAT(sandbox.run({"--help"}).out, testing::Not(HasSubstr("round-worker")));
}

TEST(Command, PrintsItsVersion) {
  Sandbox sandbox;
  const Finished version = sandbox.run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, StartsWith("reckon "));
}

struct BadUsage {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(Command, AnswersBadUsageWithOneLineAndExitCode2) {
  Sandbox sandbox;
  const std::string model = tiny_model();
  const std::vector<BadUsage> cases = {
      {{}, "reckon --help"},
      {{"rnu"}, "unknown command 'rnu'; did you mean 'run'?"},
      {{"ledger"}, "reckon ledger --help"},
      {{"ledger", "lst"}, "unknown command 'lst'; did you mean 'list'?"},
      {{"queue", "rum", "x.yaml"}, "did you mean 'run'?"},
      {{"rnu", "-m", model}, "unknown command 'rnu'; did you mean 'run'? (see 'reckon --help')"},
      {{"ledger", "lst", "--json"}, "unknown command 'lst'; did you mean 'list'?"},
      {{"--modle", "rnu"}, "unknown option '--modle'"},
      {{"run"}, "--model is required"},
      {{"run", "-m", model}, "give a prompt by -p or -f"},
      {{"run", "--modle", model}, "unknown option '--modle'; did you mean '--model'?"},
      {{"run", "--modle=" + model}, "unknown option '--modle'; did you mean '--model'?"},
      {{"run", "-m", model, "-p", "a", "b"}, "unexpected argument 'b'"},
      {{"run", "-m", model, "-p", "a", "--set", "prefill.chnk=4"}, "'prefill.chunk'"},
      {{"plan", "-m", model, "--diff", "foo=bar"}, "unknown switch 'foo'; docs/switches.md lists"},
      {{"run", "-m", model, "-p", "a", "--set", "cpu.isa=avx3"}, "allowed are auto, scalar, avx2"},
      {{"run", "-m", model, "-p", "a", "--set", "chunk"}, "expected key=value"},
      {{"run", "-m", model, "-p", "a", "-n", "-1"}, "whole number from 0"},
      {{"run", "-m", model, "-p", "a", "-n", "1e3"}, "not '1e3'"},
      {{"run", "-m", model, "-p", "a", "--temperature", "-1"}, "0 or more"},
      {{"run", "-m", model, "-p", "a", "--temperature", "nan"}, "0 or more"},
      {{"run", "-m", model, "-p", "a", "-f", "b"}, "excludes"},
      {{"run", "-m", model, "-p", "a", "-p", "b"}, "--prompt: expected once, not 2 times"},
      {{"run", "-m", model, "-p", "a", "--trace", model}, "is a file of the model"},
      {{"run", "-m", model, "-p", "a", "--memory-limit", "12XB"}, "12XB"},
      {{"run", "-m", model, "-p", "a", "--ctx", "99999999"}, "this model takes 1 to 512"},
      {{"run", "-m", model, "-p", "a", "--ctx", "3"}, "more than the 3 of --ctx"},
      {{"run", "-m", "smolm2", "-p", "a"}, "did you mean 'smollm2'?"},
      {{"run", "-m", "no/such/file.gguf", "-p", "a"}, "no/such/file.gguf"},
      {{"bench", "-m", model, "-p", "0", "-n", "0"}, "nothing to measure"},
      {{"bench", "-m", model, "-o", "xml"}, "expected table or jsonl or csv"},
      {{"bench", "-m", model, "--ctx", "8"}, "--ctx 8 cannot hold"},
      {{"plan", "-m", model, "--prompt", "64", "--ctx", "32"}, "does not fit in --ctx 32"},
      {{"plan", "-m", model, "--diff", "prefill.tile_order=band9"}, "did you mean 'band8'?"},
      {{"check-oracle"}, "dir is required"},
      {{"check-oracle", golden_path("oracle/llama-s0"), "--backend", "tpu"},
       "no backend is called"},
      {{"check-oracle", golden_path("oracle/llama-s0"), "--numerics", "loose"}, "not 'loose'"},
      {{"queue", "run", "none.yaml"}, "none.yaml: no such file"},
      {{"queue", "check", "none.yaml"}, "none.yaml: no such file"},
      {{"queue", "check", "."}, ".: is a folder, not a file"},
      {{"queue", "run", "none.yaml", "--budget", "9"}, "'9' has no unit: 9s, 9m or 9h?"},
      {{"--ledger", "http://host/x", "ledger", "list"}, "give --ledger a folder"},
      {{"ledger", "show", "rk-zzzz"}, "rk-zzzz"},
      {{"ledger", "show", "rk-aaaa", "--queue", "--json"}, "excludes"},
      {{"ledger", "list", "--verdict", "WNO"}, "did you mean WON"},
      {{"ledger", "list", "--switch", "prefill.chnk"}, "did you mean 'prefill.chunk'?"},
      {{"ledger", "list", "--switch", "foo"}, "'foo'; docs/switches.md and 'reckon ledger list'"},
      {{"ledger", "consult"}, "Give a queue file"},
      {{"ledger", "consult", "--switch", "prefill.chunk=1,2"}, "--model"},
      {{"ledger", "consult", "queue.yaml", "--pairs", "1"}, "--pairs goes with --switch"},
      {{"ledger", "consult", "--switch", "prefill.chunk", "-m", model}, "KEY=BASE,ARM"},
      {{"ledger", "consult", "--switch", "prefill.chnk=1,2", "-m", model}, "'prefill.chunk'"},
  };
  for (const BadUsage& bad : cases) {
    const Finished finished = sandbox.run(bad.arguments);
    const std::string typed = join(bad.arguments, " ");
    EXPECT_EQ(finished.code, 2) << typed;
    EXPECT_EQ(finished.out, "") << typed;
    EXPECT_TRUE(finished.one_error_line()) << typed << "\n" << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(bad.message)) << typed;
    EXPECT_LT(finished.err.size(), 250U) << typed << "\n" << finished.err;
  }
}

TEST(Command, NamesABrokenModelAndExitsWith1) {
  Sandbox sandbox;
  const std::string bytes = file_text(tiny_model());
  const auto expect_failure = [&](const std::string& content) {
    sandbox.write("broken.gguf", content);
    for (const char* command : {"run", "plan", "bench"}) {
      std::vector<std::string> arguments = {command, "-m", "broken.gguf"};
      if (arguments[0] == "run") arguments.insert(arguments.end(), {"-p", "a"});
      const Finished finished = sandbox.run(arguments);
      EXPECT_EQ(finished.code, 1) << command << " of " << content.size() << " bytes";
      EXPECT_TRUE(finished.one_error_line()) << finished.err;
      EXPECT_THAT(finished.err, HasSubstr("broken.gguf"));
    }
  };
  expect_failure("");
  expect_failure(bytes.substr(0, 100));
  expect_failure(bytes.substr(0, bytes.size() / 2));
  expect_failure(bytes.substr(0, bytes.size() - 1));
  expect_failure("JUNK" + bytes.substr(4));
}

TEST(Command, ReplacesLineEndsInWhatAUserNamed) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"run", "-m", "two\nlines.gguf", "-p", "a"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
}

TEST(Command, ShowsControlCharactersInsteadOfSendingThem) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"run", "-m", "red\x1b[31m\xff.gguf", "-p", "a"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("red\\x1b[31m\\xff.gguf"));
}

TEST(Command, KeepsItsExitCodesWithoutStandardStreams) {
  Sandbox sandbox;
  EXPECT_EQ(sandbox.run_to(Stdout::kNoStreams, {"plan", "-m", "nope"}).code, 2);
  EXPECT_EQ(sandbox.run_to(Stdout::kNoStreams, {"plan", "-m", tiny_model()}).code, 1);
}

TEST(Command, ReadsNoEndlessPrompt) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"run", "-m", tiny_model(), "-f", "/dev/zero"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
}

TEST(Command, EndsQuietlyWhenNobodyReadsOn) {
  Sandbox sandbox;
  const std::vector<std::string> arguments = {"plan", "-m", tiny_model()};
  const Finished finished = sandbox.run_to(Stdout::kClosedPipe, arguments);
  EXPECT_EQ(finished.code, 128 + SIGPIPE);
  EXPECT_EQ(finished.err, "");

  signal(SIGPIPE, SIG_IGN);  // inherited by the child
  const Finished ignoring = sandbox.run_to(Stdout::kClosedPipe, arguments);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(ignoring.err, "");
}

TEST(Command, FailsWhereItsResultsCannotBeWritten) {
  Sandbox sandbox;
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"plan", "-m", tiny_model(), "--json"},
        std::vector<std::string>{"run", "-m", tiny_model(), "-p", "a", "-n", "3", "-q"},
        std::vector<std::string>{"--help"}}) {
    const Finished finished = sandbox.run_to(Stdout::kFullDisk, arguments);
    EXPECT_EQ(finished.code, 1) << arguments[0];
    EXPECT_TRUE(finished.one_error_line()) << finished.err;
  }
}

TEST(Command, WritesNoEscapeSequencesToFiles) {
  Sandbox sandbox;
  const Finished plan = sandbox.run({"plan", "-m", tiny_model()});
  const Finished bad = sandbox.run({"rnu"});
  EXPECT_EQ(plan.out.find('\033'), std::string::npos);
  EXPECT_EQ(bad.err.find('\033'), std::string::npos);
}

}  // namespace
}  // namespace reckon::cli
