// What an experiment's scope says before anything runs.
#include "experiment/prepare.h"

#include <gmock/gmock.h>

#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::HasSubstr;
using testing::Not;

// Of the one experiment of a queue whose prompt has `tokens` tokens.
ledger::Scope scope_of(const std::string& metric, const std::string& phase, int tokens, int chunk) {
  const Result<Queue> queue = parse_queue(
      queue_text(fmt::format("  - id: x\n    kind: aa\n    metric: {}\n    set: {{prefill.chunk: "
                             "{}}}\n    workload: {{phase: {}, prompt_tokens: {}, generate: 8}}\n",
                             metric, chunk, phase, tokens)),
      "test.yaml");
  EXPECT_TRUE(queue.ok()) << queue.error().message;
  FakeRunner runner;
  const Result<Prepared> prepared = prepare(queue->path, queue->experiments.front(), runner);
  EXPECT_TRUE(prepared.ok()) << prepared.error().message;
  return prepared->scope;
}

TEST(WorkloadClass, HasTheChunkOfPrefill) {
  const auto prefill = [](int tokens, int chunk) {
    return scope_of("prefill_tok_per_s", "prefill", tokens, chunk);
  };
  EXPECT_THAT(prefill(2048, 512).workload_class, HasSubstr(" prompt=2048 "));
  EXPECT_THAT(prefill(2048, 512).workload_class, HasSubstr(" chunk=512"));
  EXPECT_FALSE(ledger::same_noise(prefill(2048, 512), prefill(2048, 128)));
  EXPECT_TRUE(ledger::same_noise(prefill(100, 512), prefill(100, 128))) << "one pass either way";
}

TEST(WorkloadClass, HasNoChunkInDecode) {
  const auto decode = [](int chunk) { return scope_of("decode_tok_per_s", "decode", 2048, chunk); };
  EXPECT_THAT(decode(512).workload_class, Not(HasSubstr("chunk")));
  EXPECT_TRUE(ledger::same_noise(decode(512), decode(128)));
}

}  // namespace
}  // namespace reckon::experiment
