// `reckon synth`, and -m synth:NAME in the other commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;

TEST(Synth, WritesAFolderThatRuns) {
  Sandbox sandbox;
  const Finished made =
      sandbox.run({"synth", "tiny-llama", "-o", "made", "--layers", "1", "--seed", "3", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.json()["model"], "synth:tiny-llama,layers=1,seed=3");
  EXPECT_EQ(made.json()["model_name"], "synth:tiny-llama (1 of 2 layers)");
  for (const char* key : {"folder", "weight_bytes", "shape_hash"}) {
    EXPECT_TRUE(made.json().contains(key)) << key;
  }
  const Finished bench = sandbox.run({"bench", "-m", "made", "-p", "4", "-n", "2", "-r", "1"});
  EXPECT_EQ(bench.code, 0) << bench.err;

  const Finished again = sandbox.run({"synth", "tiny-llama", "-o", "made"});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(again.one_error_line()) << again.err;
}

TEST(Synth, RefusesWhatIsLargeUnlessAsked) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"synth", "llama-8b", "-o", "made"});
  EXPECT_EQ(finished.code, 3);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("--large"));
  EXPECT_FALSE(std::filesystem::exists(sandbox.path("made")));
}

TEST(Synth, SuggestsAName) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"synth", "lama-8b", "-o", "made"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("did you mean 'synth:llama-8b'?"));
  EXPECT_EQ(sandbox.run({"synth", "tiny-llama", "-o", "made", "--layers", "3"}).code, 2);
  EXPECT_EQ(sandbox.run({"synth", "tiny-llama", "-o", "made", "--quant", "q4"}).code, 2);
}

TEST(SyntheticModel, IsPlannedAtOnceAndRefusedWhereItDoesNotFit) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"plan", "-m", "synth:llama-8b", "--layers", "4", "--quant",
                                         "q4", "--ctx", "64", "--memory-limit", "1GB", "--json"});
  EXPECT_EQ(finished.code, 3);
  const nlohmann::json plan = finished.json();
  EXPECT_EQ(plan["model_name"], "synth:llama-8b (4 of 32 layers)");
  uint64_t weights = 0;  // in rows or in panels, which take as much
  for (const nlohmann::json& term : plan["memory"]) {
    if (term["tag"] == "weights") weights += term["bytes"].get<uint64_t>();
  }
  EXPECT_EQ(weights, (2 * 128256ULL * 4096 + 4 * 218103808ULL) / 64 * 36 + 9 * 4096 * 4);
  const Finished bench = sandbox.run({"bench", "-m", "synth:llama-8b", "--memory-limit", "1GB"});
  EXPECT_EQ(bench.code, 3);
  EXPECT_TRUE(bench.one_error_line()) << bench.err;
}

TEST(SyntheticModel, IsMeasuredUnderItsName) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"bench", "-m", "synth:tiny-llama", "--layers", "1",
                                         "--quant", "q8", "-p", "4", "-n", "2", "-r", "1"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("synth:tiny-llama (1 of 2 layers)"));
  EXPECT_THAT(finished.out, HasSubstr("p8"));
  EXPECT_EQ(sandbox.run({"bench", "-m", tiny_model(), "--layers", "1"}).code, 2);
}

TEST(SyntheticModel, TakesNoText) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"run", "-m", "synth:tiny-llama", "-p", "Hello"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("reckon bench"));
}

TEST(SyntheticModel, RunsInAQueue) {
  Sandbox sandbox;
  const std::string queue = sandbox.write("queue.yaml", R"(
name: synthetic
defaults: {model: {synth: tiny-llama, layers: 1}, metric: decode_tok_per_s, pairs: 2}
experiments:
  - id: floor
    kind: aa
    rounds: 1
    workload: {phase: decode, prompt_tokens: 16, generate: 4}
)");
  const Finished finished =
      sandbox.run({"queue", "run", queue, "--ledger", "ledger", "--no-pause"});
  ASSERT_EQ(finished.code, 0) << finished.err << finished.out;
  const Finished list = sandbox.run({"ledger", "list", "--json", "--ledger", "ledger"});
  ASSERT_EQ(list.code, 0) << list.err;
  EXPECT_EQ(list.json()["entries"][0]["model"], "synth:tiny-llama (1 of 2 layers)");
}

}  // namespace
}  // namespace reckon::cli
