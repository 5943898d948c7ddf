// A condition to revisit an entry, of what this machine is now, lifts its block in the product.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_testing.h"
#include "ledger/event.h"
#include "ledger/open.h"
#include "ledger/record.h"

namespace reckon::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LedgerConditions : public testing::Test {
 protected:
  void SetUp() override {
    sandbox_.write("queue.yaml", fmt::format(R"(name: one
experiments:
  - id: larger-chunk
    idea: Run the prompt in one chunk
    model: {}
    metric: peak_bytes
    switch: {{key: prefill.chunk, base: 8, arm: 32}}
    workload: {{phase: prefill, prompt: It was the best of times, prompt_tokens: 32}}
)",
                                             tiny_model()));
  }
  Finished consult() { return sandbox_.run({"--ledger", "ledger", "ledger", "consult", kQueue}); }

  // An entry of the queue's scope on this machine, LOST when its kernel was another.
  void store_lost(const std::string& kernel, const std::string& condition) {
    std::filesystem::remove_all(sandbox_.path("ledger"));
    const nlohmann::json asked =
        sandbox_.run({"--ledger", "ledger", "ledger", "consult", kQueue, "--json"}).json();
    ledger::IdeaBody idea;
    idea.text = "Run the prompt in one chunk";
    idea.scope = ledger::scope_from_json(asked["answers"][0]["scope"]).value();
    ledger::VerdictBody verdict;
    verdict.verdict = ledger::Verdict::kLost;
    verdict.environment.kernel = kernel;
    verdict.revisit_when = {condition};
    const std::string time = "2026-09-14T08:30:00Z";
    const ledger::Event first =
        ledger::make_first_event(ledger::EventType::kIdea, ledger::encode(idea), "ann", time)
            .value();
    const std::vector<ledger::Event> events = {
        first, ledger::make_event(ledger::EventType::kVerdict, first.entry, ledger::encode(verdict),
                                  "ann", time)};
    const auto store = ledger::open_store(sandbox_.path("ledger").string()).value();
    ASSERT_TRUE(store->append(events).ok());
  }

  static constexpr const char* kQueue = "queue.yaml";
  Sandbox sandbox_;
};

TEST_F(LedgerConditions, HoldsNowAndDidNotThen) {
  store_lost("Linux 1.0.9", "kernel_version >= 1.1");
  const Finished text = consult();
  EXPECT_EQ(text.code, 0) << text.out << text.err;
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("  allowed"), HasSubstr("a condition to revisit it holds now"),
                    HasSubstr("  offer"), HasSubstr("kernel_version >= 1.1 holds now")));
  const nlohmann::json json =
      sandbox_.run({"--ledger", "ledger", "ledger", "consult", kQueue, "--json"}).json();
  EXPECT_EQ(json["known"], false);
  EXPECT_TRUE(json["answers"][0]["block"].is_null());
  EXPECT_EQ(json["answers"][0]["offers"][0]["predicate"], "kernel_version >= 1.1");
  const Finished check = sandbox_.run({"--ledger", "ledger", "queue", "check", kQueue});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("holds now"));
}

TEST_F(LedgerConditions, HeldThenOrDoesNotHoldNow) {
  for (const auto& [kernel, condition] : {std::pair("Linux 1.1.0", "kernel_version >= 1.1"),
                                          std::pair("Linux 1.0.9", "kernel_version >= 999"),
                                          std::pair("Linux 1.0.9", "phase_of_the_moon > 0")}) {
    store_lost(kernel, condition);
    const Finished text = consult();
    EXPECT_EQ(text.code, 3) << kernel << condition << text.out << text.err;
    EXPECT_THAT(text.out, AllOf(HasSubstr("  known"), Not(HasSubstr("  offer"))));
  }
}

}  // namespace
}  // namespace reckon::cli
