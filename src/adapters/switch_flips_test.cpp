// Switches flip at run time: one process takes a plain run, a run with one switch flipped, and the
// plain run again, for every switch and what it may be set to. What the plan says of the flip is
// what is dispatched, or both refuse it alike; and it leaves nothing behind, neither in what the
// plain run does nor in the memory that the backend holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapters/command_testing.h"
#include "adapters/engine_runner.h"
#include "experiment/rows.h"
#include "kernels/device.h"
#include "models/test_checkpoints.h"

namespace reckon::adapters {
namespace {

using experiment::Arm;
using experiment::DispatchRow;
using experiment::Measurement;
using experiment::SwitchValues;
using experiment::Workload;
using kernels::SwitchInfo;
using kernels::SwitchKind;
using testing::HasSubstr;
using testing::IsSupersetOf;

// A workload with the settings that it is run with between flips.
struct Flipped {
  Workload workload;
  SwitchValues plain;
  SwitchValues drafting;  // beside a switch of decode, so that passes verify drafts
  std::string experts;    // beside a switch of experts: the kernel that it is for
};

Workload workload_of(const std::string& model, int64_t prompt_tokens, int64_t generate_tokens) {
  Workload workload;
  workload.model = model;
  workload.phase = "decode";
  workload.prompt_tokens = prompt_tokens;
  workload.generate_tokens = generate_tokens;
  workload.metric = "decode_tok_per_s";
  return workload;
}

Flipped dense() {
  Flipped flipped;
  flipped.workload = workload_of(golden_path("gguf/tiny-llama-mixed.gguf"), 40, 5);
  flipped.workload.prompt = "It was the best of times, it was the worst of times. ";
  flipped.drafting = {{"decode.drafter", "replay:0.9"}, {"decode.mtp_depth", "5"}};
  flipped.experts = "fast_amx";
  return flipped;
}

// A hybrid with routed experts that its own head drafts for; as many tokens as let the fast delta
// rule take them, and eight to have a pass of six rows.
Flipped drafting_experts() {
  Flipped flipped;
  flipped.workload = workload_of(golden_path("oracle/qwen3_5_moe-s0"), 50, 8);
  flipped.plain = flipped.drafting = {{"decode.mtp_depth", "5"}};
  flipped.experts = "fast_amx";
  return flipped;
}

// One that is packed, and drafts nothing between flips.
Flipped packed_experts() {
  Flipped flipped;
  flipped.workload = workload_of("synth:tiny-qwen3.5-moe", 40, 3);
  flipped.workload.quant = "q4";
  flipped.plain = {{"decode.mtp_depth", "0"}};
  flipped.drafting = {{"decode.mtp_depth", "2"}};
  flipped.experts = "fast_rows_amx";
  return flipped;
}

// A folder of matrices that all have panels once they are packed, some with a K of several parts.
void widen(models::TinyFolder& folder) {
  folder.config.update({{"hidden_size", 128}, {"head_dim", 64}, {"intermediate_size", 1152}});
  for (auto& [name, shape] : folder.shapes) {
    for (int64_t& size : shape) size = size == 8 ? 128 : size == 4 ? 64 : size == 12 ? 1152 : size;
  }
}

Workload packed(models::TinyFolder& folder, int64_t prompt_tokens, int64_t generate_tokens) {
  widen(folder);
  Workload workload = workload_of(folder.write(), prompt_tokens, generate_tokens);
  workload.quant = "q4";
  return workload;
}

// What the switch is flipped to: every word, both ends of a range, one number of each form, a file.
std::vector<std::string> values_of(const SwitchInfo& info, const std::string& rule_file) {
  const std::map<std::string, std::string> numbers = {
      {"replay", "0.9"}, {"prob", "0.5"}, {"margin", "4"}};
  constexpr int64_t kMostThreads = 4;
  std::vector<std::string> values = info.values;
  for (const kernels::SwitchForm& form : info.forms) {
    values.push_back(form.word + ":" + numbers.at(form.word));
  }
  if (info.kind == SwitchKind::kInteger) {
    values.push_back(std::to_string(info.minimum));
    values.push_back(std::to_string(info.key == "cpu.threads" ? kMostThreads : info.maximum));
  }
  if (info.kind == SwitchKind::kFile) values.push_back(rule_file);
  return values;
}

// What is set beside a switch, without which it would decide nothing.
SwitchValues beside(const SwitchInfo& info, const Flipped& flipped) {
  SwitchValues switches = flipped.plain;
  const auto set = [&](const SwitchValues& more) {
    for (const auto& [key, value] : more) switches[key] = value;
  };
  if (info.key.starts_with("decode.")) set(flipped.drafting);
  if (info.key == "prefill.tile_order") {  // exact_avx2 has bands
    set({{"cpu.isa", "avx2"}, {"prefill.numerics", "exact"}});
  }
  if (info.key == "decode.multi_max") set({{"decode.verify_kernel", "fast"}});
  if (info.key.starts_with("moe.")) set({{"prefill.expert_matmul", flipped.experts}});
  return switches;
}

std::string rules_text() {
  return "name: t\ndate: today\nledger: unmeasured\nchunks: [8]\nshapes: []\n"
         "when: {backend: cpu, device.vendor: v, device.isa: i, device.units: 1}\n"
         "rules: [{op: matmul, type: any, n: 1.., k: 1.., rows: 1.., tile: tall}]\n";
}

uint64_t held_bytes() {
  return kernels::cpu_backend().memory().held_bytes();
}

// What the arm did where it runs, which is as planned; nothing where plan and run refuse it alike.
std::optional<Measurement> run(EngineRunner& runner, const Workload& workload, const Arm& arm) {
  const auto prediction = runner.predict(workload, arm);
  auto measurement = runner.measure(workload, arm);
  const auto said = [](const auto& result) {
    return result.ok() ? std::string("ran") : result.error().message;
  };
  if (!prediction.ok() || !measurement.ok()) {
    EXPECT_TRUE(!prediction.ok() && !measurement.ok() &&
                prediction.error().kind == measurement.error().kind)
        << "the plan: " << said(prediction) << "; the run: " << said(measurement);
    return std::nullopt;
  }
  const Status agrees = experiment::check_observed(*prediction, measurement->observed, "the arm");
  EXPECT_TRUE(agrees.ok()) << agrees.error().message;
  return std::move(measurement).value();
}

void expect_same(const Measurement& first, const Measurement& again) {
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(again.margins, first.margins);
  EXPECT_EQ(again.observed, first.observed);
  EXPECT_EQ(again.peak_bytes, first.peak_bytes);
}

// Flips every switch, and gives those whose values dispatched different things.
std::set<std::string> flip_every_switch(const Flipped& flipped) {
  const TestFolder folder;
  const std::string rule_file = folder.write("rules.yaml", rules_text());
  const Arm plain{"plain", flipped.plain, {}};
  std::set<std::string> moved;
  EngineRunner runner;
  const auto first = run(runner, flipped.workload, plain);
  if (!first) return moved;
  const uint64_t held = held_bytes();
  for (const SwitchInfo& info : kernels::switch_registry()) {
    std::set<std::vector<DispatchRow>> seen;
    for (const std::string& value : values_of(info, rule_file)) {
      SCOPED_TRACE(info.key + "=" + value);
      Arm arm{"flipped", beside(info, flipped), {}};
      arm.switches[info.key] = value;
      if (const auto measured = run(runner, flipped.workload, arm)) seen.insert(measured->observed);
      const auto again = runner.measure(flipped.workload, plain);
      EXPECT_TRUE(again.ok()) << again.error().message;
      if (again.ok()) expect_same(*first, *again);
      EXPECT_EQ(held_bytes(), held);
    }
    if (seen.size() > 1) moved.insert(info.key);
  }
  return moved;
}

// Which kernels there are to choose from is the machine's; one with AMX has all of them.
void expect_moved(const std::set<std::string>& moved, const std::vector<std::string>& least) {
  if (kernels::detect_cpu().best_isa < kernels::Isa::kAmx) return;
  EXPECT_THAT(moved, IsSupersetOf(least));
}

TEST(SwitchFlips, OfADenseModelLeaveNothingBehind) {
  expect_moved(
      flip_every_switch(dense()),
      {"cpu.isa", "decode.drafter", "decode.mtp_depth", "decode.multi_max", "decode.verify_kernel",
       "kernel.attention", "kernel.matmul", "numerics", "prefill.chunk", "prefill.matmul",
       "prefill.numerics", "prefill.tile", "prefill.tile_order", "prefill.tile_rules"});
}

TEST(SwitchFlips, OfExpertsThatAreDraftedForLeaveNothingBehind) {
  expect_moved(flip_every_switch(drafting_experts()),
               {"cpu.isa", "decode.drafter", "decode.mtp_depth", "kernel.expert_matmul_swiglu",
                "kernel.gated_delta_rule", "numerics", "prefill.chunk", "prefill.expert_matmul",
                "prefill.numerics"});
}

TEST(SwitchFlips, OfPackedExpertsLeaveNothingBehind) {
  expect_moved(flip_every_switch(packed_experts()),
               {"moe.expert_tile", "moe.skip_empty", "prefill.expert_matmul"});
}

TEST(SwitchFlips, OfAPackedDenseModelLeaveNothingBehind) {
  models::TinyFolder folder;
  Flipped flipped;
  flipped.workload = packed(folder, 40, 3);
  flipped.drafting = {{"decode.drafter", "lookup"}, {"decode.mtp_depth", "2"}};
  flipped.experts = "fast_amx";
  expect_moved(flip_every_switch(flipped), {"prefill.matmul", "prefill.split_k"});
}

TEST(SwitchFlips, OfModelsLeaveNothingBehind) {
  const uint64_t before = held_bytes();
  {
    EngineRunner runner;
    std::map<std::string, std::pair<Measurement, uint64_t>> seen;
    for (int turn = 0; turn < 2; ++turn) {
      for (const Flipped& flipped : {dense(), drafting_experts(), packed_experts()}) {
        const auto measured = run(runner, flipped.workload, {"plain", flipped.plain, {}});
        ASSERT_TRUE(measured);
        const auto [first, is_new] =
            seen.try_emplace(flipped.workload.model, *measured, held_bytes());
        expect_same(first->second.first, *measured);
        EXPECT_EQ(held_bytes(), first->second.second) << flipped.workload.model;
      }
    }
  }
  EXPECT_EQ(held_bytes(), before);
}

// The line with which both the plan and the run refuse.
std::string refusal(const Workload& workload, const SwitchValues& switches) {
  EngineRunner runner;
  const Arm arm{"arm", switches, {}};
  const auto prediction = runner.predict(workload, arm);
  const auto measurement = runner.measure(workload, arm);
  if (prediction.ok() || measurement.ok()) {
    return std::string(prediction.ok() ? "planned" : "not planned") +
           (measurement.ok() ? ", run" : ", not run");
  }
  EXPECT_EQ(prediction.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(measurement.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(prediction.error().message, measurement.error().message);
  return prediction.error().message;
}

// A session has kernels for decode and for a whole chunk even where the workload has neither.
TEST(SwitchFlips, AreRefusedByThePlanWhereTheSessionRefusesThem) {
  if (kernels::detect_cpu().best_isa < kernels::Isa::kAmx) GTEST_SKIP() << "no such kernels";
  models::TinyFolder folder;
  Workload prefill = packed(folder, 40, 0);
  EXPECT_EQ(refusal(prefill, {{"kernel.attention", "fast_avx512"}}),
            "kernel.attention=fast_avx512 is of class fast, but decode needs exact");
  const SwitchValues few = {{"prefill.matmul", "fast_few_amx"}};
  EXPECT_THAT(refusal(prefill, few), HasSubstr("more than 16 rows"));
  prefill.prompt_tokens = 12;
  EXPECT_EQ(refusal(prefill, few), "planned, run");
  prefill.context = 20;
  EXPECT_THAT(refusal(prefill, few), HasSubstr("more than 16 rows"));
}

}  // namespace
}  // namespace reckon::adapters
