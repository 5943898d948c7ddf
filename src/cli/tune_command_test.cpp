// `reckon tune`, and rule files as other commands use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "cli/command_testing.h"
#include "kernels/device.h"
#include "models/test_checkpoints.h"
#include "tensor/test_blocks.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// A model whose matrices are of a type that has panels.
std::string panel_model(const Sandbox& sandbox) {
  RandomBlocks random(1);
  const auto q4_0 = [&](int64_t n, int64_t k) {
    const std::vector<uint8_t> bytes = random.rows(DType::kQ4_0, n, k);
    return std::string(bytes.begin(), bytes.end());
  };
  return sandbox.write("q4.gguf", models::wide_gguf_llama(2, q4_0).bytes());
}

bool has_tiles() {
  return kernels::detect_cpu().best_isa >= kernels::Isa::kAmx;
}

std::vector<std::string> tune(const std::string& model, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"--ledger", "ledger",   "tune",    "-m", model,
                                     "--chunks", "64,16,64", "--pairs", "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Tune, WritesRulesThatCiteTheirEntry) {
  if (!has_tiles()) GTEST_SKIP() << "no kernel has several tiles here";
  Sandbox sandbox;
  const std::string model = panel_model(sandbox);
  const Finished json = sandbox.run(tune(model, {"--json"}));
  ASSERT_EQ(json.code, 0) << json.err;
  const nlohmann::json sweep = json.json();
  EXPECT_EQ(sweep["chunks"], nlohmann::json({16, 64}));
  ASSERT_FALSE(sweep["cells"].empty());
  for (const nlohmann::json& cell : sweep["cells"]) {
    ASSERT_EQ(cell["tiles"].size(), 3u);
    EXPECT_EQ(cell["tiles"][0]["tile"], "square");
    for (const nlohmann::json& tile : cell["tiles"]) {
      EXPECT_GT(tile["ms"], 0);
      EXPECT_GT(tile["scratch_bytes"], 0);
      EXPECT_EQ(tile.contains("pairs") ? tile["pairs"].size() : 0u,
                tile["tile"] == "square" ? 0u : 3u);  // one warms up
    }
  }
  EXPECT_LE(sweep["largest_loss"].get<double>(), 0.0101);
  EXPECT_FALSE(std::filesystem::exists(sandbox.path("ledger")));

  const std::string file = sandbox.path("rules/mine.yaml").string();
  EXPECT_EQ(sandbox.run(tune(model, {"-o", file})).code, 1);  // no such folder
  std::filesystem::create_directory(sandbox.path("rules"));
  const Finished written = sandbox.run(tune(model, {"-o", file}));
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_THAT(written.out,
              AllOf(HasSubstr("square ms"), HasSubstr("wrote " + file + " (ledger: rk-")));
  const std::string text = file_text(file);
  EXPECT_THAT(text, AllOf(StartsWith("# Tile rules"), HasSubstr("\nname: mine\n"),
                          HasSubstr("\nledger: rk-"), HasSubstr("\nchunks: [16, 64]\n")));
  const std::string entry = text.substr(text.find("rk-"), 15);
  const Finished shown = sandbox.run({"--ledger", "ledger", "ledger", "show", entry});
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("a sweep, which gives none"), HasSubstr(" rows=16: square ")));
  EXPECT_THAT(sandbox.run({"--ledger", "ledger", "ledger", "list", "--verdict", "tune"}).out,
              HasSubstr(entry));
  const Finished lint = sandbox.run({"--ledger", "ledger", "ledger", "lint", "rules"});
  EXPECT_EQ(lint.code, 0) << lint.out << lint.err;

  // Whatever was in the file before is gone only once there is something better.
  const Finished unmeasured = sandbox.run(tune(model, {"-o", file, "--no-record"}));
  ASSERT_EQ(unmeasured.code, 0) << unmeasured.err;
  EXPECT_THAT(file_text(file), HasSubstr("\nledger: unmeasured\n"));
}

