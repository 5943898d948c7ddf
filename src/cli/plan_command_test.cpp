// `reckon plan` and `reckon bench`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_testing.h"
#include "models/test_checkpoints.h"
#include "tensor/test_blocks.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Plan, AddsUpItsTerms) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"plan", "-m", tiny_model(), "--ctx", "128", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json plan = finished.json();
  uint64_t total = 0;
  for (const auto& term : plan["memory"]) total += term["bytes"].get<uint64_t>();
  EXPECT_EQ(plan["total_bytes"], total);
  EXPECT_EQ(plan["context"], 128);
  EXPECT_EQ(plan["fits"], true);
  for (const char* key : {"chunk", "budget_bytes", "budget_source"}) {
    EXPECT_TRUE(plan.contains(key)) << key;
  }
  ASSERT_FALSE(plan["calls"].empty());
  for (const char* key : {"phase", "op", "shape", "variant", "params", "source_hash", "calls",
                          "numerics", "scratch_bytes", "layout", "rule", "reason"}) {
    EXPECT_TRUE(plan["calls"][0].contains(key)) << key;
  }
}

TEST(Plan, CountsPackedWeights) {
  Sandbox sandbox;
  const auto weights = [&](const char* scheme) {
    const Finished finished = sandbox.run({"plan", "-m", golden_path("oracle/llama-h48-tied"),
                                           "--ctx", "64", "--quant", scheme, "--json"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.json()["memory"][0]["bytes"].get<uint64_t>();
  };
  EXPECT_LT(weights("q8"), weights("none"));  // bf16, and rows of 48 padded to 64
  EXPECT_LT(weights("q4"), weights("q8"));
  const Finished unknown = sandbox.run({"plan", "-m", tiny_model(), "--quant", "q5"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("q4"));
}

TEST(Plan, TakesAFileOfQuantisationRules) {
  Sandbox sandbox;
  const auto plan = [&](const std::string& scheme) {
    return sandbox.run({"plan", "-m", golden_path("oracle/llama-h48-untied"), "--ctx", "64",
                        "--quant", scheme, "--no-cache", "--json"});
  };
  const auto weights = [&](const std::string& scheme) {
    return plan(scheme).json()["memory"][0]["bytes"].get<uint64_t>();
  };
  const std::string mixed =
      sandbox.write("mixed.yaml", "- \"*.self_attn.*\": q8\n- \"*.typo.*\": q8\n- \"*\": q4\n");
  EXPECT_GT(weights(mixed), weights("q4"));
  EXPECT_LT(weights(mixed), weights("q8"));
  const nlohmann::json notes = plan(mixed).json()["notes"];
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0], mixed + ":2: '*.typo.*' decides for no matrix of this model");

  const std::string broken = sandbox.write("broken.yaml", "- \"*\": q4\n- lm_head.weight: q5\n");
  for (const std::string& scheme : {broken, std::string("missing.yaml")}) {
    const Finished finished = plan(scheme);
    EXPECT_EQ(finished.code, 2);
    EXPECT_TRUE(finished.one_error_line()) << finished.err;
  }
  EXPECT_THAT(plan(broken).err, HasSubstr("broken.yaml:2: 'lm_head.weight' is 'q5': expected"));
}

TEST(Plan, SaysWhatIsConverted) {
  Sandbox sandbox;
  RandomBlocks random(1);
  const auto q5_k = [&](int64_t n, int64_t k) {
    const std::vector<uint8_t> bytes = random.rows(DType::kQ5_K, n, k);
    return std::string(bytes.begin(), bytes.end());
  };
  const std::string model = sandbox.write("q5.gguf", models::wide_gguf_llama(13, q5_k).bytes());
  const char* note = "converted 8 tensors from q5_k to p8, which has kernels here: +";
  const Finished text = sandbox.run({"plan", "-m", model});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.err, StartsWith(std::string("note: ") + note));
  const Finished plan = sandbox.run({"plan", "-m", model, "--json"});
  EXPECT_EQ(plan.err, "");
  ASSERT_EQ(plan.json()["notes"].size(), 1U);
  EXPECT_THAT(plan.json()["notes"][0].get<std::string>(), StartsWith(note));
  const Finished bench =
      sandbox.run({"bench", "-m", model, "-p", "4", "-n", "0", "-r", "1", "--json"});
  ASSERT_EQ(bench.code, 0) << bench.err;
  EXPECT_EQ(bench.json()[0]["notes"], plan.json()["notes"]);
  EXPECT_EQ(bench.json()[0]["weight_format"], "p8");
}

TEST(Plan, FitsTheTerminal) {
  Sandbox sandbox;
  const Finished finished = sandbox.run({"plan", "-m", tiny_model()});
  ASSERT_EQ(finished.code, 0) << finished.err;
  for (const std::string& line : lines_of(finished.out)) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(finished.out,
              StartsWith("Memory for a context of 512 tokens, prefill in chunks of "));
  EXPECT_THAT(finished.out, HasSubstr("budget: "));
  EXPECT_THAT(finished.out, HasSubstr("[1] "));
}

