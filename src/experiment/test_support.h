// What the tests of this module share: folders, processes of this executable, queues.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/program_path.h"
#include "experiment/queue.h"
#include "experiment/run.h"
#include "experiment/test_runner.h"
#include "ledger/fold.h"
#include "ledger/open.h"

namespace reckon::experiment {

// Arguments of this test executable that make it something else (test_main_test.cpp).
inline constexpr const char* kFakeWorker = "--fake-worker";
inline constexpr const char* kRunQueue = "--run-queue";  // LEDGER QUEUE-FILE LOG-FILE

class TempFolder {
 public:
  TempFolder() {
    std::string name = testing::TempDir() + "reckon-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (std::filesystem::path(path_) / name).string();
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// One comparison of the fake runner's arms; `more` holds further lines of the experiment.
inline std::string ab_experiment(const std::string& id, const std::string& arm,
                                 const std::string& more = "",
                                 const std::string& base = "variant=v1") {
  return fmt::format(
      "  - id: {}\n    idea: Try it\n    switch: {{key: arm, base: \"{}\", arm: \"{}\"}}\n"
      "    workload: {{phase: decode, prompt: Once upon a time, generate: 8}}\n"
      "    reach: {{op: matmul, phase: decode}}\n{}",
      id, base, arm, more);
}

// Identical arms in the same workload class.
inline std::string aa_experiment(const std::string& id, int rounds,
                                 const std::string& arm = "variant=v1,jitter=0.002") {
  return fmt::format(
      "  - id: {}\n    kind: aa\n    rounds: {}\n    set: {{arm: \"{}\"}}\n"
      "    workload: {{phase: decode, prompt: Once upon a time, generate: 8}}\n",
      id, rounds, arm);
}

inline std::string queue_text(const std::string& experiments, int pairs = 2,
                              const std::string& model = "tiny") {
  return fmt::format(
      "name: test\ndefaults: {{model: \"{}\", metric: decode_tok_per_s, rounds: 2, pairs: {}, "
      "warmup_pairs: 1}}\nexperiments:\n{}",
      model, pairs, experiments);
}

// A ledger folder, and queues run on it with this executable as their worker.
class LedgerTest : public testing::Test {
 protected:
  LedgerTest() : store_(std::move(ledger::open_store(folder_ / "ledger")).value()) {
    options_.worker_command = {program_path(), kFakeWorker};
    options_.command = "reckon queue run test.yaml";
    options_.writer = "tester";
    options_.seed = 7;
  }

  Result<QueueOutcome> try_run(const std::string& text) {
    TRY_ASSIGN(const Queue queue, parse_queue(text, "test.yaml"));
    return run_queue(queue, runner_, *store_, options_, progress_);
  }

  QueueOutcome run(const std::string& text) {
    Result<QueueOutcome> outcome = try_run(text);
    EXPECT_TRUE(outcome.ok()) << (outcome.ok() ? "" : outcome.error().message);
    return outcome.ok() ? std::move(outcome).value() : QueueOutcome{};
  }

  // The only outcome of a queue with one experiment.
  Outcome run_one(const std::string& experiment, int pairs = 2, const std::string& model = "tiny") {
    QueueOutcome outcome = run(queue_text(experiment, pairs, model));
    EXPECT_EQ(outcome.experiments.size(), 1u);
    return outcome.experiments.empty() ? Outcome{} : outcome.experiments.front();
  }

  // Nothing may be measured.
  Outcome refused(const std::string& experiment, const std::string& model = "tiny") {
    const std::vector<std::string> worker = options_.worker_command;
    options_.worker_command = {"/nonexistent"};
    Outcome outcome = run_one(experiment, 2, model);
    options_.worker_command = worker;
    EXPECT_EQ(outcome.kind, OutcomeKind::kRefused) << outcome.text;
    return outcome;
  }

  // A queue of two experiments, whose budget ends in the second: the first is INCONCLUSIVE.
  QueueOutcome run_until_the_second(const std::string& experiments) {
    double clock = 0;
    options_.now_seconds = [&clock] { return clock += 1; };
    options_.budget_seconds = 40;
    QueueOutcome stopped = run(queue_text(experiments, 4));
    EXPECT_EQ(stopped.experiments.at(0).verdict(), ledger::Verdict::kInconclusive);
    EXPECT_EQ(stopped.experiments.at(1).kind, OutcomeKind::kPaused);
    options_.budget_seconds.reset();
    options_.now_seconds = nullptr;
    return stopped;
  }

  // 20 A/A rounds, so that verdicts are possible.
  void store_noise(int rounds = 20, const std::string& model = "tiny") {
    const Outcome outcome = run_one(aa_experiment("floor", rounds), 2, model);
    ASSERT_EQ(outcome.kind, OutcomeKind::kFloor) << outcome.text;
  }

  ledger::Ledger read() {
    Result<ledger::ReadReport> report = store_->read();
    EXPECT_TRUE(report.ok());
    EXPECT_TRUE(report->warnings.empty());
    ledger::Ledger ledger = ledger::fold(report->events);
    EXPECT_TRUE(ledger.warnings.empty());
    return ledger;
  }

  TempFolder folder_;
  std::unique_ptr<ledger::Store> store_;
  FakeRunner runner_;
  RunOptions options_;
  Progress progress_;
};

}  // namespace reckon::experiment
