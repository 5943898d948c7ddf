// What `queue check` says of experiments on split-K and on verify kernels, without running them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_testing.h"
#include "formats/test_files.h"
#include "kernels/device.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool machine_has(kernels::Isa isa) {
  return kernels::detect_cpu().best_isa >= isa;
}

// The one experiment of a queue, as checked.
nlohmann::json checked(const std::string& model, const std::string& lines) {
  Sandbox sandbox;
  sandbox.write("queue.yaml", fmt::format("name: kernels\n"
                                          "defaults: {{model: {}, rounds: 2, pairs: 1}}\n"
                                          "experiments:\n"
                                          "  - id: one\n"
                                          "    idea: Another kernel\n"
                                          "    claim: \"+2%\"\n{}",
                                          model, lines));
  const Finished check =
      sandbox.run({"--ledger", "ledger", "queue", "check", "queue.yaml", "--json"});
  const nlohmann::json json = check.json();
  if (!json.contains("experiments")) {
    ADD_FAILURE() << check.out << check.err;
    return {};
  }
  return json["experiments"][0];
}

nlohmann::json verify_experiment(const char* kernel, int depth) {
  return checked(
      tiny_model(),
      fmt::format("    switch: {{key: decode.verify_kernel, base: exact, arm: {}}}\n"
                  "    set: {{decode.drafter: \"replay:0.8\", decode.mtp_depth: {}}}\n"
                  "    workload: {{phase: decode, prompt: Once upon a time, generate: 32}}\n"
                  "    metric: decode_tok_per_s\n"
                  "    reach: {{op: matmul, phase: verify}}\n"
                  "    tokens: may-diverge\n",
                  kernel, depth));
}

TEST(QueueOfVerifyKernels, FastIsVoidUpToMultiMaxRowsAndRunsBeyond) {
  const nlohmann::json four = verify_experiment("fast", 3);
  EXPECT_EQ(four["kind"], "would-be-void");
  EXPECT_THAT(four["text"].get<std::string>(),
              AllOf(HasSubstr("equal at matmul/verify"),
                    HasSubstr("rows up to 4 stay on the exact multi-row kernel: "
                              "decode.multi_max=4")));
  if (!machine_has(kernels::Isa::kAmx)) GTEST_SKIP() << "this machine has no AMX";
  const nlohmann::json six = verify_experiment("fast", 5);
  EXPECT_EQ(six["kind"], "would-run") << six;
  EXPECT_THAT(six["only_arm"].dump(), HasSubstr("verify matmul 6x"));
  EXPECT_THAT(six["only_base"].dump(), HasSubstr("exact_panels_avx512"));
}

TEST(QueueOfVerifyKernels, StreamIsVoidAtTwoRowsAndRunsAtFour) {
  const nlohmann::json two = verify_experiment("stream", 1);
  EXPECT_EQ(two["kind"], "would-be-void");
  if (!machine_has(kernels::Isa::kAvx512)) GTEST_SKIP() << "this machine has no AVX-512";
  EXPECT_THAT(two["text"].get<std::string>(), HasSubstr("stream_avx512 takes 3 to 6 rows"));
  const nlohmann::json four = verify_experiment("stream", 3);
  EXPECT_EQ(four["kind"], "would-run") << four;
  EXPECT_THAT(four["only_arm"].dump(), HasSubstr("stream_avx512"));
}

nlohmann::json split_k_experiment(const char* set, int chunk, const char* limit) {
  return checked(smollm2_path(),
                 fmt::format("    switch: {{key: prefill.split_k, base: \"off\", arm: exact}}\n"
                             "    set: {{prefill.chunk: {}{}}}\n"
                             "    workload: {{phase: prefill, prompt: Once upon a time, "
                             "prompt_tokens: {}}}\n"
                             "    metric: prefill_tok_per_s\n"
                             "    reach: {{op: matmul, phase: prefill}}\n{}",
                             chunk, set, chunk, limit));
}

TEST(QueueOfSplitK, LosesByMemoryBeforeItIsRun) {
  RECKON_REQUIRE_SMOLLM2();
  if (!machine_has(kernels::Isa::kAvx512)) GTEST_SKIP() << "this machine has no AVX-512";
  const char* chunked = ", prefill.numerics: exact, kernel.matmul: gemv_chunked";
  const nlohmann::json fits = split_k_experiment(chunked, 512, "    memory_limit: plan+32MiB\n");
  EXPECT_EQ(fits["kind"], "would-run") << fits;
  EXPECT_THAT(fits["only_base"].dump(), HasSubstr("gemv_chunked"));
  EXPECT_THAT(fits["only_arm"].dump(), HasSubstr("split_k_exact_avx512"));
  const nlohmann::json large = split_k_experiment(chunked, 4096, "    memory_limit: plan+32MiB\n");
  EXPECT_EQ(large["kind"], "would-not-fit") << large;
  EXPECT_THAT(large["text"].get<std::string>(),
              AllOf(HasSubstr("the experiment's memory limit"), HasSubstr("scratch")));
}

TEST(QueueOfSplitK, ExactIsVoidWherePrefillIsFast) {
  RECKON_REQUIRE_SMOLLM2();
  if (!machine_has(kernels::Isa::kAmx)) GTEST_SKIP() << "this machine has no AMX";
  const nlohmann::json fast = split_k_experiment("", 512, "");
  EXPECT_EQ(fast["kind"], "would-be-void") << fast;
  EXPECT_THAT(fast["text"].get<std::string>(),
              HasSubstr("prefill.split_k=exact changes nothing: fast_amx is of class fast, by "
                        "prefill.numerics=fast"));
}

}  // namespace
}  // namespace reckon::cli
