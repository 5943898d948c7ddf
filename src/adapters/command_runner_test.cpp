#include "adapters/command_runner.h"

#include <gmock/gmock.h>

#include "adapters/command_testing.h"
#include "base/test_data.h"
#include "experiment/queue.h"
#include "experiment/rows.h"

namespace reckon::adapters {
namespace {

using experiment::Arm;
using experiment::CommandWorkload;
using experiment::Measurement;
using experiment::Prediction;
using experiment::Workload;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::SizeIs;

Workload workload_of(CommandWorkload command) {
  Workload workload;
  workload.phase = experiment::kCommandPhase;
  workload.metric = command.metric.name;
  workload.command = std::move(command);
  return workload;
}

// A shell command whose metric is what `read` says.
Workload shell(const std::string& text, const std::string& read = "wall") {
  CommandWorkload command;
  command.command = {text};
  command.shell = true;
  command.metric.read = read;
  command.metric = *experiment::make_command_metric(command.metric, "", "higher");
  return workload_of(std::move(command));
}

Arm arm(const std::string& name, const experiment::SwitchValues& switches = {}) {
  return {name, switches, std::nullopt};
}

Measurement measure(const Workload& workload, const Arm& which = arm("base")) {
  CommandRunner runner;
  Result<Measurement> measured = runner.measure(workload, which);
  EXPECT_TRUE(measured.ok()) << (measured.ok() ? "" : measured.error().message);
  return measured.ok() ? std::move(measured).value() : Measurement{};
}

Prediction predict(const Workload& workload, const Arm& which = arm("base")) {
  CommandRunner runner;
  Result<Prediction> plan = runner.predict(workload, which);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
  return plan.ok() ? std::move(plan).value() : Prediction{};
}

std::string words_of(const Workload& workload) {
  CommandRunner runner;
  const auto subject = runner.describe(workload, arm("base"));
  EXPECT_TRUE(subject.ok()) << (subject.ok() ? "" : subject.error().message);
  return subject.ok() ? subject->workload_words : "";
}

TEST(CommandRunner, MeasuresWhatAProgramPrints) {
  const Measurement measured = measure(shell("echo '{\"tok_s\": 12.5}'", "json:$.tok_s"));
  EXPECT_EQ(measured.broken, "");
  EXPECT_EQ(measured.metrics.at("tok_s"), 12.5);
  EXPECT_GT(measured.peak_bytes, 0u);
  EXPECT_GT(measure(shell("true")).metrics.at("wall_ms"), 0);
}

// The example's own metric, of what a llama-bench wrote.
TEST(CommandRunner, MeasuresLlamaBenchAsItsExampleSays) {
  const auto queue = experiment::load_queue(project_path("queues/command-llama-bench.yaml"));
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  const TestFolder folder;
  const std::string program =
      folder.script("llama-bench", "cat '" + golden_path("exchange/llama-bench.jsonl") + "'");
  ASSERT_EQ(queue->experiments.size(), 3u);
  for (const experiment::Experiment& experiment : queue->experiments) {
    Workload workload = experiment.workload;
    ASSERT_EQ(workload.command->command.front(), "llama-bench");
    workload.command->command.front() = program;
    workload.command->inputs.emplace();
    experiment::SwitchValues switches = experiment.set;
    if (!experiment.is_floor()) {
      switches[experiment.switch_pair.key] = experiment.switch_pair.arm;
    }
    const Measurement measured = measure(workload, arm("arm", switches));
    EXPECT_EQ(measured.broken, "") << experiment.id;
    EXPECT_EQ(measured.metrics.at("tg64"), 0.549639) << experiment.id;
  }
}

TEST(CommandRunner, FillsInSwitches) {
  const Workload workload = shell("echo {how}; echo '{{how}}' ${how} >&2", "regex:(.*)");
  EXPECT_EQ(measure(workload, arm("arm", {{"how", "42"}})).metrics.at("value"), 42);
  CommandWorkload list;
  list.command = {"printf", "%s", "{n}"};
  list.env["UNUSED"] = "{n}";
  list.metric = {"value", "regex:.*", "", true};
  EXPECT_EQ(measure(workload_of(list), arm("arm", {{"n", "7"}})).metrics.at("value"), 7);
}

TEST(CommandRunner, CallsAnArmBroken) {
  EXPECT_THAT(measure(shell("echo oops >&2; exit 3")).broken, "exit code 3; it said: oops");
  EXPECT_THAT(measure(shell("kill -ABRT $$")).broken, HasSubstr("SIGABRT"));
  EXPECT_THAT(measure(shell("echo 5", "json:$.x")).broken,
              AllOf(HasSubstr("cannot be read"), HasSubstr("no $.x")));
  for (const char* value : {"0", "-1", "nan", "inf"}) {
    EXPECT_THAT(measure(shell(std::string("echo ") + value, "regex:.*")).broken,
                HasSubstr("must be above zero and finite"))
        << value;
  }
  Workload hangs = shell("sleep 1000");
  hangs.command->timeout_seconds = 1;
  EXPECT_EQ(measure(hangs).broken, "no end within 1 s");
}

TEST(CommandRunner, CallsTooMuchOutputBrokenWhereTheMetricIsReadFromIt) {
  const std::string flood = "yes 123456789 | head -c 9000000";
  EXPECT_THAT(measure(shell(flood, "regex:^([0-9]+)$")).broken,
              AllOf(HasSubstr("9000000 bytes"), HasSubstr("no more than 8388608")));
  EXPECT_EQ(measure(shell(flood)).broken, "");
}

TEST(CommandRunner, BlamesTheQueueForWhatIsNotThere) {
  CommandRunner runner;
  const auto missing = runner.predict(shell("./no/such/program"), arm("base"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(missing.error().message, HasSubstr("'./no/such/program' is no program"));
  const auto unknown = runner.measure(shell("no_such_program_here 1"), arm("base"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(unknown.error().message, HasSubstr("no_such_program_here"));
  Workload input = shell("true");
  input.command->inputs = {"no-such-file"};
  EXPECT_THAT(runner.predict(input, arm("base")).error().message, HasSubstr("no-such-file"));
  const auto metric = runner.describe(shell("true", "json:$.a["), arm("base"));
  ASSERT_FALSE(metric.ok());
  EXPECT_THAT(metric.error().message, HasSubstr("metric: JSON path"));
}

TEST(CommandRunner, TellsArmsApartByCommandLineAndBinary) {
  const TestFolder folder;
  const std::string old_build = folder.script("old/bench", "echo 1");
  const std::string same_build = folder.script("same/bench", "echo 1");
  const std::string new_build = folder.script("new/bench", "echo 2");
  const Prediction base = predict(shell(old_build + " --fast"));
  EXPECT_EQ(base.weak_proof, "by command line and binary only");
  EXPECT_TRUE(base.complete);
  EXPECT_THAT(base.sources, Contains(Key(old_build)));
  const auto same = [&](const Workload& workload) {
    return experiment::same_at_reach(base, predict(workload), {});
  };
  EXPECT_TRUE(same(shell(same_build + " --fast")));
  EXPECT_FALSE(same(shell(new_build + " --fast")));
  EXPECT_FALSE(same(shell(same_build + " --slow")));
  Workload other_env = shell(old_build + " --fast");
  other_env.command->env["THREADS"] = "2";
  EXPECT_FALSE(same(other_env));
  EXPECT_TRUE(experiment::check_observed(base, measure(shell(old_build + " --fast")).observed,
                                         "the base arm")
                  .ok());
}

TEST(CommandRunner, CountsInputsByTheirContent) {
  const TestFolder folder;
  const std::string data = folder.write("data", "one");
  const Workload workload = shell("cat " + data + " > /dev/null");
  const Prediction before = predict(workload);
  EXPECT_THAT(before.sources, AllOf(SizeIs(2), Contains(Key(data))));
  (void)folder.write("data", "two");
  const Prediction after = predict(workload);
  EXPECT_NE(before.sources.at(data), after.sources.at(data));
  EXPECT_FALSE(experiment::same_at_reach(before, after, {}));
  Workload without = workload;
  without.command->inputs.emplace();
  EXPECT_THAT(predict(without).sources, Not(Contains(Key(data))));
}

TEST(CommandRunner, NoticesAProgramRebuiltWhileItIsMeasured) {
  const TestFolder folder;
  const Workload workload = shell(folder.script("bench", "echo 1"));
  CommandRunner runner;
  const Prediction plan = *runner.predict(workload, arm("base"));
  EXPECT_TRUE(experiment::check_observed(plan, runner.measure(workload, arm("base"))->observed,
                                         "the base arm")
                  .ok());
  const std::string file = folder.script("bench", "echo 22");
  std::filesystem::last_write_time(
      file, std::filesystem::last_write_time(file) + std::chrono::seconds(5));
  EXPECT_FALSE(experiment::check_observed(plan, runner.measure(workload, arm("base"))->observed,
                                          "the base arm")
                   .ok());
}

TEST(CommandRunner, BelievesWhatAProgramSaysItDispatched) {
  const TestFolder folder;
  Workload workload = shell("printf 'matmul tile {tile}\\n\\nnorm\\n' > " + (folder / "log"));
  workload.command->dispatch_file = folder / "log";
  const Prediction plan = predict(workload, arm("base", {{"tile", "8"}}));
  EXPECT_EQ(plan.weak_proof, "");
  EXPECT_FALSE(plan.complete);
  const Measurement base = measure(workload, arm("base", {{"tile", "8"}}));
  ASSERT_THAT(base.observed, SizeIs(2));
  EXPECT_EQ(experiment::row_text(base.observed[0]), "run matmul tile 8");
  EXPECT_EQ(experiment::row_text(base.observed[1]), "run norm");
  EXPECT_NE(base.observed, measure(workload, arm("arm", {{"tile", "16"}})).observed);
  Workload other = shell("printf 'norm\\nmatmul tile 8\\n' > " + (folder / "log"));
  other.command->dispatch_file = folder / "log";
  EXPECT_EQ(base.observed, measure(other).observed);
}

TEST(CommandRunner, NeedsADispatchFileThatIsNewAndStable) {
  const TestFolder folder;
  Workload silent = shell("true");
  silent.command->dispatch_file = folder.write("log", "of an earlier run");
  EXPECT_THAT(measure(silent).broken, HasSubstr("no dispatch file"));
  Workload empty = shell(": > " + (folder / "log"));
  empty.command->dispatch_file = folder / "log";
  EXPECT_THAT(measure(empty).broken, HasSubstr("is empty"));
  Workload unstable = shell("date +%N > " + (folder / "log"));
  unstable.command->dispatch_file = folder / "log";
  CommandRunner runner;
  ASSERT_TRUE(runner.measure(unstable, arm("base")).ok());
  const auto again = runner.measure(unstable, arm("base"));
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("not the same lines"));
  Workload of_folder = shell("true");
  of_folder.command->dispatch_file = folder / "";
  EXPECT_EQ(runner.measure(of_folder, arm("base")).error().kind, ErrorKind::kUsage);
}

TEST(CommandRunner, MatchesNoiseByTheBaseCommand) {
  const Workload workload = shell("true {n}");
  CommandRunner runner;
  const auto words = [&](const experiment::SwitchValues& switches) {
    return runner.describe(workload, arm("base", switches))->workload_words;
  };
  EXPECT_EQ(words({{"n", "1"}}), words_of(shell("true 1")));
  EXPECT_NE(words({{"n", "1"}}), words({{"n", "2"}}));
  EXPECT_NE(words_of(shell("true 1")), words_of(shell("true 1", "cpu")));
  Workload tagged = shell("true 1");
  tagged.command->tags["gpu"] = "h200";
  EXPECT_THAT(words_of(tagged), HasSubstr(" gpu=h200"));
  Workload patient = shell("true 1");
  patient.command->timeout_seconds = 5;
  EXPECT_EQ(words_of(shell("true 1")), words_of(patient));
}

}  // namespace
}  // namespace reckon::adapters
