// A small ledger with an entry of every kind, for tests of the report.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "ledger/fold.h"

namespace reckon::cli {

inline std::string test_id(char letter) {
  return "rk-" + std::string(12, letter);
}

inline ledger::Entry report_entry(char letter, int day, const std::string& idea) {
  ledger::Entry entry;
  entry.id = test_id(letter);
  entry.created = entry.updated = entry.verdict_time = fmt::format("2026-09-{:02}T08:30:00Z", day);
  entry.writer = "ann";
  entry.idea.text = idea;
  entry.idea.claim = 0.02;
  entry.idea.device_name = "Some GPU";
  entry.idea.model_name = "models/big.gguf";
  entry.idea.reproduce = {"reckon queue run queue.yaml", "name: again\nexperiments: []\n",
                          "c0ffee"};
  ledger::Scope& scope = entry.idea.scope;
  scope.switch_key = "prefill.tile_order";
  scope.base_value = "row";
  scope.arm_value = "band8";
  scope.device = {"nvidia", "sm_90", 132, 141};
  scope.backend = "cuda";
  scope.model_family = "llama";
  scope.weight_format = "p4";
  scope.metric = "prefill_tok_per_s";
  scope.tokens_policy = "identical";
  scope.workload_class = "metric=prefill_tok_per_s phase=prefill prompt=2048 pairs=6";
  return entry;
}

// A round of a warm-up and six pairs that scatter around `log` by up to `scatter`.
inline ledger::MeasuredBody report_round(const std::string& id, double log, double scatter) {
  ledger::MeasuredBody measured;
  measured.round.id = id;
  measured.round.started = "2026-09-14T08:00:00Z";
  measured.round.base_value = 950;
  measured.round.arm_value = 950 * std::exp(log);
  measured.round.median_log = log;
  constexpr double kSteps[] = {2, -1, 0.4, 1, -0.4, -0.7, 0.7};
  for (int i = 0; i < 7; ++i) {
    measured.round.pairs.push_back(
        {950, 950 * std::exp(log + scatter * kSteps[i]), i % 4 == 1 || i % 4 == 2, i == 0});
  }
  return measured;
}

inline void add_report_rounds(ledger::Entry& entry, int count, double log, double scatter) {
  for (int i = 0; i < count; ++i) {
    const double shift = count == 1 ? 0 : scatter * 0.3 * std::sin(3.7 * i);
    entry.rounds.push_back(
        report_round(fmt::format("{}-round-{}", entry.id, i), log + shift, scatter));
  }
}

inline ledger::VerdictBody& report_verdict(ledger::Entry& entry, ledger::Verdict word, double log) {
  entry.verdict.emplace();
  ledger::VerdictBody& verdict = *entry.verdict;
  verdict.verdict = word;
  verdict.numbers.emplace();
  ledger::Numbers& numbers = *verdict.numbers;
  numbers.metric = entry.idea.scope.metric;
  numbers.unit = "tok/s";
  for (const ledger::MeasuredBody& measured : entry.rounds) {
    numbers.base_values.push_back(measured.round.base_value);
    numbers.arm_values.push_back(measured.round.arm_value);
    verdict.rounds.push_back(measured.round.id);
  }
  numbers.effect = std::expm1(log);
  numbers.interval = ledger::Interval{std::expm1(log - 0.005), std::expm1(log + 0.005)};
  numbers.noise_band = ledger::Interval{std::expm1(-0.01), std::expm1(0.01)};
  numbers.noise_rounds = 20;
  numbers.claim = 0.02;
  numbers.smallest_effect = 0.013;
  verdict.proof.emplace();
  verdict.proof->observed = true;
  verdict.proof->base_fingerprint = "aaaaaaaaaaaaaaaa";
  verdict.proof->arm_fingerprint = "bbbbbbbbbbbbbbbb";
  verdict.proof->only_base = {"prefill matmul 2048x4096 p4 tile_row @1111"};
  verdict.proof->only_arm = {"prefill matmul 2048x4096 p4 tile_band8 @2222"};
  verdict.peaks = ledger::Peaks{4'000'000'000, 4'064'000'000};
  verdict.tokens.emplace();
  verdict.tokens->identical = true;
  verdict.tokens->compared = 256;
  verdict.environment.driver = "550.54";
  verdict.environment.commit = "c0ffee";
  return verdict;
}

inline ledger::Entry finished_entry() {
  ledger::Entry entry = report_entry('a', 2, "Walk weight-row tiles in bands of 8");
  add_report_rounds(entry, 2, -0.039, 0.006);
  ledger::VerdictBody& verdict = report_verdict(entry, ledger::Verdict::kLost, -0.039);
  verdict.mechanism = "Fewer blocks in flight: the occupancy falls from 62% to 31%";
  verdict.evidence = {"occupancy 31%", "https://example.org/roofline"};
  verdict.conditions = "Devices of many SMs";
  verdict.revisit_when = {"chunk >= 4096", "sms < 60"};
  verdict.lever = "More tokens a chunk, as in " + test_id('e');
  verdict.lever_entry = test_id('e');
  verdict.proof->side_effects = {"arm: decode matmul 1x4096 p4 gemv @3333"};
  entry.notes.push_back({"2026-09-20T00:00:00Z", "bob", "seen again on " + test_id('f')});
  return entry;
}

inline ledger::Entry void_entry() {
  ledger::Entry entry = report_entry('b', 3, "Pin the threads");
  add_report_rounds(entry, 2, 0.21, 0.02);
  ledger::VerdictBody& verdict = report_verdict(entry, ledger::Verdict::kVoid, 0.21);
  verdict.void_reason = ledger::VoidReason::kDisturbed;
  verdict.detail = "something else ran on the machine";
  return entry;
}

inline ledger::Entry broke_entry() {
  ledger::Entry entry = report_entry('c', 4, "Sum in half precision");
  add_report_rounds(entry, 1, 0.33, 0.02);
  ledger::VerdictBody& verdict = report_verdict(entry, ledger::Verdict::kBroke, 0.33);
  verdict.detail = "tokens differ at position 7";
  verdict.tokens = ledger::TokenCheck{};
  verdict.tokens->first_divergence = ledger::Divergence{"prompts/prose.txt", 7, 12, 99, 0.02};
  return entry;
}

inline ledger::Entry diverging_entry() {
  ledger::Entry entry = report_entry('e', 6, "Verify drafts with the fast kernel");
  entry.idea.scope.tokens_policy = "may-diverge";
  add_report_rounds(entry, 4, 0.18, 0.03);
  ledger::VerdictBody& verdict = report_verdict(entry, ledger::Verdict::kWon, 0.18);
  verdict.mechanism = "One stream of the weights serves up to six rows";
  verdict.tokens = ledger::TokenCheck{};
  verdict.tokens->compared = 1024;
  verdict.tokens->first_divergence = ledger::Divergence{"prompts/code.txt", 383, 12, 99, 0.004};
  verdict.tokens->mean_kl = 0.00231;
  verdict.tokens->perplexity_change = 0.0012;
  return entry;
}

inline ledger::Entry superseded_entry() {
  ledger::Entry entry = report_entry('f', 5, "Send three rows to the single-stream kernel");
  add_report_rounds(entry, 2, -0.1, 0.01);
  report_verdict(entry, ledger::Verdict::kLost, -0.1).mechanism =
      "The kernel takes a row at a time";
  entry.status = ledger::EntryStatus::kSuperseded;
  entry.status_reason = "measured with all rows in one stream";
  entry.superseded_by = test_id('e');
  return entry;
}

inline ledger::Entry overturned_entry() {
  ledger::Entry entry = report_entry('g', 7, "Prefetch the next panel");
  add_report_rounds(entry, 2, 0.07, 0.01);
  report_verdict(entry, ledger::Verdict::kWon, 0.07).mechanism = "Loads overlap";
  entry.status = ledger::EntryStatus::kOverturned;
  entry.status_reason = "the clock of the machine had been set back";
  return entry;
}

inline ledger::Entry reported_entry() {
  ledger::Entry entry = report_entry('h', 8, "Expert tile of 64 slots");
  entry.idea.device_name = "Some laptop GPU, 80 cores";
  entry.idea.scope.device = {};
  entry.idea.scope.switch_key = "moe.expert_tile";
  entry.imported = true;
  entry.import_source = "notes of its authors, 2026-09";
  entry.figures = {{"base", "949.4 / 951.9 tok/s"}, {"arm", "914.6 / 914.7 tok/s"}};
  report_verdict(entry, ledger::Verdict::kLost, std::log1p(-0.039));
  ledger::VerdictBody& verdict = *entry.verdict;
  verdict.numbers->base_values = {949.4, 951.9};
  verdict.numbers->arm_values = {914.6, 914.7};
  verdict.numbers->interval.reset();
  verdict.numbers->noise_band.reset();
  verdict.numbers->noise_rounds.reset();
  verdict.numbers->smallest_effect.reset();
  verdict.proof.reset();
  verdict.peaks.reset();
  return entry;
}

inline ledger::Entry floor_entry() {
  ledger::Entry entry = report_entry('i', 9, "");
  entry.idea.kind = ledger::EntryKind::kFloor;
  ledger::Scope& scope = entry.idea.scope;
  scope.switch_key = scope.base_value = scope.arm_value = "";
  add_report_rounds(entry, 24, 0, 0.008);
  return entry;
}

inline ledger::Entry too_large_entry() {
  ledger::Entry entry = report_entry('j', 10, "One chunk for the whole prompt");
  entry.verdict.emplace();
  entry.verdict->verdict = ledger::Verdict::kOutOfMemory;
  entry.verdict->detail = "the arm needs 5.1 GB of 4.5 GB";
  entry.verdict->memory_plan.emplace();
  ledger::MemoryPlan& plan = *entry.verdict->memory_plan;
  plan.budget_bytes = 4'500'000'000;
  plan.base_bytes = 4'100'000'000;
  plan.arm_bytes = 5'100'000'000;
  plan.arm_terms = {{"weights: blocks", 3'900'000'000}, {"activations: ffn", 900'000'000}};
  return entry;
}

inline ledger::Entry open_entry() {
  ledger::Entry entry = report_entry('k', 11, "Fuse the norm with the projection");
  entry.verdict_time = "";
  add_report_rounds(entry, 1, 0.004, 0.01);
  return entry;
}

inline ledger::Entry hostile_entry() {
  const std::string text = "<script>alert(\"1\")</script> & 'quotes' \x1b[31m \xff";
  ledger::Entry entry = report_entry('l', 12, text);
  entry.idea.device_name = entry.idea.model_name = text;
  entry.idea.scope.switch_key = entry.idea.scope.arm_value = entry.idea.scope.metric = text;
  entry.idea.scope.workload_class = entry.idea.force_reason = text;
  entry.idea.reproduce = {text, text + "\n</code></pre>" + text, text};
  add_report_rounds(entry, 2, 0.05, 0.01);
  ledger::VerdictBody& verdict = report_verdict(entry, ledger::Verdict::kNeutral, 0.001);
  verdict.mechanism = verdict.lever = verdict.detail = verdict.conditions = text;
  verdict.numbers->unit = text;
  verdict.evidence = verdict.revisit_when = {text};
  verdict.proof->only_arm = {text};
  verdict.sources = {{text, text}};
  verdict.environment.readings = {{text, text}};
  entry.notes.push_back({"2026-09-20T00:00:00Z", text, text});
  return entry;
}

inline ledger::Ledger report_ledger() {
  ledger::Ledger ledger;
  ledger.entries = {finished_entry(),  void_entry(),       broke_entry(),    superseded_entry(),
                    diverging_entry(), overturned_entry(), reported_entry(), floor_entry(),
                    too_large_entry(), open_entry(),       hostile_entry()};
  return ledger;
}

}  // namespace reckon::cli
