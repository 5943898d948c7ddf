// The example queues of programs as arms are run as they stand, each from a folder of its own, in
// one round of three pairs. No clock decides what is expected here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using testing::Contains;
using testing::HasSubstr;

// What is shipped in queues/, copied to where a user would run it.
void copy_example(const Sandbox& sandbox, const std::string& name) {
  std::filesystem::create_directories(sandbox.path("queues"));
  std::filesystem::create_directories(sandbox.path("build"));
  std::filesystem::copy_file(project_path("queues/" + name), sandbox.path("queues/" + name));
}

nlohmann::json run_quick(Sandbox& sandbox, const std::string& queue) {
  const Finished finished = sandbox.run(
      {"--ledger", "ledger", "queue", "run", "queues/" + queue, "--quick", "--no-pause", "--json"});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  const nlohmann::json json = finished.json();
  nlohmann::json outcomes;
  for (const auto& one : json.at("experiments")) {
    outcomes[one.at("id").get<std::string>()] = one;
  }
  return outcomes;
}

TEST(ExampleQueues, RunsAScriptAndBelievesItsDispatchFile) {
  Sandbox sandbox;
  copy_example(sandbox, "command-python.yaml");
  copy_example(sandbox, "command_sum.py");
  const nlohmann::json outcomes = run_quick(sandbox, "command-python.yaml");
  ASSERT_EQ(outcomes.size(), 2u) << outcomes;
  const nlohmann::json& builtin = outcomes["builtin"];
  EXPECT_EQ(builtin["verdict"], "INCONCLUSIVE") << builtin["text"];
  ASSERT_EQ(builtin["rounds"].size(), 1u);
  EXPECT_GT(builtin["rounds"][0]["base_value"], 0);
  EXPECT_GT(builtin["rounds"][0]["arm_value"], 0);
  const nlohmann::json& proof = builtin["result"]["proof"];
  EXPECT_FALSE(proof.contains("weak")) << proof;
  EXPECT_THAT(proof["only_base"], Contains("run sum loop"));
  EXPECT_THAT(proof["only_arm"], Contains("run sum sum"));
  // The same function under its other name, which only running it shows.
  EXPECT_EQ(outcomes["renamed"]["verdict"], "VOID") << outcomes["renamed"];
}

TEST(ExampleQueues, RunsAPlainProgramByItsWallTime) {
  Sandbox sandbox;
  copy_example(sandbox, "command-plain.yaml");
  sandbox.write("build/numbers.txt", "1\n2\n3\n");
  const nlohmann::json outcomes = run_quick(sandbox, "command-plain.yaml");
  ASSERT_EQ(outcomes.size(), 1u) << outcomes;
  const nlohmann::json& fastest = outcomes["fastest-level"];
  EXPECT_EQ(fastest["verdict"], "INCONCLUSIVE") << fastest["text"];
  EXPECT_GT(fastest["rounds"][0]["arm_value"], 0);
  EXPECT_THAT(fastest["result"]["proof"]["weak"].get<std::string>(), HasSubstr("command line"));
}

}  // namespace
}  // namespace reckon::cli
