// Queues of programs.
#include <gmock/gmock.h>

#include "base/test_data.h"
#include "experiment/queue.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kFull = R"(name: programs
runner: command
defaults:
  command: [./bench, --threads, "{threads}", "-m{model}"]
  env: {TILE: "{tile}"}
  metric: {read: "json:$.run[0].tok_s", unit: tok/s, better: higher}
  pairs: 8
experiments:
  - id: threads
    idea: Two threads
    switch: {key: threads, base: 1, arm: 2}
    set: {model: a, tile: 8}
    dispatch_file: out/dispatch.txt
    reach: {op: matmul}
    inputs: [weights.bin]
    tags: {gpu: h200}
    claim: "+2%"
    timeout: 2m
  - id: floor
    kind: aa
    rounds: 20
    command: "./bench {threads} | tee '{{x}}' ${HOME}"
    env: {}
    metric: wall
    set: {threads: 1}
)";

Result<Queue> parse(const std::string& text) {
  return parse_queue(text, "q.yaml");
}

// The full queue with one text in it replaced.
std::string error_with(const std::string& old_text, const std::string& new_text) {
  std::string text = kFull;
  const size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  const Result<Queue> queue = parse(text.replace(at, old_text.size(), new_text));
  if (queue.ok()) return "";
  EXPECT_EQ(queue.error().kind, ErrorKind::kUsage);
  return queue.error().message;
}

TEST(CommandQueue, ReadsEveryKey) {
  const Result<Queue> queue = parse(kFull);
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  EXPECT_EQ(queue->runner, "command");
  ASSERT_THAT(queue->experiments, SizeIs(2));
  const Experiment& threads = queue->experiments[0];
  const CommandWorkload& command = *threads.workload.command;
  EXPECT_THAT(command.command, ElementsAre("./bench", "--threads", "{threads}", "-m{model}"));
  EXPECT_FALSE(command.shell);
  EXPECT_EQ(command.env.at("TILE"), "{tile}");
  EXPECT_EQ(command.metric.name, "tok_s");
  EXPECT_EQ(command.metric.unit, "tok/s");
  EXPECT_TRUE(command.metric.higher_is_better);
  EXPECT_EQ(command.dispatch_file, "out/dispatch.txt");
  EXPECT_THAT(*command.inputs, ElementsAre("weights.bin"));
  EXPECT_EQ(command.tags.at("gpu"), "h200");
  EXPECT_EQ(command.timeout_seconds, 120);
  EXPECT_EQ(threads.workload.metric, "tok_s");
  EXPECT_EQ(threads.workload.phase, "run");
  EXPECT_EQ(threads.reach.op, "matmul");
  EXPECT_EQ(threads.pairs, 8);
  const CommandWorkload& floor = *queue->experiments[1].workload.command;
  EXPECT_TRUE(floor.shell);
  EXPECT_EQ(floor.metric.name, "wall_ms");
  EXPECT_EQ(floor.metric.unit, "ms");
  EXPECT_FALSE(floor.metric.higher_is_better);
  EXPECT_FALSE(floor.inputs.has_value());
  EXPECT_THAT(filled(floor, {{"threads", "1"}}).command,
              ElementsAre("./bench 1 | tee '{x}' ${HOME}"));
}

TEST(CommandQueue, WritesAQueueThatReadsBackTheSame) {
  const Queue queue = *parse(kFull);
  for (const Experiment& experiment : queue.experiments) {
    const std::string text = standalone_queue(experiment);
    const Result<Queue> again = parse(text);
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
    EXPECT_EQ(again->runner, "command");
    EXPECT_EQ(standalone_queue(again->experiments[0]), text);
    EXPECT_EQ(encode_command(*again->experiments[0].workload.command),
              encode_command(*experiment.workload.command));
  }
}

