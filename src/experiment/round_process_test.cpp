#include "experiment/round_process.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "experiment/child_process.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

RoundProcess::Options worker(milliseconds timeout = milliseconds(60000)) {
  RoundProcess::Options options;
  options.command = {program_path(), kFakeWorker};
  options.timeout = timeout;
  return options;
}

RoundProcess::Options shell(const std::string& script) {
  RoundProcess::Options options;
  options.command = {"sh", "-c", script};
  return options;
}

RoundJob job_with(const std::string& arm) {
  RoundJob job;
  job.workload = {"tiny", "decode", "hello", 0, 4, 0, "decode_tok_per_s"};
  job.arms = {{"base", {{"arm", "variant=v1"}}, std::nullopt},
              {"arm", {{"arm", arm}}, std::nullopt}};
  return job;
}

// What measuring arm 1 says about its end.
std::string broken_reason(const std::string& arm, const RoundProcess::Options& options) {
  const auto process = RoundProcess::start(job_with(arm), options);
  EXPECT_TRUE(process.ok()) << process.error().message;
  if (!process.ok()) return "";
  const RoundProcess::Answer answer = (*process)->measure(1);
  const auto* broken = std::get_if<Broken>(&answer);
  return broken == nullptr ? "an answer" : broken->reason;
}

TEST(RoundProcess, MeasuresAndEnds) {
  const auto process = RoundProcess::start(job_with("variant=v2,speed=2"), worker());
  ASSERT_TRUE(process.ok()) << process.error().message;
  for (int i = 0; i < 3; ++i) {
    const RoundProcess::Answer answer = (*process)->measure(i % 2);
    ASSERT_TRUE(std::holds_alternative<RoundAnswer>(answer));
    const auto& measured = std::get<RoundAnswer>(answer);
    EXPECT_EQ(measured.measurement.metrics.at("decode_tok_per_s"), i % 2 == 1 ? 200 : 100);
  }
  EXPECT_TRUE((*process)->finish().ok());
}

TEST(RoundProcess, CleanErrorsComeBack) {
  const auto process = RoundProcess::start(job_with("fault=refuse@1"), worker());
  ASSERT_TRUE(process.ok());
  const RoundProcess::Answer answer = (*process)->measure(1);
  ASSERT_TRUE(std::holds_alternative<RoundAnswer>(answer));
  EXPECT_EQ(std::get<RoundAnswer>(answer).error->kind, ErrorKind::kRefused);
}

TEST(RoundProcess, BreaksAreNamed) {
  EXPECT_THAT(broken_reason("fault=crash@1", worker()),
              AllOf(HasSubstr("signal 11 (SIGSEGV)"), HasSubstr("it said: about to crash")));
  EXPECT_EQ(broken_reason("fault=exit@1", worker()), "exit code 3");
  EXPECT_EQ(broken_reason("fault=hang@1", worker(milliseconds(300))), "no answer within 0.3 s");
  EXPECT_THAT(broken_reason("fault=garbage@1", worker()), HasSubstr("not JSON"));
  const std::string ready = "read job; echo '{\"ready\":2}'; read request; ";
  EXPECT_EQ(broken_reason("", shell(ready + "exit 0")), "exit code 0");
  EXPECT_THAT(broken_reason("", shell(ready + "echo '{}'")), HasSubstr("'sequence' is missing"));
  EXPECT_THAT(broken_reason("", shell(ready + "exec >&-; sleep 100")),
              HasSubstr("its output ended, but it did not"));
}

TEST(RoundProcess, AnswerToAnotherRequestIsGarbage) {
  RoundAnswer answer;
  answer.sequence = 41;
  const std::string script = "read job; echo '{\"ready\":2}'; read request; echo '" +
                             encode_answer(answer) + "'; sleep 100";
  EXPECT_THAT(broken_reason("", shell(script)), HasSubstr("an answer to another request"));
}

