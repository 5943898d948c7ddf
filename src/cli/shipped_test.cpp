// What the repository ships for users: its queues, as `queue check` sees them, and its recipes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "cli/command_testing.h"
#include "formats/test_files.h"
#include "kernels/backend.h"
#include "kernels/recipe.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

const kernels::Device& this_device() {
  return kernels::cpu_backend().device();
}

#define RECKON_REQUIRE_AMX()                         \
  if (this_device().best_isa < kernels::Isa::kAmx) { \
    GTEST_SKIP() << "this machine has no AMX";       \
  }                                                  \
  static_assert(true)

// Checks queues as if in the project's folder: rule files are found there, and the small model.
class ShippedQueues : public testing::Test {
 protected:
  ShippedQueues() {
    fs::create_directory_symlink(project_path("rules"), sandbox_.path("rules"));
    fs::create_directory_symlink(project_path("prompts"), sandbox_.path("prompts"));
    const fs::path models = sandbox_.path(".cache/reckon/models");
    fs::create_directories(models);
    if (!smollm2_path().empty()) fs::create_symlink(smollm2_path(), models / "smollm2.gguf");
  }

  nlohmann::json check(const std::string& file, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--ledger", "ledger", "queue", "check", file, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = sandbox_.run(arguments);
    nlohmann::json json = finished.json();
    if (!json.is_object()) {
      ADD_FAILURE() << file << ": " << finished.out << finished.err;
      return {{"exit_code", finished.code}, {"experiments", nlohmann::json::array()}};
    }
    return json;
  }

  nlohmann::json check_shipped(const std::string& name, const std::vector<std::string>& more = {}) {
    return check(project_path("queues/" + name), more);
  }

  static std::string text_of(const std::string& name) {
    return file_text(project_path("queues/" + name));
  }

  Sandbox sandbox_;
};

// The kind or the text of an experiment.
std::string said_of(const nlohmann::json& queue, const std::string& id, const char* key) {
  for (const auto& one : queue["experiments"]) {
    if (one["id"] == id) return one[key];
  }
  return "absent";
}

std::string kind_of(const nlohmann::json& queue, const std::string& id) {
  return said_of(queue, id, "kind");
}

// Nothing is wrong or refused, and every comparison that would run finds its A/A rounds in the
// queue itself.
void expect_sound(const nlohmann::json& queue) {
  EXPECT_EQ(queue["exit_code"], 0);
  EXPECT_FALSE(queue["experiments"].empty());
  for (const auto& one : queue["experiments"]) {
    EXPECT_THAT(one["kind"].get<std::string>(),
                testing::AnyOf("would-run", "would-be-void", "would-not-fit"))
        << one["id"] << ": " << one["text"];
    EXPECT_THAT(one["notes"].dump(), Not(HasSubstr("must end INCONCLUSIVE"))) << one["id"];
  }
}

// Queues of the demonstration, on each model that it takes.
class DemoQueues : public ShippedQueues, public testing::WithParamInterface<std::string> {
 protected:
  // As the demonstration does: --quant none for a file that is packed already.
  std::vector<std::string> on_the_model(std::vector<std::string> more = {}) {
    more.insert(more.end(), {"-m", real_model(GetParam())});
    return more;
  }
  std::vector<std::string> ideas_on_the_model(std::vector<std::string> more = {}) {
    if (GetParam() != "tiny") more.insert(more.end(), {"--quant", "none"});
    return on_the_model(std::move(more));
  }
};

INSTANTIATE_TEST_SUITE_P(Models, DemoQueues, testing::ValuesIn(real_models()),
                         [](const auto& model) { return model.param; });

TEST_P(DemoQueues, FirstEndsInEachUsualWay) {
  RECKON_REQUIRE_MODEL(GetParam());
  if (this_device().best_isa < kernels::Isa::kAvx2) GTEST_SKIP() << "this machine has no AVX2";
  const nlohmann::json queue = check_shipped("first.yaml", on_the_model());
  expect_sound(queue);
  EXPECT_EQ(kind_of(queue, "floor-decode"), "would-run");
  EXPECT_EQ(kind_of(queue, "matmul-avx2"), "would-run");
  EXPECT_EQ(kind_of(queue, "band8-short-prompt"), "would-be-void");
  EXPECT_EQ(kind_of(queue, "one-big-chunk"), "would-not-fit");
}

