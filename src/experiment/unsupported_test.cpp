// Experiments that need a kernel which this device lacks: refused alone, and nothing is recorded.
#include <gmock/gmock.h>

#include "experiment/markdown.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using UnsupportedTest = LedgerTest;

constexpr const char* kText = "not on this device: arm=wide: there is no such variant here";

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (file.is_regular_file()) files.push_back(file.path().filename());
  }
  return files;
}

TEST_F(UnsupportedTest, RefusesItsExperimentAlone) {
  const QueueOutcome outcome = run(queue_text(
      aa_experiment("floor", 2, "lacks=wide") + ab_experiment("arm", "variant=v2,lacks=wide") +
      ab_experiment("both", "variant=v3,lacks=wide", "", "variant=v2,lacks=wide") +
      ab_experiment("void", "variant=v1,speed=2")));
  ASSERT_THAT(outcome.experiments, SizeIs(4));
  for (const size_t i : {0, 1, 2}) {
    EXPECT_EQ(outcome.experiments[i].kind, OutcomeKind::kRefused);
    EXPECT_EQ(outcome.experiments[i].text, kText);
    EXPECT_EQ(outcome.experiments[i].entry, "");
  }
  EXPECT_EQ(outcome.experiments[3].verdict(), ledger::Verdict::kVoid);
  EXPECT_EQ(outcome.exit_code(), 0);
  EXPECT_EQ(outcome.gate_exit_code(), 3) << "undecided";
  EXPECT_THAT(read().entries, SizeIs(1));
  EXPECT_THAT(markdown_page(outcome), HasSubstr("## arm: refused\n\nIdea: Try it\n\nnot on this"));
  const nlohmann::json json = to_json(outcome)["experiments"][1];
  EXPECT_EQ(json["kind"], "refused");
  EXPECT_EQ(json["text"], kText);
}

TEST_F(UnsupportedTest, RefusesOneArmOfSeveral) {
  const QueueOutcome outcome = run(queue_text(
      "  - id: x\n    idea: Try them\n"
      "    switch: {key: arm, base: \"variant=v1\", arms: [\"lacks=wide\", \"variant=v2\"]}\n"
      "    workload: {phase: decode, prompt: Once upon a time, generate: 8}\n"));
  ASSERT_THAT(outcome.experiments, SizeIs(2));
  EXPECT_EQ(outcome.experiments[0].kind, OutcomeKind::kRefused);
  EXPECT_EQ(outcome.experiments[1].verdict(), ledger::Verdict::kInconclusive);
  EXPECT_EQ(outcome.exit_code(), 0);
}

TEST_F(UnsupportedTest, RefusesAQueueOfNothingElse) {
  options_.auto_pairs = true;
  const std::string lines = ab_experiment("arm", "lacks=wide", "    claim: \"+2%\"\n");
  EXPECT_EQ(run(queue_text(lines)).exit_code(), 3);
  EXPECT_THAT(read().entries, IsEmpty());
  EXPECT_THAT(files_below(folder_ / "ledger"), Not(Contains(HasSubstr(".jsonl"))))
      << "neither events nor a journal";
}

TEST_F(UnsupportedTest, CheckSaysSo) {
  const auto check = [&](const std::string& experiments) {
    const Result<Queue> queue = parse_queue(queue_text(experiments), "test.yaml");
    EXPECT_TRUE(queue.ok());
    return check_queue(*queue, runner_, *store_);
  };
  const std::string lacking =
      aa_experiment("floor", 20, "lacks=wide") + ab_experiment("arm", "lacks=wide");
  const QueueCheck all = check(lacking);
  for (const CheckedExperiment& checked : all.experiments) {
    EXPECT_EQ(checked.kind, CheckedExperiment::Kind::kWouldRefuse);
    EXPECT_EQ(checked.text, kText);
  }
  EXPECT_EQ(all.exit_code(), 3);
  EXPECT_EQ(to_json(all)["experiments"][0]["kind"], "would-refuse");
  EXPECT_THAT(text_table(all), HasSubstr("refuse"));

  const QueueCheck some = check(lacking + ab_experiment("other", "variant=v2"));
  EXPECT_EQ(some.exit_code(), 0);
  EXPECT_THAT(some.experiments[2].notes, Contains(HasSubstr("must end INCONCLUSIVE")))
      << "a floor that is refused brings no rounds";
  EXPECT_EQ(check(lacking + ab_experiment("typo", "forbidden")).exit_code(), 2);
}

}  // namespace
}  // namespace reckon::experiment