TEST(RoundProcess, EndlessLinesAreCut) {
  RoundProcess::Options options =
      shell("read job; echo '{\"ready\":2}'; read request; exec tr '\\0' x < /dev/zero");
  options.maximum_line_bytes = 100000;
  EXPECT_EQ(broken_reason("", options), "a line of over 100000 bytes");
}

TEST(RoundProcess, FailuresToStartAreNoArmsFault) {
  const auto start_error = [](const RoundProcess::Options& options) {
    const auto process = RoundProcess::start(job_with(""), options);
    EXPECT_FALSE(process.ok());
    return process.ok() ? "" : process.error().message;
  };
  RoundProcess::Options missing;
  missing.command = {"/nonexistent/worker"};
  EXPECT_THAT(start_error(missing), HasSubstr("/nonexistent/worker cannot be started: No such"));
  EXPECT_THAT(start_error(shell("echo no model >&2; exit 4")),
              AllOf(HasSubstr("exit code 4"), HasSubstr("it said: no model")));
  EXPECT_THAT(start_error(shell("echo hello; sleep 100")), HasSubstr("does not speak the round"));
  RoundProcess::Options deaf = shell("sleep 100");
  deaf.timeout = milliseconds(200);
  EXPECT_THAT(start_error(deaf), HasSubstr("no answer within 0.2 s"));
}

TEST(RoundProcess, JobLargerThanAnyPipe) {
  RoundJob job = job_with("variant=v2");
  job.workload.prompt.assign(5'000'000, 'x');
  const auto process = RoundProcess::start(job, worker());
  ASSERT_TRUE(process.ok()) << process.error().message;
  EXPECT_TRUE((*process)->finish().ok());
}

TEST(RoundProcess, ChattyStandardErrorDoesNotBlock) {
  const auto process = RoundProcess::start(
      job_with(""), shell("read job; head -c 1000000 /dev/zero | tr '\\0' e >&2; "
                          "echo '{\"ready\":2}'; read request; exit 5"));
  ASSERT_TRUE(process.ok()) << process.error().message;
  const RoundProcess::Answer answer = (*process)->measure(0);
  ASSERT_TRUE(std::holds_alternative<Broken>(answer));
  EXPECT_LT(std::get<Broken>(answer).reason.size(), 4000u) << "only its tail is kept";
}

TEST(RoundProcess, BadEndIsReported) {
  const auto process =
      RoundProcess::start(job_with(""), shell("read job; echo '{\"ready\":2}'; cat > /dev/null; "
                                              "exit 9"));
  ASSERT_TRUE(process.ok());
  EXPECT_THAT((*process)->finish().error().message, HasSubstr("ended badly: exit code 9"));
}

// A zombie that nobody reaps has ended, too.
bool has_ended(pid_t pid) {
  const std::string stat = read_text(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || stat.compare(name_end + 1, 2, " Z") == 0;
}

void expect_end(pid_t pid) {
  for (int i = 0; i < 6000 && !has_ended(pid); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(has_ended(pid)) << pid;
}

TEST(RoundProcess, KillsWhatTheChildStarted) {
  TempFolder folder;
  const std::string pid_file = folder / "pid";
  pid_t grandchild = 0;
  {
    const auto process =
        RoundProcess::start(job_with(""), shell("sleep 1000 & echo $! > " + pid_file +
                                                "; read job; echo '{\"ready\":2}'; sleep 1000"));
    ASSERT_TRUE(process.ok()) << process.error().message;
    grandchild = std::stoi(read_text(pid_file));
    EXPECT_FALSE(has_ended(grandchild));
  }
  expect_end(grandchild);
}

TEST(RoundProcess, ChildDiesWithItsParent) {
  TempFolder folder;
  const std::string pid_file = folder / "pid";
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    ChildProcess child;
    if (!child.start({"sh", "-c", "echo $$ > " + pid_file + "; exec sleep 1000"}).ok()) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  std::string text;
  while (text.find('\n') == std::string::npos) {
    std::this_thread::sleep_for(milliseconds(5));
    text = read_text(pid_file);
  }
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  expect_end(std::stoi(text));
}

}  // namespace
}  // namespace reckon::experiment
