#include "adapters/command_process.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/command_testing.h"

namespace reckon::adapters {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

ProcessJob shell(const std::string& script) {
  ProcessJob job;
  job.argv = {"/bin/sh", "-c", script};
  return job;
}

ProcessEnd run(const ProcessJob& job) {
  Result<ProcessEnd> end = run_process(job);
  EXPECT_TRUE(end.ok()) << (end.ok() ? "" : end.error().message);
  if (end.ok()) return std::move(end).value();
  return {.output = CapturedOutput(0), .errors = CapturedOutput(0)};
}

TEST(CommandProcess, KeepsBothOutputs) {
  ProcessJob job = shell("echo out; echo err >&2; echo $GREETING; cat");
  job.env["GREETING"] = "hello world";
  const ProcessEnd end = run(job);
  EXPECT_EQ(end.failure(job), "");
  EXPECT_EQ(end.output.text(), "out\nhello world\n");  // and nothing on standard input
  EXPECT_EQ(end.errors.text(), "err\n");
  EXPECT_GT(end.wall_ms, 0);
  EXPECT_GT(end.peak_bytes, 0u);
}

TEST(CommandProcess, FindsProgramsOnThePath) {
  ProcessJob job;
  job.argv = {"printf", "%s|%s", "a b", "c"};
  EXPECT_EQ(run(job).output.text(), "a b|c");
  job.argv = {"no-such-program-here"};
  const Result<ProcessEnd> end = run_process(job);
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(end.error().message, HasSubstr("'no-such-program-here' cannot be started: No such"));
}

TEST(CommandProcess, TellsExitCodesFromSignals) {
  const ProcessJob bad = shell("echo one; echo why >&2; exit 3");
  EXPECT_EQ(run(bad).failure(bad), "exit code 3; it said: why");
  const ProcessJob crash = shell("echo last words; kill -SEGV $$");
  EXPECT_EQ(run(crash).failure(crash), "signal 11 (SIGSEGV); it said: last words");
  const ProcessJob quiet = shell("exit 1");
  EXPECT_EQ(run(quiet).failure(quiet), "exit code 1");
}

TEST(CommandProcess, KeepsTheBeginningAndTheEndOfMuchOutput) {
  ProcessJob job = shell("echo first; seq 100000; echo last");
  job.maximum_output_bytes = 2000;
  const ProcessEnd end = run(job);
  EXPECT_EQ(end.failure(job), "");
  EXPECT_TRUE(end.output.dropped());
  EXPECT_EQ(end.output.bytes(), 588895u + 11u);
  EXPECT_THAT(end.output.text(), StartsWith("first\n1\n2\n"));
  EXPECT_TRUE(end.output.text().ends_with("100000\nlast\n"));
  EXPECT_EQ(end.output.text().size(), 2000u);
  EXPECT_FALSE(end.errors.dropped());
}

TEST(CommandProcess, KillsWhatHangsWithItsGrandchildren) {
  const TestFolder folder;
  ProcessJob job = shell("sh -c 'sleep 1000 & echo $! > " + (folder / "pid") + "; wait'");
  job.timeout = milliseconds(1500);
  const ProcessEnd end = run(job);
  EXPECT_EQ(end.kind, ProcessEnd::Kind::kTimedOut);
  EXPECT_EQ(end.failure(job), "no end within 1.5 s");
  EXPECT_TRUE(is_gone(folder.wait_for_pid("pid")));
}

TEST(CommandProcess, LeavesNothingBehind) {
  const TestFolder folder;
  // One grandchild in the group, which holds the output open, and a daemon that left it.
  const ProcessJob job = shell("sleep 1000 & echo $! > " + (folder / "child") +
                               "; setsid sh -c 'sleep 1000 & echo $! > " + (folder / "daemon") +
                               "' & while [ ! -s " + (folder / "daemon") + " ]; do :; done");
  EXPECT_EQ(run(job).failure(job), "");
  EXPECT_TRUE(is_gone(folder.wait_for_pid("child")));
  EXPECT_TRUE(is_gone(folder.wait_for_pid("daemon")));
}

TEST(CommandProcess, DiesWithWhoeverStartedIt) {
  const TestFolder folder;
  const pid_t caller = ::fork();
  if (caller == 0) {
    (void)run_process(shell("sh -c 'sleep 1000 & echo $! > " + (folder / "pid") + "; wait'"));
    ::_exit(0);
  }
  const pid_t grandchild = folder.wait_for_pid("pid");
  ASSERT_GT(grandchild, 0);
  ::kill(caller, SIGKILL);
  ::waitpid(caller, nullptr, 0);
  EXPECT_TRUE(is_gone(grandchild));
}

TEST(CommandProcess, StartsWithDefaultSignals) {
  ::signal(SIGTERM, SIG_IGN);
  const ProcessJob job = shell("kill -TERM $$; echo survived");
  EXPECT_THAT(run(job).failure(job), HasSubstr("SIGTERM"));
  ::signal(SIGTERM, SIG_DFL);
}

}  // namespace
}  // namespace reckon::adapters