TEST(CommandQueue, TakesWholeCommandsAsArms) {
  const Result<Queue> queue = parse(
      "name: n\nrunner: command\nexperiments:\n  - id: a\n    idea: i\n"
      "    switch: {key: command, base: \"./old {x}\", arm: ./new}\n");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  const CommandWorkload& command = *queue->experiments[0].workload.command;
  EXPECT_TRUE(command.shell);
  EXPECT_EQ(command.metric.read, "wall");
  EXPECT_THAT(filled(command, {{"command", "./old {x}"}}).command, ElementsAre("./old {x}"));
}

TEST(CommandQueue, BlamesTheLine) {
  EXPECT_THAT(error_with("runner: command", "runner: shell"),
              HasSubstr("q.yaml:2: 'shell' is no runner: expected reckon or command"));
  EXPECT_THAT(error_with("runner: command\n", ""), HasSubstr("q.yaml:3: defaults: unknown key"));
  EXPECT_THAT(error_with("\"{threads}\", ", ""),
              HasSubstr("q.yaml:11: experiment 'threads': 'threads' changes nothing"));
  EXPECT_THAT(error_with("set: {model: a, tile: 8}", "set: {model: a}"),
              HasSubstr("q.yaml:4: experiment 'threads': nothing sets {tile}"));
  EXPECT_THAT(error_with("\"{threads}\"", "\"{thread}\""), HasSubstr("did you mean {threads}?"));
  EXPECT_THAT(error_with(", better: higher", ""),
              HasSubstr("q.yaml:6: experiment 'threads': metric: 'better' is missing"));
  EXPECT_THAT(error_with("better: higher", "better: more"), HasSubstr("'more' is not higher"));
  EXPECT_THAT(error_with("json:$.run[0].tok_s", "jq:.tok_s"), HasSubstr("expected wall, cpu"));
  EXPECT_THAT(error_with("base: 1, ", ""), HasSubstr("'base' is missing"));
  EXPECT_THAT(error_with("    dispatch_file: out/dispatch.txt\n", ""),
              HasSubstr("q.yaml:13: experiment 'threads': 'reach' needs a 'dispatch_file'"));
  EXPECT_THAT(error_with("gpu: h200", "gpu: h 200"), HasSubstr("tag 'gpu'"));
  EXPECT_THAT(error_with("claim: ", "workload: "), HasSubstr("unknown key 'workload'"));
  EXPECT_THAT(error_with("claim: ", "memory_limit: "), HasSubstr("unknown key 'memory_limit'"));
  EXPECT_THAT(error_with("[./bench, --threads", "[[./bench], --threads"),
              HasSubstr("'command' must be a list of words"));
  EXPECT_THAT(error_with("key: threads", "key: 2x"), HasSubstr("'2x' cannot be a {KEY}"));
  EXPECT_THAT(error_with("wall\n", "{read: wall, better: higher}\n"),
              HasSubstr("a time in ms, and lower is better"));
}

TEST(CommandQueue, ReadsTheShippedOnes) {
  for (const char* name : {"plain", "python", "llama-bench"}) {
    const Result<Queue> queue =
        load_queue(project_path(fmt::format("queues/command-{}.yaml", name)));
    ASSERT_TRUE(queue.ok()) << queue.error().message;
    EXPECT_EQ(queue->runner, "command");
    EXPECT_TRUE(queue->experiments[0].is_floor());
  }
}

TEST(CommandQueue, KeepsTheNameOfAMetricAWord) {
  const auto name = [](const std::string& read) {
    return make_command_metric({"", read, "", false}, "lower", "")->name;
  };
  EXPECT_EQ(name("json:$.a.p99"), "p99");
  EXPECT_EQ(name("json:$.a[0]"), "a");
  EXPECT_EQ(name("json:$[\"a b\"]"), "value");
  EXPECT_EQ(name("json:$.a]"), "value");  // makes no sense, which the reader of the path says
  EXPECT_EQ(name("regex:(.*)"), "value");
  EXPECT_FALSE(make_command_metric({"two words", "json:$.a", "", false}, "lower", "").ok());
}

}  // namespace
}  // namespace reckon::experiment
