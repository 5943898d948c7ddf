// What the pairs in a journal amount to: rounds, observed rows, tokens, peaks. Pure and
// thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiment/journal.h"
#include "ledger/record.h"
#include "measure/pairs.h"

namespace reckon::experiment {

struct CollectedRound {
  RoundIdentity identity;
  std::vector<JournalPair> warmups;  // of every process, as they were run
  std::vector<JournalPair> pairs;    // counted ones, by their index in the round's order
  int64_t processes = 0;             // that it took so far
  nlohmann::json environment = nlohmann::json::object();  // of the latest process

  // Indices of 0…pairs-1 that are still to be measured, ascending.
  [[nodiscard]] std::vector<int64_t> missing(int64_t pairs_a_round) const;
};

struct Samples {
  std::vector<CollectedRound> rounds;  // by index
  std::vector<DispatchRow> base_rows;  // observed in any measurement, sorted
  std::vector<DispatchRow> arm_rows;
  KernelUse base_kernel_use, arm_kernel_use;
  std::vector<int32_t> tokens;      // that the base arm generated
  std::vector<int32_t> arm_tokens;  // that the arm generated, where they differ; else empty
  std::optional<double> margin;     // of the base arm where they part
  uint64_t base_peak_bytes = 0;
  uint64_t arm_peak_bytes = 0;

  void add(const JournalPair& pair);
  // Mean over the counted pairs; 0 without any.
  [[nodiscard]] double seconds_a_pair() const;
};

[[nodiscard]] Samples collect(std::span<const JournalPair> pairs);

// The rows of `observed` that `seen` lacks.
[[nodiscard]] std::vector<DispatchRow> new_rows(std::span<const DispatchRow> seen,
                                                std::span<const DispatchRow> observed);

// What `used` says otherwise than `seen`, or beside it.
[[nodiscard]] KernelUse new_kernel_use(const KernelUse& seen, const KernelUse& used);

// Identical, or where the arms part for the first time. An arm that stopped earlier parts there,
// with token -1. `margins` are the base arm's.
[[nodiscard]] ledger::TokenCheck compare_tokens(std::span<const int32_t> base,
                                                std::span<const int32_t> arm,
                                                std::span<const float> margins,
                                                const std::string& prompt);

[[nodiscard]] ledger::PairSample to_sample(const JournalPair& pair);
[[nodiscard]] std::vector<measure::Pair> to_pairs(std::span<const ledger::PairSample> samples);

}  // namespace reckon::experiment