TEST(Tune, StoppedItLeavesNothing) {
  if (!has_tiles()) GTEST_SKIP() << "no kernel has several tiles here";
  Sandbox sandbox;
  const std::string model = panel_model(sandbox);
  const std::string file = sandbox.path("mine.yaml").string();
  const pid_t child = sandbox.start(
      {"--ledger", "ledger", "tune", "-m", model, "--chunks", "16", "--pairs", "1000", "-o", file});
  usleep(300000);
  kill(child, SIGINT);
  const Finished stopped = sandbox.finish(child);
  EXPECT_EQ(stopped.code, 128 + SIGINT);
  EXPECT_EQ(stopped.out, "");
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(sandbox.path("ledger")));
}

TEST(Tune, RefusesWhatItCannotTune) {
  Sandbox sandbox;
  const std::string model = tiny_model();
  for (const char* name : {"rules.txt", ".yaml", "two words.yaml"}) {
    const Finished finished = sandbox.run(tune(model, {"-o", name}));
    EXPECT_EQ(finished.code, 2) << name;
    EXPECT_TRUE(finished.one_error_line()) << finished.err;
  }
  const Finished scalar = sandbox.run(tune(model, {"--set", "cpu.isa=scalar"}));
  EXPECT_EQ(scalar.code, 3);
  EXPECT_THAT(scalar.err, HasSubstr("nothing to tune"));
}

TEST(TileRuleFiles, ArePlannedNotedAndCompared) {
  if (!has_tiles()) GTEST_SKIP() << "no kernel has several tiles here";
  Sandbox sandbox;
  const std::string model = panel_model(sandbox);
  const std::string rules = sandbox.write(
      "tall.yaml",
      "name: tall\ndate: 2026-11-30\nledger: unmeasured\nchunks: [8]\n"
      "when: {backend: cpu, device.vendor: v, device.isa: amx, device.units: 64}\nshapes: []\n"
      "rules:\n  - {op: matmul, type: any, n: 1.., k: 1.., rows: 2.., tile: tall}\n");
  const std::string set = "prefill.tile_rules=" + rules;
  const Finished plan = sandbox.run({"plan", "-m", model, "--set", set, "--json"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  bool found = false;
  const nlohmann::json planned = plan.json();
  for (const nlohmann::json& call : planned["calls"]) {
    if (call["rule"] != "tall:1") continue;
    found = true;
    EXPECT_EQ(call["params"], "tile=tall");
    EXPECT_THAT(call["extrapolated"].get<std::string>(), HasSubstr("(tuned at 8)"));
    EXPECT_THAT(call["reason"].get<std::string>(), HasSubstr(set + " (tall) row 1"));
  }
  EXPECT_TRUE(found);
  const Finished difference =
      sandbox.run({"plan", "-m", model, "--set", "prefill.tile_rules=none", "--diff", set});
  EXPECT_THAT(difference.out, HasSubstr("tile=tall"));
  const Finished bench =
      sandbox.run({"bench", "-m", model, "-p", "8", "-n", "0", "-r", "1", "--set", set});
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_THAT(bench.err, HasSubstr("note: tile rules tall are extrapolated for "));

  // A queue says so as well, and knows the file by its content.
  const std::string queue = sandbox.write(
      "q.yaml",
      "name: q\ndefaults: {model: " + model +
          "}\nexperiments:\n  - id: rules\n"
          "    idea: Tall tiles\n    switch: {key: prefill.tile_rules, base: none, arm: " +
          rules +
          "}\n    workload: {phase: prefill, prompt_tokens: 16}\n"
          "    metric: prefill_tok_per_s\n");
  const Finished check = sandbox.run({"--ledger", "ledger", "queue", "check", queue, "--json"});
  ASSERT_EQ(check.code, 0) << check.err << check.out;
  EXPECT_THAT(check.json()["experiments"][0]["notes"].dump(),
              HasSubstr("arm: tile rules tall are extrapolated"));
  const Finished broken = sandbox.run(
      {"plan", "-m", model, "--set", "prefill.tile_rules=" + sandbox.write("b.yaml", "name: b\n")});
  EXPECT_EQ(broken.code, 2);
  EXPECT_TRUE(broken.one_error_line()) << broken.err;
}

}  // namespace
}  // namespace reckon::cli
