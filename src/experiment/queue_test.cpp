#include "experiment/queue.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kFull = R"(name: five-ideas
defaults: {rounds: 3, pairs: 8, model: tiny, metric: prefill_tok_per_s}
experiments:
  - id: band-order
    idea: "Bands of 8: tiles & \"quotes\""
    switch: {key: prefill.tile_order, base: row, arm: band8}
    set: {numerics: auto, cpu.threads: 2}
    workload:
      phase: prefill
      prompt: "Zwölf Boxkämpfer\njagen"
      prompt_tokens: 512
      chunk: 256
      context: 1024
    reach: {op: matmul}
    memory_limit: plan+32MiB
    tokens: identical
    claim: "+2.5%"
    timeout: 2m
  - id: floor
    kind: aa
    model: other
    metric: decode_tok_per_s
    rounds: 20
    warmup_pairs: 0
    workload: {phase: decode, prompt: hello, generate: 16}
)";

std::string error_of(const std::string& text) {
  const Result<Queue> queue = parse_queue(text, "q.yaml");
  if (queue.ok()) return "";
  EXPECT_EQ(queue.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(queue.error().message.find('\n'), std::string::npos) << queue.error().message;
  return queue.error().message;
}

// The full queue with one text in it replaced.
std::string error_with(const std::string& old_text, const std::string& new_text) {
  std::string text = kFull;
  const size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return error_of(text.replace(at, old_text.size(), new_text));
}

TEST(Queue, ReadsEveryKey) {
  const Result<Queue> queue = parse_queue(kFull, "q.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  EXPECT_EQ(queue->name, "five-ideas");
  ASSERT_THAT(queue->experiments, SizeIs(2));
  const Experiment& band = queue->experiments[0];
  EXPECT_EQ(band.line, 4);
  EXPECT_FALSE(band.is_floor());
  EXPECT_EQ(band.idea, "Bands of 8: tiles & \"quotes\"");
  EXPECT_EQ(band.switch_pair.key, "prefill.tile_order");
  EXPECT_EQ(band.switch_pair.base, "row");
  EXPECT_EQ(band.switch_pair.arm, "band8");
  EXPECT_EQ(band.set,
            (SwitchValues{{"cpu.threads", "2"}, {"numerics", "auto"}, {"prefill.chunk", "256"}}));
  EXPECT_EQ(band.workload.model, "tiny");
  EXPECT_EQ(band.workload.metric, "prefill_tok_per_s");
  EXPECT_EQ(band.workload.prompt, "Zwölf Boxkämpfer\njagen");
  EXPECT_EQ(band.workload.prompt_tokens, 512);
  EXPECT_EQ(band.workload.context, 1024);
  EXPECT_EQ(band.reach.op, "matmul");
  EXPECT_EQ(band.reach.phase, "prefill");
  EXPECT_EQ(band.memory_limit->kind, MemoryLimit::Kind::kAbovePlan);
  EXPECT_EQ(band.memory_limit->bytes, 32u << 20);
  EXPECT_NEAR(*band.claim, 0.025, 1e-15);
  EXPECT_EQ(band.rounds, 3);
  EXPECT_EQ(band.pairs, 8);
  EXPECT_EQ(band.warmup_pairs, 1);
  EXPECT_EQ(band.timeout_seconds, 120);
  const Experiment& floor = queue->experiments[1];
  EXPECT_TRUE(floor.is_floor());
  EXPECT_EQ(floor.workload.model, "other");
  EXPECT_EQ(floor.rounds, 20);
  EXPECT_EQ(floor.warmup_pairs, 0);
  EXPECT_EQ(floor.workload.generate_tokens, 16);
}

TEST(Queue, ErrorsNameFileLineAndNearestKey) {
  EXPECT_EQ(error_with("    claim:", "    claims:"),
            "q.yaml:17: experiment 'band-order': unknown key 'claims'; did you mean 'claim'?");
  EXPECT_EQ(
      error_with("prompt_tokens", "promt_tokens"),
      "q.yaml:11: experiment 'band-order': workload: unknown key 'promt_tokens'; did you mean "
      "'prompt_tokens'?");
  EXPECT_THAT(error_with("rounds: 3", "runds: 3"),
              StartsWith("q.yaml:2: defaults: unknown key 'runds'; did you mean 'rounds'?"));
  EXPECT_THAT(error_with("defaults:", "zebra:"), HasSubstr("known are name, runner, defaults"));
  EXPECT_THAT(error_with("name: five-ideas\n", ""), HasSubstr("'name' is missing"));
  EXPECT_THAT(error_with("id: floor\n    kind: aa", "id: band-order\n    kind: aa"),
              StartsWith("q.yaml:19: two experiments 'band-order'"));
  EXPECT_THAT(error_with("    reach: {op: matmul}", "    reach: {op: matmul}\n    reach: {}"),
              StartsWith("q.yaml:15: 'reach' stands here twice"));
}

TEST(Queue, ErrorsOfValues) {
  EXPECT_THAT(
      error_with("rounds: 20", "rounds: 1001"),
      HasSubstr("q.yaml:23: experiment 'floor': 'rounds' must be a whole number from 1 to"));
  EXPECT_THAT(error_with("rounds: 20", "rounds: 0"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(error_with("rounds: 20", "rounds: 2.5"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(error_with("rounds: 20", "rounds: [2]"), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(error_with("prompt_tokens: 512", "prompt_tokens: 99999999999999999999"),
              HasSubstr("'prompt_tokens' must be"));
  EXPECT_THAT(error_with("phase: prefill", "phase: verify"), HasSubstr("is no phase"));
  EXPECT_THAT(error_with("kind: aa", "kind: abc"), HasSubstr("'abc' is no kind"));
  EXPECT_THAT(error_with("claim: \"+2.5%\"", "claim: 0.025"), HasSubstr("is not a claim"));
  EXPECT_THAT(error_with("timeout: 2m", "timeout: 2d"), HasSubstr("is not a time"));
  EXPECT_THAT(error_with("timeout: 2m", "timeout: 25h"), HasSubstr("from 1s to 24h"));
  EXPECT_THAT(error_with("plan+32MiB", "plan-32MiB"), HasSubstr("is not a memory limit"));
  EXPECT_THAT(error_with("idea: \"Bands of 8: tiles & \\\"quotes\\\"\"\n", "tokens: identical\n"),
              HasSubstr("twice"));
  EXPECT_THAT(error_with("    idea: \"Bands of 8: tiles & \\\"quotes\\\"\"\n", ""),
              HasSubstr("'idea' is missing"));
  EXPECT_THAT(error_with("arm: band8", "arm: row"), HasSubstr("base and arm are the same"));
  EXPECT_THAT(error_with("cpu.threads: 2", "prefill.tile_order: row"),
              HasSubstr("is the switch between the arms"));
  EXPECT_THAT(error_with("cpu.threads: 2", "prefill.chunk: 64"), HasSubstr("set elsewhere"));
  EXPECT_THAT(error_with(", generate: 16", ""), HasSubstr("'generate' is missing"));
  EXPECT_THAT(error_with("prompt: hello", "prompt_file: missing.txt"),
              HasSubstr("'missing.txt' is neither beside the queue nor in a folder above it"));
  EXPECT_THAT(error_with("prompt: hello", "prompt: hello, prompt_file: b"),
              HasSubstr("expected one of"));
  EXPECT_THAT(error_with("id: floor", "id: \"two\\nlines\""), HasSubstr("one line"));
}

TEST(Queue, SeveralArmsAreAsManyExperiments) {
  for (const char* arms : {"arm: [band8, band16]", "arms: [band8, band16]"}) {
    std::string text = kFull;
    text.replace(text.find("arm: band8"), 10, arms);
    const Result<Queue> queue = parse_queue(text, "q.yaml");
    ASSERT_TRUE(queue.ok()) << queue.error().message;
    std::vector<std::string> ids;
    for (const Experiment& experiment : queue->experiments) {
      if (experiment.group.empty()) continue;
      ids.push_back(experiment.id);
      EXPECT_EQ(experiment.id, experiment.group + ":" + experiment.switch_pair.arm);
      EXPECT_EQ(experiment.switch_pair.base, "row");
      const Result<Queue> alone = parse_queue(standalone_queue(experiment), "alone.yaml");
      ASSERT_TRUE(alone.ok()) << alone.error().message;
      EXPECT_EQ(alone->experiments[0].switch_pair.arm, experiment.switch_pair.arm);
      EXPECT_EQ(alone->experiments[0].group, "");
    }
    EXPECT_THAT(ids,
                testing::ElementsAre(testing::EndsWith(":band8"), testing::EndsWith(":band16")));
  }
  EXPECT_THAT(error_with("arm: band8", "arms: [band8, band8]"),
              HasSubstr("'band8' is listed twice"));
  EXPECT_THAT(error_with("arm: band8", "arms: [band8, row]"),
              HasSubstr("base and arm are the same"));
  EXPECT_THAT(error_with("arm: band8", "arms: []"), HasSubstr("at least one value"));
  EXPECT_THAT(error_with("arm: band8", "arm: band8, arms: [band8]"),
              HasSubstr("expected one of 'arm' and 'arms'"));
}

TEST(Queue, TokenPolicies) {
  EXPECT_THAT(error_with("tokens: identical", "tokens: perhaps"),
              HasSubstr("'perhaps' is no policy: expected identical or may-diverge"));
}

TEST(Queue, SyntheticModelsAreNamedByAMap) {
  std::string text = kFull;
  const auto replace = [&](const std::string& old_text, const std::string& new_text) {
    text.replace(text.find(old_text), old_text.size(), new_text);
  };
  replace("model: tiny,", "model: {synth: big, layers: 4, seed: 2, router_skew: 1.0},");
  replace("      prompt: \"Zwölf Boxkämpfer\\njagen\"\n", "");
  replace("model: other", "model: synth:small");
  replace("prompt: hello", "prompt_tokens: 9");
  const Result<Queue> queue = parse_queue(text, "q.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  EXPECT_EQ(queue->experiments[0].workload.model, "synth:big,layers=4,seed=2,router_skew=1");
  EXPECT_EQ(queue->experiments[1].workload.model, "synth:small");
  EXPECT_EQ(queue->experiments[1].workload.prompt, "");
  EXPECT_EQ(queue->experiments[1].workload.prompt_tokens, 9);
  for (const Experiment& experiment : queue->experiments) {
    const std::string alone = standalone_queue(experiment);
    const Result<Queue> again = parse_queue(alone, "again.yaml");
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << alone;
    EXPECT_EQ(standalone_queue(again->experiments.front()), alone);
  }
  EXPECT_THAT(error_with("model: other", "model: {synth: big, layer: 4}"),
              HasSubstr("model: unknown key 'layer'; did you mean 'layers'?"));
  EXPECT_THAT(error_with("model: other", "model: {layers: 4}"), HasSubstr("'synth' is missing"));
  EXPECT_THAT(error_with("model: other", "model: {synth: big, layers: 0}"),
              HasSubstr("'layers' must be a whole number from 1"));
  EXPECT_THAT(error_with("model: other", "model: {synth: big, router_skew: even}"),
              HasSubstr("'router_skew': 'even' is not a number of 0 or more"));
  EXPECT_THAT(error_with("prompt: hello, ", ""), HasSubstr("or 'prompt_tokens' alone"));
  EXPECT_THAT(error_with("prompt: hello", "prompt_tokens: 0"),
              HasSubstr("'prompt_tokens' must be a whole number from 1"));
}

TEST(Queue, AnotherModelStandsInForTheDefault) {
  const auto read = [](const std::string& text, const QueueOverrides& instead) {
    return parse_queue(text, "q.yaml", instead);
  };
  const Result<Queue> queue = read(kFull, {.model = "synth:big,layers=2", .quant = "q4"});
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  EXPECT_EQ(queue->experiments[0].workload.model, "synth:big,layers=2");
  EXPECT_EQ(queue->experiments[0].workload.quant, "q4");
  EXPECT_EQ(queue->experiments[1].workload.model, "other") << "it names its own";
  EXPECT_EQ(queue->experiments[1].workload.quant, "q4");
  const Result<Queue> same = read(kFull, {});
  EXPECT_EQ(same->experiments[0].workload.model, "tiny");

  const std::string own =
      "name: q\nexperiments:\n  - id: floor\n    kind: aa\n    model: other\n"
      "    metric: prefill_ms\n    workload: {phase: prefill, prompt_tokens: 4}\n";
  EXPECT_EQ(read(own, {.model = "big", .quant = ""}).error().message,
            "q.yaml: 'big' has nothing to change: no experiment takes its model from 'defaults'");
  const Result<Queue> packed = read(own, {.model = "", .quant = "q8"});
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  EXPECT_EQ(packed->experiments[0].workload.quant, "q8");
  EXPECT_EQ(packed->experiments[0].workload.model, "other");
  const Result<Queue> programs =
      read("name: q\nrunner: command\nexperiments:\n  - {id: a}\n", {.model = "big", .quant = ""});
  EXPECT_EQ(programs.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(programs.error().message, HasSubstr("has nothing to change"));
}

TEST(Queue, BadYamlNamesItsLine) {
  EXPECT_THAT(error_of("name: [1, 2\nexperiments: }"), StartsWith("q.yaml:2:"));
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("just a text"), HasSubstr("expected a map"));
  EXPECT_THAT(error_of("name: a\n---\nname: b\n"), HasSubstr("a second document"));
  EXPECT_THAT(error_of("? {a: 1}\n: 2\n"), HasSubstr("a key must be a word"));
  EXPECT_THAT(error_of("name: a\nexperiments: []\n"), StartsWith("q.yaml:2:"));
  EXPECT_THAT(error_of("name: a\nexperiments: [x]\n"), HasSubstr("expected a map"));
  EXPECT_THAT(error_of("name: a\nexperiments: [{id: x, workload: 3, idea: y, model: m, metric: n, "
                       "switch: {key: k, arm: 1}}]\n"),
              HasSubstr("workload: expected a map"));
  EXPECT_THAT(error_of("name: \x04hidden\n"), HasSubstr("control character"));
  EXPECT_THAT(error_of("name: \xff\n"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of(std::string(5000, '[')), testing::Not(""));
  EXPECT_THAT(error_of("name: &a [*a]\n"), testing::Not(""));
}

TEST(Queue, AliasesThatMultiplyAreStopped) {
  std::string bomb = "name: x\na0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{}: &a{} [*a{}, *a{}, *a{}, *a{}, *a{}, *a{}]\n", i, i, i - 1, i - 1,
                        i - 1, i - 1, i - 1, i - 1);
  }
  EXPECT_THAT(error_of(bomb), HasSubstr("too many values"));
}

TEST(Queue, CutOrDamagedTextNeverCrashes) {
  const std::string text = kFull;
  for (size_t length = 0; length < text.size(); ++length) {
    (void)parse_queue(text.substr(0, length), "q.yaml");
  }
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'{', ':', '\n', '"', '&', '-', '\t', '\0'}) {
      std::string damaged = text;
      damaged[at] = c;
      (void)parse_queue(damaged, "q.yaml");
    }
  }
}

TEST(Queue, PromptFilesAreFoundBesideAndAbove) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "queues/deep");
  std::filesystem::create_directories(folder / "prompts");
  write_text(folder / "prompts/prose.txt", "a long story\n");
  write_text(folder / "queues/deep/near.txt", "near\n");
  const auto prompt_with = [&](const std::string& how) {
    const std::string path = folder / "queues/deep/q.yaml";
    write_text(path,
               "name: n\nexperiments:\n- {id: a, kind: aa, model: m, metric: x, workload: "
               "{phase: prefill, " +
                   how + "}}\n");
    const Result<Queue> queue = load_queue(path);
    return queue.ok() ? queue->experiments[0].workload.prompt : queue.error().message;
  };
  EXPECT_EQ(prompt_with("prompt: prompts/prose.txt"), "a long story\n");
  EXPECT_EQ(prompt_with("prompt_file: near.txt"), "near\n");
  EXPECT_EQ(prompt_with("prompt: prompts/ are texts"), "prompts/ are texts");
  EXPECT_THAT(prompt_with("prompt: prompts/none.txt"), HasSubstr("q.yaml:3:"));
  write_text(folder / "queues/deep/empty.txt", "");
  EXPECT_THAT(prompt_with("prompt_file: empty.txt"), HasSubstr("the prompt is empty"));
  write_text(folder / "queues/deep/bytes.txt", "\xc3\x28");
  EXPECT_THAT(prompt_with("prompt_file: bytes.txt"), HasSubstr("is not UTF-8"));
  std::filesystem::create_directory(folder / "queues/deep/tales");
  EXPECT_THAT(prompt_with("prompt_file: tales"), HasSubstr("'tales' is a folder, not a file"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(prompt_with("prompt_file: pipe"), HasSubstr("'pipe' is a pipe, not a file"));
  write_text(folder / "tales", "a file above\n");
  EXPECT_EQ(prompt_with("prompt_file: tales"), "a file above\n");
}

TEST(Queue, SaysWhatIsNoQueueFile) {
  TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(load_queue(folder / "none.yaml").error().message,
            folder / "none.yaml" + ": no such file");
  EXPECT_EQ(load_queue(folder / "").error().message, folder / "" + ": is a folder, not a file");
  EXPECT_EQ(load_queue(folder / "pipe").error().message,
            folder / "pipe" + ": is a pipe, not a file");
  EXPECT_EQ(load_queue(folder / "pipe").error().kind, ErrorKind::kUsage);
}

TEST(Queue, StandaloneTextSaysTheSame) {
  const Result<Queue> queue = parse_queue(kFull, "q.yaml");
  ASSERT_TRUE(queue.ok());
  for (Experiment experiment : queue->experiments) {
    experiment.workload.prompt += "\ttab \"quote\" \\ ünï \U0001f600 # no comment: {x} \x7f\x01\n";
    const std::string text = standalone_queue(experiment);
    const Result<Queue> again = parse_queue(text, "again.yaml");
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
    const Experiment& copy = again->experiments.front();
    EXPECT_EQ(standalone_queue(copy), text);
    EXPECT_EQ(copy.workload.prompt, experiment.workload.prompt);
    EXPECT_EQ(copy.set, experiment.set);
    EXPECT_EQ(copy.kind, experiment.kind);
    EXPECT_EQ(copy.rounds, experiment.rounds);
    EXPECT_EQ(copy.claim.has_value(), experiment.claim.has_value());
  }
}

// A prompt comes back to the byte, and last; of several lines as lines wherever YAML can.
TEST(Queue, StandaloneTextKeepsLongPrompts) {
  const Result<Queue> queue = parse_queue(kFull, "q.yaml");
  ASSERT_TRUE(queue.ok());
  Experiment experiment = queue->experiments.front();
  const auto text_with = [&](std::string prompt) {
    experiment.workload.prompt = std::move(prompt);
    const std::string text = standalone_queue(experiment);
    const Result<Queue> again = parse_queue(text, "again.yaml");
    EXPECT_TRUE(again.ok()) << again.error().message << "\n" << text;
    if (again.ok()) {
      EXPECT_EQ(again->experiments.front().workload.prompt, experiment.workload.prompt) << text;
    }
    return text;
  };
  for (const char* prompt :
       {"a\nb", "a\nb\n", "a\n\n\nb\n", "  two\n four\n", "a  \n  \n b \n", "a\n# b",
        "a\n--- b\n...\n", "- a: |\n    b\n", "ünï\n\U0001f600 “q”\n"}) {
    const std::string text = text_with(prompt);
    EXPECT_THAT(text, HasSubstr("      prompt: |2"));
  }
  for (const char* prompt :
       {"a", "a\n", "\na\nb", "a\nb\n\n", "\n", "\n\n", "a\r\nb\r\n", "a\n\tb\n", "a\n\xc2\x85\n",
        "a\n\xe2\x80\xa8 b\n", "\xef\xbb\xbf a\nb"}) {
    EXPECT_THAT(text_with(prompt), HasSubstr("      prompt: \"")) << prompt;
  }
  EXPECT_TRUE(
      text_with("one\n" + std::string(9000, 'x') + "\nlast line").ends_with("  last line\n"));
}

TEST(QueueValues, Seconds) {
  EXPECT_EQ(*parse_seconds("90s"), 90);
  EXPECT_EQ(*parse_seconds("9m"), 540);
  EXPECT_EQ(*parse_seconds("1.5h"), 5400);
  for (const char* text : {"", "m", "-1", "0", "9 m", "1e3", "inf", "nan", "9mm", "31000000s"}) {
    EXPECT_FALSE(parse_seconds(text).ok()) << text;
  }
  EXPECT_EQ(parse_seconds("9").error().message, "'9' has no unit: 9s, 9m or 9h?");
}

TEST(QueueValues, MemoryLimits) {
  EXPECT_EQ(parse_memory_limit("8GiB")->bytes, uint64_t{8} << 30);
  EXPECT_EQ(parse_memory_limit("75%")->percent, 75);
  EXPECT_EQ(parse_memory_limit("plan+0B")->kind, MemoryLimit::Kind::kAbovePlan);
  for (const char* text : {"", "0", "0%", "101%", "plan", "plan+", "plan+x", "8 gigs", "-1GiB"}) {
    EXPECT_FALSE(parse_memory_limit(text).ok()) << text;
  }
}

TEST(QueueValues, Claims) {
  EXPECT_EQ(*parse_claim("+2%"), 0.02);
  EXPECT_EQ(*parse_claim("2%"), 0.02);
  for (const char* text : {"", "2", "-2%", "0%", "+%", "1001%", "2%%", "++2%"}) {
    EXPECT_FALSE(parse_claim(text).ok()) << text;
  }
}

}  // namespace
}  // namespace reckon::experiment
