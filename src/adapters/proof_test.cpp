// The proof that an arm ran can fail: two arms that are one kernel under two names, and a kernel
// that is not the one that the plan chose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "adapters/engine_runner.h"
#include "base/test_data.h"
#include "experiment/rows.h"
#include "experiment/run.h"
#include "ledger/fold.h"
#include "ledger/open.h"

namespace reckon::adapters {
namespace {

using kernels::Variant;
using testing::HasSubstr;

const Variant& matmul_row(std::span<const Variant> table, std::string_view name) {
  for (const Variant& row : table) {
    if (row.op == kernels::Op::kMatmul && row.name == name) return row;
  }
  ADD_FAILURE() << "the table has no matmul called " << name;
  return table.front();
}

// The build's own table, with `function` behind the name exact_avx2 on any machine.
std::vector<Variant> table_with_avx2(kernels::MatmulFn function) {
  const auto all = kernels::all_variants();
  std::vector<Variant> table(all.begin(), all.end());
  const Variant& scalar = matmul_row(all, "exact_scalar");
  for (Variant& row : table) {
    if (row.op != kernels::Op::kMatmul || std::string_view(row.name) != "exact_avx2") continue;
    row = scalar;
    row.name = "exact_avx2";
    row.function = function;
  }
  return table;
}

kernels::MatmulFn scalar_function() {
  return std::get<kernels::MatmulFn>(matmul_row(kernels::all_variants(), "exact_scalar").function);
}

// Another function than the scalar kernel's, which runs that kernel all the same.
void lying_matmul(const kernels::MatmulArgs& args, kernels::KernelContext& context) {
  scalar_function()(args, context);
}

std::string queue_text() {
  return "name: proof\n"
         "experiments:\n"
         "  - id: same-kernel\n"
         "    idea: A kernel under another name\n"
         "    model: " +
         golden_path("gguf/tiny-llama-mixed.gguf") +
         "\n"
         "    switch: {key: kernel.matmul, base: exact_scalar, arm: exact_avx2}\n"
         "    workload: {phase: decode, prompt: Once upon a time, prompt_tokens: 8, generate: 4}\n"
         "    metric: decode_tok_per_s\n"
         "    reach: {op: matmul}\n"
         "    claim: \"+2%\"\n";
}

TEST(Proof, TwoTableRowsOfOneFunctionAreVoidWithoutBeingRun) {
  const std::string folder = testing::TempDir() + "reckon-proof-ledger";
  std::filesystem::remove_all(folder);
  const auto store = ledger::open_store(folder);
  ASSERT_TRUE(store.ok());
  const auto queue = experiment::parse_queue(queue_text(), "proof.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;

  const std::vector<Variant> table = table_with_avx2(scalar_function());
  EngineRunner runner(table);
  experiment::RunOptions options;
  options.worker_command = {"/bin/false"};  // a round that was run would break
  options.writer = "tester";
  experiment::Progress silent;
  const auto outcome = experiment::run_queue(*queue, runner, **store, options, silent);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;

  const auto read = (*store)->read();
  ASSERT_TRUE(read.ok());
  const ledger::Ledger ledger = ledger::fold(read->events);
  ASSERT_EQ(ledger.entries.size(), 1U);
  ASSERT_TRUE(ledger.entries[0].verdict.has_value());
  EXPECT_EQ(ledger.entries[0].verdict->verdict, ledger::Verdict::kVoid);
  EXPECT_TRUE(ledger.entries[0].rounds.empty());
  std::filesystem::remove_all(folder);
}

TEST(Proof, AKernelThatIsNotTheChosenOneIsCaughtByTheTrace) {
  const auto queue = experiment::parse_queue(queue_text(), "proof.yaml");
  ASSERT_TRUE(queue.ok()) << queue.error().message;
  const std::vector<Variant> table = table_with_avx2(lying_matmul);
  EngineRunner runner(table);
  const experiment::Workload& workload = queue->experiments[0].workload;
  const experiment::Arm arm{"arm", {{"kernel.matmul", "exact_avx2"}}, {}};
  const auto prediction = runner.predict(workload, arm);
  ASSERT_TRUE(prediction.ok()) << prediction.error().message;
  const auto measurement = runner.measure(workload, arm);
  ASSERT_TRUE(measurement.ok()) << measurement.error().message;

  const Status observed = experiment::check_observed(*prediction, measurement->observed, "the arm");
  ASSERT_FALSE(observed.ok());
  EXPECT_EQ(observed.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(observed.error().message, HasSubstr("does not list"));
  EXPECT_THAT(observed.error().message, HasSubstr("exact_scalar"));
}

}  // namespace
}  // namespace reckon::adapters
