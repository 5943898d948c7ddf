// A made-up ledger of any size, the same for the same seed: for tests and bench/ledger_bench.cpp.
// Entries differ in switch, device, model and workload as those of a team over two years would, and
// have two rounds of seven pairs, a verdict, and here and there a note or a change of status.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ledger/event.h"
#include "ledger/record.h"
#include "ledger/scope.h"

namespace reckon::ledger::test {

class SyntheticLedger {
 public:
  explicit SyntheticLedger(uint64_t seed, int switches = 25)
      : seed_(seed), random_(seed), switches_(switches) {}

  // The events of the next entry, in order.
  std::vector<Event> next() {
    number_ += 1;
    writer_ = fmt::format("writer-{}", pick(10));
    const Scope scope = this->scope();
    const Event idea =
        make_first_event(EventType::kIdea, encode(this->idea(scope)), writer_, time(0)).value();
    std::vector<Event> events{idea};
    const double effect = (pick(2001) - 1000) * 1e-4;
    for (int round = 1; round <= 2; ++round) {
      events.push_back(event(EventType::kMeasured, idea.entry, encode(measured(round, effect))));
    }
    events.push_back(event(EventType::kVerdict, idea.entry, encode(verdict(scope, effect))));
    if (pick(4) == 0) events.push_back(event(EventType::kNote, idea.entry, encode(note())));
    if (pick(20) == 0) {
      StatusBody body;
      body.reason = "the clock of the machine had been set back";
      events.push_back(event(pick(2) == 0 ? EventType::kOverturned : EventType::kReopened,
                             idea.entry, encode(body)));
    }
    return events;
  }

  Scope scope() {
    Scope scope;
    scope.switch_key = fmt::format("switch.number_{}", pick(switches_));
    scope.base_value = "off";
    scope.arm_value = fmt::format("value-{}", pick(4));
    const int device = pick(12);
    scope.device = {"nvidia", fmt::format("sm_{}", 80 + device), 100 + device, 80};
    scope.backend = "cuda";
    scope.model_family = fmt::format("family-{}", pick(8));
    scope.shape_hash = fmt::format("shape-{}", pick(20));
    scope.model_hash = fmt::format("model-{}", pick(40));
    scope.weight_format = pick(2) == 0 ? "p4" : "p8";
    scope.chunk = int64_t{128} << pick(5);
    scope.rows = scope.chunk;
    scope.context = 4096;
    scope.metric = pick(2) == 0 ? "prefill_tok_per_s" : "decode_tok_per_s";
    scope.workload_class =
        fmt::format("metric={} phase=prefill prompt={} pairs=6", scope.metric, scope.chunk);
    scope.prompt_hash = fmt::format("prompt-{}", pick(6));
    scope.tokens_policy = "identical";
    scope.reach = "matmul/prefill";
    scope.base_switches = {{"prefill.chunk", std::to_string(scope.chunk)}};
    scope.arm_switches = scope.base_switches;
    return scope;
  }

 private:
  int pick(int count) { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }

  // Entries are a little less than an hour apart; the events of one, minutes.
  std::string time(int minute) const {
    const int month = static_cast<int>(number_ / 833 % 24);
    const int hour = static_cast<int>(number_ % 833) * 28 * 24 / 833;
    return fmt::format("20{}-{:02}-{:02}T{:02}:{:02}:00Z", 25 + month / 12, month % 12 + 1,
                       hour / 24 + 1, hour % 24, minute);
  }

  Event event(EventType type, const std::string& entry, nlohmann::json body) {
    return make_event(type, entry, std::move(body), writer_, time(++minute_ % 60));
  }

  IdeaBody idea(const Scope& scope) const {
    IdeaBody body;
    body.experiment = fmt::format("experiment-{}", number_);
    body.text =
        fmt::format("Idea {}: walk the tiles of one expert before those of the next", number_);
    body.scope = scope;
    body.claim = 0.02;
    body.device_name = "Made-up GPU " + scope.device.isa;
    body.model_name = "models/" + scope.model_hash + ".gguf";
    body.reproduce = {"reckon queue run queue.yaml", std::string(1500, 'q'), "0123456789ab"};
    return body;
  }

  MeasuredBody measured(int index, double effect) {
    MeasuredBody body;
    body.round.id = round_id(index);
    body.round.index = index;
    body.round.started = time(index);
    for (int pair = 0; pair < 7; ++pair) {
      const double base = 900 + pick(1000) * 0.1;
      body.round.pairs.push_back({base, base * (1 + effect), pair % 2 == 1, pair == 0});
    }
    body.round.base_value = 950;
    body.round.arm_value = 950 * (1 + effect);
    body.round.median_log = std::log1p(effect);
    body.sources = {{"fast_tile", "0123456789abcdef"}, {"exact_gemv", "fedcba9876543210"}};
    body.proof.emplace();
    body.proof->base_fingerprint = "aaaaaaaaaaaaaaaa";
    body.proof->arm_fingerprint = "bbbbbbbbbbbbbbbb";
    body.proof->only_arm.assign(6, "prefill matmul [2048, 4096, 4096] fast_tile params=...");
    return body;
  }

  VerdictBody verdict(const Scope& scope, double effect) {
    VerdictBody body;
    body.verdict = effect > 0.01    ? Verdict::kWon
                   : effect < -0.01 ? Verdict::kLost
                                    : Verdict::kInconclusive;
    body.numbers.emplace();
    body.numbers->metric = scope.metric;
    body.numbers->unit = "tok/s";
    body.numbers->base_values = {950, 951};
    body.numbers->arm_values = {950 * (1 + effect), 951 * (1 + effect)};
    body.numbers->effect = effect;
    body.rounds = {round_id(1), round_id(2)};
    body.sources = {{"fast_tile", "0123456789abcdef"}, {"exact_gemv", "fedcba9876543210"}};
    if (pick(5) == 0) body.revisit_when = {fmt::format("chunk >= {}", 128 << pick(6))};
    return body;
  }

  static NoteBody note() {
    NoteBody body;
    body.text = "checked against the roofline";
    body.mechanism = "the tile is bound by the multiply-accumulates, not by weight traffic";
    return body;
  }

  std::string round_id(int index) const {
    return fmt::format("round-{}-{}-{}", seed_, number_, index);
  }

  uint64_t seed_;
  std::mt19937_64 random_;
  int switches_;
  uint64_t number_ = 0;
  int minute_ = 0;
  std::string writer_;
};

// Of the first `entries` entries.
inline std::vector<Event> synthetic_events(size_t entries, uint64_t seed, int switches = 25) {
  SyntheticLedger ledger(seed, switches);
  std::vector<Event> events;
  for (size_t i = 0; i < entries; ++i) {
    for (Event& event : ledger.next()) events.push_back(std::move(event));
  }
  return events;
}

}  // namespace reckon::ledger::test