TEST(Plan, RefusesWhatDoesNotFit) {
  Sandbox sandbox;
  const Finished text = sandbox.run({"plan", "-m", tiny_model(), "--memory-limit", "100KiB"});
  EXPECT_EQ(text.code, 3);
  EXPECT_TRUE(text.one_error_line()) << text.err;
  EXPECT_THAT(text.err, HasSubstr("largest terms"));
  EXPECT_THAT(text.out, HasSubstr("total"));  // the plan is shown all the same

  const Finished json =
      sandbox.run({"plan", "-m", tiny_model(), "--memory-limit", "100KiB", "--json"});
  EXPECT_EQ(json.code, 3);
  EXPECT_EQ(json.json()["fits"], false);
}

TEST(Plan, ShowsWhatASwitchWouldChange) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(
      {"plan", "-m", tiny_model(), "--prompt", "256", "--diff", "kernel.matmul=exact_scalar"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("with kernel.matmul=exact_scalar:\n"));
  EXPECT_THAT(finished.out, HasSubstr("+ prefill  matmul"));
  EXPECT_THAT(finished.out, HasSubstr("exact_scalar"));
  EXPECT_THAT(finished.out, HasSubstr("memory: "));
}

TEST(Plan, SaysWhereASwitchChangesNothing) {
  Sandbox sandbox;
  const Finished finished = sandbox.run(
      {"plan", "-m", tiny_model(), "--prompt", "16", "--diff", "prefill.tile_order=band8"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("would be VOID"));

  const Finished json = sandbox.run({"plan", "-m", tiny_model(), "--prompt", "16", "--json",
                                     "--diff", "prefill.tile_order=band8"});
  const nlohmann::json difference = json.json();
  EXPECT_TRUE(difference["only_base"].empty());
  EXPECT_TRUE(difference["only_arm"].empty());
  EXPECT_TRUE(difference.contains("base") && difference.contains("arm"));
}

TEST(Plan, PlansForTheRowsOfAPrompt) {
  Sandbox sandbox;
  const nlohmann::json plan =
      sandbox.run({"plan", "-m", tiny_model(), "--prompt", "40", "--chunk", "16", "--json"}).json();
  std::vector<std::string> matmul_rows;
  for (const auto& call : plan["calls"]) {
    if (call["op"] == "embedding" && call["phase"] == "prefill") {
      const std::string shape = call["shape"];
      matmul_rows.push_back(shape.substr(0, shape.find('x')));
    }
  }
  EXPECT_THAT(matmul_rows, testing::ElementsAre("16", "8"));
}

TEST(Bench, MeasuresBothPhases) {
  Sandbox sandbox;
  const std::vector<std::string> common = {"bench", "-m", tiny_model(), "-p", "8",
                                           "-n",    "3",  "-r",         "2"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return sandbox.run(arguments);
  };
  const nlohmann::json json = with({"--json"}).json();
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["test"], "pp8");
  EXPECT_EQ(json[1]["test"], "tg3");
  for (const char* key :
       {"build_commit", "device", "backend", "model_filename", "model_family", "model_size",
        "weight_format", "n_threads", "n_chunk", "switches", "n_tokens", "samples_ns", "samples_ts",
        "avg_ts", "stddev_ts", "peak_bytes"}) {
    EXPECT_TRUE(json[0].contains(key)) << key;
  }
  EXPECT_EQ(json[0]["samples_ns"].size(), 2u);
  const Finished audited = with({"--audit-buffers", "--json"});
  EXPECT_EQ(audited.code, 0) << audited.err;
  EXPECT_TRUE(audited.json()[1]["audit"]["unread"].empty());
  EXPECT_THAT(audited.err, StartsWith("every buffer was read ("));

  EXPECT_EQ(lines_of(with({}).out).size(), 4u);  // titles, rule, two tests
  EXPECT_THAT(with({"-o", "csv"}).out, StartsWith("model,size,format,backend,threads,test,"));
  const std::vector<std::string> lines = lines_of(with({"-o", "jsonl"}).out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(nlohmann::json::parse(lines[0], nullptr, false).is_object());
}

TEST(Bench, TimesEveryWidthOfAPassThatDraftsMayTake) {
  Sandbox sandbox;
  const std::vector<std::string> words = {"bench",
                                          "-m",
                                          tiny_model(),
                                          "-p",
                                          "0",
                                          "-n",
                                          "24",
                                          "-r",
                                          "2",
                                          "--set",
                                          "decode.drafter=replay:1",
                                          "--set",
                                          "decode.mtp_depth=3"};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const Finished finished = sandbox.run(as_json);
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json drafts = finished.json()[0]["speculation"];
  EXPECT_EQ(drafts["passes"], 12);  // twice 24 tokens, 4 a pass
  EXPECT_EQ(drafts["tokens_per_pass"], 4.0);
  ASSERT_EQ(drafts["by_rows"].size(), 4U);
  for (const nlohmann::json& width : drafts["by_rows"]) EXPECT_GT(width["cost"], 0);
  const Finished text = sandbox.run(words);
  EXPECT_THAT(text.out, testing::HasSubstr("tg24: drafts by replay:1: 4.00 tokens a pass"));
  EXPECT_THAT(text.err, testing::HasSubstr("recorded run"));
}

TEST(Bench, NeedsNoTokenizer) {
  Sandbox sandbox;
  const Finished finished =
      sandbox.run({"bench", "-m", golden_path("oracle/llama-s0"), "-p", "4", "-n", "0", "-r", "1"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(lines_of(finished.out).size(), 3u);
}

}  // namespace
}  // namespace reckon::cli