TEST_P(DemoQueues, FiveIdeasAreSound) {
  RECKON_REQUIRE_MODEL(GetParam());
  RECKON_REQUIRE_AMX();
  const nlohmann::json queue = check_shipped("five-ideas.yaml", ideas_on_the_model({"--full"}));
  expect_sound(queue);
  EXPECT_EQ(kind_of(queue, "1-split-k-exact-memory"), "would-not-fit");
  EXPECT_EQ(kind_of(queue, "5-fast-verify-4-rows"), "would-be-void");
  for (const char* id :
       {"1-split-k-exact", "1-split-k-fast", "2-band8", "2-band8-avx2", "3-rule-of-128",
        "4-expert-tile:16", "4-expert-tile:64", "5-fast-verify-6-rows:stream"}) {
    EXPECT_EQ(kind_of(queue, id), "would-run") << id;
  }
  // Weights that are packed at load decline bfloat16 in verifies; those of a file do not.
  EXPECT_EQ(kind_of(queue, "5-fast-verify-6-rows:fast"),
            GetParam() == "tiny" ? "would-be-void" : "would-run");
}

// What a CPU with AVX2 alone measures.
TEST_P(DemoQueues, ABandOfTilesRunsWithAvx2) {
  RECKON_REQUIRE_MODEL(GetParam());
  if (this_device().best_isa < kernels::Isa::kAvx2) GTEST_SKIP() << "this machine has no AVX2";
  const nlohmann::json queue = check_shipped("five-ideas.yaml", ideas_on_the_model());
  EXPECT_EQ(queue["exit_code"], 0);
  EXPECT_EQ(kind_of(queue, "2-band8-avx2"), "would-run") << said_of(queue, "2-band8-avx2", "text");
}

TEST_F(ShippedQueues, MtpDepthIsSound) {
  RECKON_REQUIRE_TINY();
  const nlohmann::json queue = check_shipped("mtp-depth.yaml", {"-m", tiny_path()});
  expect_sound(queue);
  EXPECT_EQ(queue["experiments"].size(), 25U);
  for (const auto& one : queue["experiments"]) EXPECT_EQ(one["kind"], "would-run") << one["id"];
}

TEST_F(ShippedQueues, CpuDefaultsAreSound) {
  RECKON_REQUIRE_SMOLLM2();
  RECKON_REQUIRE_AMX();
  expect_sound(check_shipped("cpu-defaults.yaml"));
}

TEST_F(ShippedQueues, KnownSlowdownIsSoundWithItsSwitch) {
  RECKON_REQUIRE_SMOLLM2();
  ::setenv("RECKON_TEST_SWITCHES", "1", 1);
  const nlohmann::json queue = check_shipped("known-slowdown.yaml");
  ::unsetenv("RECKON_TEST_SWITCHES");
  expect_sound(queue);
  EXPECT_EQ(kind_of(queue, "busy-2-percent"), "would-run");
}

// The demonstration must reach its verdicts on whatever machine it is on.
TEST_P(DemoQueues, FiveIdeasHoldOnACpuWithoutTheirKernels) {
  RECKON_REQUIRE_MODEL(GetParam());
  std::string text = text_of("five-ideas.yaml");
  const std::string set = "    set: {";
  for (size_t at = text.find(set); at != std::string::npos; at = text.find(set, at + 1)) {
    text.insert(at + set.size(), "cpu.isa: scalar, ");
  }
  const nlohmann::json queue = check(sandbox_.write("narrow.yaml", text), ideas_on_the_model());
  EXPECT_EQ(queue["exit_code"], 0);
  for (const auto& one : queue["experiments"]) EXPECT_NE(one["kind"], "failed") << one;
  for (const char* id : {"1-floor", "1-split-k-exact", "2-floor", "2-band8"}) {
    EXPECT_EQ(kind_of(queue, id), "would-refuse") << id;
  }
  EXPECT_THAT(said_of(queue, "1-floor", "text"),
              AllOf(HasSubstr("not on this device: kernel.matmul="), HasSubstr("needs avx512"),
                    HasSubstr("cpu.isa=scalar allows scalar here"), Not(HasSubstr("narrow.yaml"))));
}

