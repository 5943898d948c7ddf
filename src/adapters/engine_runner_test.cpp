#include "adapters/engine_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "adapters/open.h"
#include "base/test_data.h"
#include "kernels/device.h"

namespace reckon::adapters {
namespace {

using experiment::Arm;
using experiment::Measurement;
using experiment::Prediction;
using experiment::Subject;
using experiment::Workload;
using testing::HasSubstr;

std::string tiny_model() {
  return golden_path("gguf/tiny-llama-mixed.gguf");
}

Workload tiny_workload() {
  Workload workload;
  workload.model = tiny_model();
  workload.phase = "decode";
  workload.prompt = "It was the best of times, it was the worst of times. ";
  workload.prompt_tokens = 40;
  workload.generate_tokens = 6;
  workload.metric = "decode_tok_per_s";
  return workload;
}

Arm arm(experiment::SwitchValues switches) {
  Arm arm;
  arm.name = "arm";
  arm.switches = std::move(switches);
  return arm;
}

std::set<experiment::DispatchRow> certain_rows(const Prediction& prediction) {
  std::set<experiment::DispatchRow> rows;
  for (const auto& row : prediction.rows) {
    if (row.certain) rows.insert(row.row);
  }
  return rows;
}

std::set<experiment::DispatchRow> all_rows(const Prediction& prediction) {
  std::set<experiment::DispatchRow> rows;
  for (const auto& row : prediction.rows) rows.insert(row.row);
  return rows;
}

// A rule file under the same path is another source once it says something else; where nothing is
// read in prefill it is none.
TEST(EngineRunner, KnowsTileRulesByTheirContent) {
  if (kernels::detect_cpu().best_isa < kernels::Isa::kAmx) GTEST_SKIP() << "no kernel has tiles";
  const std::string path = testing::TempDir() + "engine_runner_test.yaml";
  const auto write = [&](const char* tile) {
    std::ofstream(path)
        << "name: t\ndate: today\nledger: unmeasured\nchunks: [8]\nshapes: []\n"
           "when: {backend: cpu, device.vendor: v, device.isa: i, device.units: 1}\n"
           "rules: [{op: matmul, type: any, n: 1.., k: 1.., rows: 1.., tile: "
        << tile << "}]\n";
  };
  Workload workload = tiny_workload();
  workload.phase = "prefill";
  const Arm with_rules = arm({{"prefill.tile_rules", path}});
  EngineRunner runner;
  write("tall");
  const auto tall = runner.predict(workload, with_rules);
  ASSERT_TRUE(tall.ok()) << tall.error().message;
  ASSERT_TRUE(tall->sources.contains("tile_rules.t"));
  ASSERT_EQ(tall->notes.size(), 1u);
  EXPECT_THAT(tall->notes[0], HasSubstr("tile rules t are extrapolated for "));
  const auto measured = runner.measure(workload, with_rules);
  ASSERT_TRUE(measured.ok()) << measured.error().message;
  EXPECT_TRUE(std::ranges::any_of(measured->observed, [](const experiment::DispatchRow& row) {
    return row.params == "tile=tall";
  }));
  const std::set<experiment::DispatchRow> predicted = all_rows(*tall);
  for (const experiment::DispatchRow& row : measured->observed) {
    EXPECT_TRUE(predicted.contains(row)) << row.op << " " << row.shape << " " << row.params;
  }
  write("wide");
  const auto wide = runner.predict(workload, with_rules);
  ASSERT_TRUE(wide.ok());
  EXPECT_NE(wide->sources, tall->sources);
  const auto decode = runner.predict(tiny_workload(), with_rules);
  ASSERT_TRUE(decode.ok());
  EXPECT_TRUE(decode->sources.empty());
  std::remove(path.c_str());
  EXPECT_FALSE(runner.predict(workload, with_rules).ok());
}

// Every chunk and remainder, with and without decode, by several kernels.
TEST(EngineRunner, ObservesWhatItPredicts) {
  const std::vector<experiment::SwitchValues> arms = {
      {},
      {{"prefill.chunk", "7"}},
      {{"prefill.chunk", "40"}},
      {{"cpu.isa", "scalar"}},
      {{"numerics", "reference"}},
      {{"prefill.tile_order", "band8"}},
      {{"decode.drafter", "lookup"}, {"decode.mtp_depth", "4"}},
      {{"decode.drafter", "replay:0.9"}, {"decode.mtp_depth", "auto"}},
      {{"prefill.split_k", "exact"}, {"prefill.numerics", "exact"}},
      {{"prefill.split_k", "fast"}},
      {{"decode.drafter", "replay:0.9"},
       {"decode.mtp_depth", "5"},
       {"decode.verify_kernel", "fast"},
       {"decode.multi_max", "2"}},
      {{"decode.drafter", "replay:0.9"},
       {"decode.mtp_depth", "5"},
       {"decode.verify_kernel", "stream"}},
  };
  for (const auto& switches : arms) {
    for (const int64_t generate : {0, 1, 5}) {
      EngineRunner runner;
      Workload workload = tiny_workload();
      workload.generate_tokens = generate;
      const auto prediction = runner.predict(workload, arm(switches));
      ASSERT_TRUE(prediction.ok()) << prediction.error().message;
      const auto measurement = runner.measure(workload, arm(switches));
      ASSERT_TRUE(measurement.ok()) << measurement.error().message;

      const auto certain = certain_rows(*prediction);
      const auto possible = all_rows(*prediction);
      const auto& observed = measurement->observed;
      EXPECT_TRUE(std::is_sorted(observed.begin(), observed.end()));
      EXPECT_TRUE(std::includes(observed.begin(), observed.end(), certain.begin(), certain.end()));
      EXPECT_TRUE(
          std::includes(possible.begin(), possible.end(), observed.begin(), observed.end()));
    }
  }
}

// A model's own head follows the passes as far as drafts need it: nowhere where nothing is
// generated.
TEST(EngineRunner, ObservesWhatItPredictsOfDraftHeads) {
  for (const char* model : {"qwen3_5-s0", "qwen3_5_moe-s0"}) {
    for (const char* depth : {"0", "1", "3", "auto"}) {
      for (const int64_t generate : {0, 1, 7}) {
        EngineRunner runner;
        Workload workload = tiny_workload();
        workload.model = golden_path(std::string("oracle/") + model);
        workload.prompt = "";  // random tokens
        workload.generate_tokens = generate;
        const Arm drafting = arm({{"decode.mtp_depth", depth}, {"prefill.chunk", "16"}});
        const auto prediction = runner.predict(workload, drafting);
        ASSERT_TRUE(prediction.ok()) << prediction.error().message;
        const auto measurement = runner.measure(workload, drafting);
        ASSERT_TRUE(measurement.ok()) << measurement.error().message;
        const auto certain = certain_rows(*prediction);
        const auto possible = all_rows(*prediction);
        const auto& observed = measurement->observed;
        EXPECT_FALSE(certain.empty());
        EXPECT_TRUE(std::includes(observed.begin(), observed.end(), certain.begin(), certain.end()))
            << model << " depth " << depth << ", " << generate << " tokens";
        EXPECT_TRUE(
            std::includes(possible.begin(), possible.end(), observed.begin(), observed.end()))
            << model << " depth " << depth << ", " << generate << " tokens";
      }
    }
  }
}

TEST(EngineRunner, DraftsChangeThePlanAndNoToken) {
  EngineRunner runner;
  const experiment::SwitchValues drafting = {{"decode.drafter", "replay:1"},
                                             {"decode.mtp_depth", "4"}};
  const auto plain = runner.measure(tiny_workload(), arm({}));
  const auto drafted = runner.measure(tiny_workload(), arm(drafting));
  ASSERT_TRUE(plain.ok() && drafted.ok());
  EXPECT_EQ(drafted->tokens, plain->tokens);
  EXPECT_NE(drafted->observed, plain->observed);
  const auto prediction = runner.predict(tiny_workload(), arm(drafting));
  ASSERT_TRUE(prediction.ok());
  EXPECT_NE(all_rows(*prediction), all_rows(*runner.predict(tiny_workload(), arm({}))));
}

TEST(EngineRunner, TakesWhatItPlanned) {
  for (const char* chunk : {"1", "16", "512"}) {
    EngineRunner runner;
    const auto prediction = runner.predict(tiny_workload(), arm({{"prefill.chunk", chunk}}));
    const auto measurement = runner.measure(tiny_workload(), arm({{"prefill.chunk", chunk}}));
    ASSERT_TRUE(prediction.ok() && measurement.ok());
    const auto planned = static_cast<double>(prediction->planned_bytes);
    EXPECT_NEAR(static_cast<double>(measurement->peak_bytes), planned, 0.01 * planned);
    EXPECT_EQ(measurement->metrics.at("peak_bytes"), static_cast<double>(measurement->peak_bytes));
  }
}

TEST(EngineRunner, GivesEveryMetricItNames) {
  EngineRunner runner;
  const auto measurement = runner.measure(tiny_workload(), arm({}));
  ASSERT_TRUE(measurement.ok()) << measurement.error().message;
  for (const auto& info : runner.metrics()) {
    ASSERT_TRUE(measurement->metrics.contains(info.name)) << info.name;
    EXPECT_GT(measurement->metrics.at(info.name), 0) << info.name;
  }
}

// A pass verifies as many tokens as were accepted, and one more.
TEST(EngineRunner, TellsPassesFromTokens) {
  EngineRunner runner;
  Workload workload = tiny_workload();
  workload.generate_tokens = 11;
  const auto tokens_a_pass = [&](const experiment::SwitchValues& switches) {
    const auto measured = runner.measure(workload, arm(switches));
    EXPECT_TRUE(measured.ok()) << measured.error().message;
    return measured->metrics.at("ms_per_pass") / measured->metrics.at("ms_per_token");
  };
  EXPECT_NEAR(tokens_a_pass({}), 1, 1e-9);
  EXPECT_NEAR(tokens_a_pass({{"decode.drafter", "replay:1"}, {"decode.mtp_depth", "4"}}), 5, 1e-9);
}

TEST(EngineRunner, LeavesOutDecodeMetricsOfAWorkloadThatDoesNotDecode) {
  EngineRunner runner;
  Workload workload = tiny_workload();
  workload.generate_tokens = 1;
  const auto measurement = runner.measure(workload, arm({}));
  ASSERT_TRUE(measurement.ok());
  EXPECT_EQ(measurement->tokens.size(), 1u);
  EXPECT_FALSE(measurement->metrics.contains("decode_tok_per_s"));
  EXPECT_FALSE(measurement->metrics.contains("ms_per_pass"));
}

TEST(EngineRunner, StartsEveryMeasurementFromACleanState) {
  EngineRunner runner;
  const auto first = runner.measure(tiny_workload(), arm({}));
  const auto other = runner.measure(tiny_workload(), arm({{"prefill.chunk", "3"}}));
  const auto again = runner.measure(tiny_workload(), arm({}));
  ASSERT_TRUE(first.ok() && other.ok() && again.ok());
  EXPECT_EQ(first->tokens.size(), 6u);
  EXPECT_EQ(first->margins.size(), 6u);
  EXPECT_EQ(first->tokens, again->tokens);
  EXPECT_EQ(first->margins, again->margins);
  EXPECT_EQ(first->observed, again->observed);
  EXPECT_EQ(first->peak_bytes, again->peak_bytes);
}

TEST(EngineRunner, ComparesWhatArmsPredict) {
  EngineRunner runner;
  const auto base = runner.measure(tiny_workload(), arm({{"numerics", "reference"}}));
  ASSERT_TRUE(base.ok());
  const auto same = runner.compare_quality(tiny_workload(), arm({{"numerics", "reference"}}),
                                           arm({{"numerics", "reference"}}), base->tokens);
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_EQ(same->tokens, 46) << "the prompt and what was generated";
  EXPECT_EQ(same->mean_kl, 0);
  EXPECT_EQ(same->top1_equal, 46);
  EXPECT_EQ(*same->base_perplexity, *same->arm_perplexity);
  const auto other = runner.compare_quality(tiny_workload(), arm({{"numerics", "reference"}}),
                                            arm({}), base->tokens);
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_GT(other->mean_kl, 0);
  EXPECT_LT(other->mean_kl, 0.1);
  EXPECT_GE(other->largest_kl, other->mean_kl);
  EXPECT_NE(*other->base_perplexity, *other->arm_perplexity);
}

TEST(EngineRunner, DescribesWhatItRunsOn) {
  EngineRunner runner;
  const auto subject = runner.describe(tiny_workload(), arm({{"prefill.chunk", "16"}}));
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  for (const char* key : {"vendor", "isa", "units", "memory_bytes"}) {
    EXPECT_FALSE(subject->device.at(key).empty()) << key;
  }
  EXPECT_EQ(subject->backend, "cpu");
  EXPECT_EQ(subject->model_family, "llama");
  EXPECT_EQ(subject->chunk, 16);
  EXPECT_GE(subject->threads, 1);
  EXPECT_EQ(subject->prompt_tokens, 40);
  EXPECT_EQ(subject->prompt_hash.size(), 32u);
  EXPECT_EQ(subject->model_hash.size(), 32u);
}

TEST(EngineRunner, HashesThePromptAsItIsRun) {
  EngineRunner runner;
  Workload cut = tiny_workload();
  cut.prompt += "A tail that is cut off.";
  cut.prompt_tokens = 8;
  Workload same = tiny_workload();
  same.prompt_tokens = 8;
  Workload other = tiny_workload();
  other.prompt_tokens = 9;
  const auto hash = [&](const Workload& workload) {
    const auto subject = runner.describe(workload, arm({}));
    return subject.ok() ? subject->prompt_hash : subject.error().message;
  };
  EXPECT_EQ(hash(cut), hash(same));
  EXPECT_NE(hash(same), hash(other));
}

TEST(EngineRunner, RefusesAnArmOverItsMemoryLimitBeforeRunning) {
  EngineRunner runner;
  Arm small = arm({});
  const auto unlimited = runner.predict(tiny_workload(), small);
  ASSERT_TRUE(unlimited.ok());
  EXPECT_TRUE(unlimited->fits);

  small.memory_limit_bytes = unlimited->planned_bytes - 1;
  const auto prediction = runner.predict(tiny_workload(), small);
  ASSERT_TRUE(prediction.ok()) << prediction.error().message;
  EXPECT_FALSE(prediction->fits);
  EXPECT_EQ(prediction->budget_bytes, *small.memory_limit_bytes);
  EXPECT_THAT(prediction->refusal, HasSubstr("the experiment's memory limit"));
  EXPECT_TRUE(std::is_sorted(prediction->terms.begin(), prediction->terms.end(),
                             [](const auto& a, const auto& b) { return a.bytes > b.bytes; }));

  const auto measurement = runner.measure(tiny_workload(), small);
  ASSERT_FALSE(measurement.ok());
  EXPECT_EQ(measurement.error().kind, ErrorKind::kRefused);

  small.memory_limit_bytes = unlimited->planned_bytes;
  EXPECT_TRUE(runner.measure(tiny_workload(), small).ok());
}

TEST(EngineRunner, BlamesTheQueueForWhatItGotWrong) {
  EngineRunner runner;
  const auto message = [&](const Workload& workload, const Arm& with) -> std::string {
    const auto prediction = runner.predict(workload, with);
    if (prediction.ok()) return "no error";
    EXPECT_EQ(prediction.error().kind, ErrorKind::kUsage);
    return prediction.error().message;
  };
  Workload narrow = tiny_workload();
  narrow.context = 45;
  EXPECT_THAT(message(narrow, arm({})), HasSubstr("context of 45"));
  Workload silent = tiny_workload();
  silent.prompt = "";
  silent.prompt_tokens = 0;
  EXPECT_THAT(message(silent, arm({})), HasSubstr("has no prompt"));
  Workload text_to_synthetic = tiny_workload();
  text_to_synthetic.model = "synth:tiny-llama";
  EXPECT_THAT(message(text_to_synthetic, arm({})), HasSubstr("has no tokenizer"));
  EXPECT_THAT(message(tiny_workload(), arm({{"prefill.chnk", "1"}})),
              HasSubstr("did you mean 'prefill.chunk'"));
  Workload nameless = tiny_workload();
  nameless.model = "smollm3";
  EXPECT_THAT(message(nameless, arm({})), HasSubstr("smollm2"));
}

TEST(EngineRunner, RunsASyntheticModelOnRandomTokens) {
  Workload workload = tiny_workload();
  workload.model = "synth:tiny-llama,layers=1";
  workload.prompt = "";
  workload.prompt_tokens = 24;
  EngineRunner runner;
  const auto subject = runner.describe(workload, arm({}));
  ASSERT_TRUE(subject.ok()) << subject.error().message;
  EXPECT_EQ(subject->model_name, "synth:tiny-llama (1 of 2 layers)");
  EXPECT_EQ(subject->prompt_tokens, 24);
  EXPECT_EQ(subject->weight_format, "bf16");
  const auto first = runner.measure(workload, arm({}));
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->tokens.size(), 6U);
  EXPECT_EQ(first->tokens, EngineRunner().measure(workload, arm({}))->tokens);
  workload.model = "synth:tiny-llama";
  const auto whole = runner.describe(workload, arm({}));
  EXPECT_EQ(whole->prompt_hash, subject->prompt_hash);
  EXPECT_NE(whole->model_shape_hash, subject->model_shape_hash);
}

TEST(EngineRunner, KnowsSwitchesAndTheirDefaults) {
  EngineRunner runner;
  EXPECT_TRUE(runner.check_switch("prefill.tile_order", "band8").ok());
  EXPECT_FALSE(runner.check_switch("prefill.tile_order", "band9").ok());
  EXPECT_EQ(runner.default_value("prefill.tile_order"), "row");
  EXPECT_EQ(runner.default_value("no.such.switch"), "");
}

TEST(EngineRunner, RecordsItsEnvironment) {
  const nlohmann::json environment = EngineRunner().environment();
  for (const char* key : {"device_name", "kernel", "compiler", "commit"}) {
    EXPECT_FALSE(environment.at(key).get<std::string>().empty()) << key;
  }
  EXPECT_TRUE(environment.at("dirty").is_boolean());
  const nlohmann::json& readings = environment.at("readings");
  for (const char* key :
       {"load_average", "device_vendor", "cpu_features", "device_cores", "device_memory_bytes"}) {
    EXPECT_FALSE(readings.value(key, "").empty()) << key;
  }
  EXPECT_GT(std::stoll(readings.at("device_cores").get<std::string>()), 0);
  EXPECT_GT(std::stoll(readings.at("device_memory_bytes").get<std::string>()), 1 << 20);
  EXPECT_THAT(readings.at("load_average").get<std::string>(),
              testing::MatchesRegex("([0-9]+\\.[0-9]+ ){3}.*"));
}

TEST(OpenRunner, OpensEveryKindOfItsTable) {
  for (const RunnerKind& kind : runner_kinds()) {
    EXPECT_TRUE(open_runner(kind.name).ok()) << kind.name;
  }
  const auto unknown = open_runner("teleport");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
}

TEST(EngineRunner, SaysWhatStandsBesideANumber) {
  EngineRunner runner;
  const auto rows = runner.evidence(tiny_workload(), arm({}), 1000);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  std::vector<std::string> names;
  for (const experiment::EvidenceRow& row : *rows) {
    names.push_back(row.name);
    EXPECT_FALSE(row.value.empty()) << row.name;
  }
  EXPECT_THAT(names, testing::ElementsAre(
                         "bytes moved a token, at least", "operations a token, at least",
                         "share of the memory bound", "share of the compute bound", "scratch"));
  Workload memory = tiny_workload();
  memory.metric = "peak_bytes";
  EXPECT_EQ(runner.evidence(memory, arm({}), 1000)->size(), 3u) << "no rate, no share";
}

// The slow-down of a known size is in no list, and is what it says.
TEST(EngineRunner, DoesBusyWorkForTestsOnly) {
  EngineRunner runner;
  ::unsetenv("RECKON_TEST_SWITCHES");
  const Status unknown = runner.check_switch("test.busy_percent", "50");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("unknown switch 'test.busy_percent'"));
  EXPECT_EQ(unknown.error().message.find("busy_percent,"), std::string::npos);
  ::setenv("RECKON_TEST_SWITCHES", "1", 1);
  EXPECT_TRUE(runner.check_switch("test.busy_percent", "50").ok());
  EXPECT_FALSE(runner.check_switch("test.busy_percent", "101").ok());
  ::unsetenv("RECKON_TEST_SWITCHES");

  const auto busy = arm({{"test.busy_percent", "100"}});
  const auto prediction = runner.predict(tiny_workload(), busy);
  const auto measurement = runner.measure(tiny_workload(), busy);
  const auto plain = runner.measure(tiny_workload(), arm({}));
  ASSERT_TRUE(prediction.ok() && measurement.ok() && plain.ok());
  EXPECT_EQ(measurement->tokens, plain->tokens);
  EXPECT_EQ(measurement->observed.size(), plain->observed.size() + 1);
  const auto certain = certain_rows(*prediction);
  EXPECT_TRUE(std::equal(certain.begin(), certain.end(), measurement->observed.begin(),
                         measurement->observed.end()));
}

}  // namespace
}  // namespace reckon::adapters