TEST_F(ShippedQueues, ConsultLeavesOutWhatThisDeviceCannotRun) {
  const std::string file = sandbox_.write(
      "queue.yaml",
      fmt::format("name: q\n"
                  "defaults: {{model: {}, metric: prefill_tok_per_s}}\n"
                  "experiments:\n"
                  "  - id: wide\n"
                  "    idea: Wider vectors\n"
                  "    switch: {{key: kernel.matmul, base: exact_scalar, arm: exact_avx512}}\n"
                  "    set: {{cpu.isa: scalar}}\n"
                  "    workload: {{phase: prefill, prompt: Once}}\n"
                  "  - id: chunk\n"
                  "    idea: A shorter chunk\n"
                  "    switch: {{key: prefill.chunk, base: 8, arm: 4}}\n"
                  "    workload: {{phase: prefill, prompt: Once}}\n",
                  tiny_model()));
  const Finished json = sandbox_.run({"--ledger", "ledger", "ledger", "consult", file, "--json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_EQ(json.json()["answers"].size(), 1U);
  EXPECT_EQ(json.json()["unsupported"][0]["experiment"], "wide");
  const Finished text = sandbox_.run({"--ledger", "ledger", "ledger", "consult", file});
  EXPECT_THAT(text.out, HasSubstr("not asked: wide: not on this device: kernel.matmul="));
  const Finished one =
      sandbox_.run({"--ledger", "ledger", "ledger", "consult", "-m", tiny_model(), "--switch",
                    "kernel.matmul=exact_scalar,exact_avx512", "--set", "cpu.isa=scalar"});
  EXPECT_EQ(one.code, 2);
  EXPECT_TRUE(one.one_error_line()) << one.err;
}

TEST_P(DemoQueues, ATypoIsStillAMistakeOfTheQueue) {
  RECKON_REQUIRE_MODEL(GetParam());
  std::string text = text_of("five-ideas.yaml");
  const std::string name = "gemv_chunked";
  const size_t at = text.find(name);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, name.size(), "gemv_chunkedd");
  const nlohmann::json queue = check(sandbox_.write("typo.yaml", text), ideas_on_the_model());
  EXPECT_EQ(queue["exit_code"], 2);
  EXPECT_THAT(queue.dump(), HasSubstr("did you mean 'gemv_chunked'?"));
}

// The plan without what only says why: equal plans run the same code in the same memory.
nlohmann::json plan_of(Sandbox& sandbox, const std::string& model, const std::string& recipe) {
  std::vector<std::string> arguments = {"plan", "-m", model, "--json"};
  if (!recipe.empty()) arguments.insert(arguments.end(), {"--recipe", recipe});
  const Finished finished = sandbox.run(arguments);
  EXPECT_EQ(finished.code, 0) << finished.err;
  nlohmann::json plan = finished.json();
  if (!plan.is_object()) return {};
  for (const char* key : {"budget_bytes", "budget_source"}) plan.erase(key);
  for (auto& call : plan["calls"]) {
    for (const char* key : {"rule", "reason"}) call.erase(key);
  }
  return plan;
}

// What was measured to be the best is what happens without a recipe, too.
TEST(ShippedRecipes, SetNothingButTheDefaults) {
  std::vector<std::string> models = {tiny_model(), golden_path("oracle/qwen3_5_moe-s0")};
  for (const std::string& name : real_models()) {
    if (!real_model(name).empty()) models.push_back(real_model(name));
  }
  std::error_code absent;
  for (const auto& file : fs::directory_iterator(project_path("recipes"), absent)) {
    if (file.path().extension() != ".yaml") continue;
    const std::string path = file.path().string();
    const auto recipe = kernels::load_recipe(path);
    ASSERT_TRUE(recipe.ok()) << recipe.error().message;
    kernels::SwitchSet switches;
    if (!recipe->apply(this_device(), switches).ok()) continue;  // for another device
    for (const auto& [key, value] : switches.changed()) {
      const std::string plain = kernels::find_switch(key)->default_value;
      EXPECT_TRUE(plain == "auto" || plain == "all") << path << ": " << key << "=" << value;
    }
    Sandbox sandbox;
    for (const std::string& model : models) {
      const nlohmann::json with = plan_of(sandbox, model, path);
      EXPECT_EQ(with, plan_of(sandbox, model, "")) << path << ", " << model;
      EXPECT_FALSE(with["calls"].empty());
    }
  }
}

TEST(Recipes, SayOnceWhatTheyLeaveOut) {
  Sandbox sandbox;
  const std::string recipe =
      sandbox.write("r.yaml",
                    "switches:\n"
                    "  - {key: prefill.chunk, value: 8, when: {backend: cpu}}\n"
                    "  - {key: decode.graph, value: \"off\", when: {backend: cuda}}\n");
  const Finished finished = sandbox.run({"bench", "-m", tiny_model(), "--recipe", recipe, "-p", "8",
                                         "-n", "1", "-r", "1", "-o", "jsonl"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("\"prefill.chunk\":\"8\""));
  EXPECT_THAT(lines_of(finished.err),
              testing::ElementsAre("note: " + recipe +
                                   ":3: decode.graph=off is left out: for backend cuda; this is "
                                   "backend cpu"));
}

}  // namespace
}  // namespace reckon::cli
