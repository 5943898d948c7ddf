// The noise of a workload class, from the A/A rounds that a ledger holds. Pure and thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/prepare.h"
#include "ledger/fold.h"
#include "measure/noise.h"
#include "measure/pairs.h"

namespace reckon::experiment {

struct StoredNoise {
  measure::Noise noise;
  std::vector<std::vector<measure::Pair>> rounds;  // that it rests on, newest first
  int too_old = 0;                                 // rounds of the class that no longer count
};

// Of the newest `newest` A/A rounds in `entries` on the device, metric and workload class of
// `prepared` that have its pairs and are not too old at the time `now` (as Event::time);
// measure/noise.h has the rule. A round whose start cannot be read counts as too old. Rounds are
// judged by their pairs, so that medians which an older version stored do not matter. Errors: a
// pair without a logarithm.
[[nodiscard]] Result<StoredNoise> stored_noise(const Prepared& prepared,
                                               std::span<const ledger::Entry> entries,
                                               std::string_view now,
                                               int newest = measure::kNewestNoiseRounds);

// The same of the control metric: of those rounds that measured it, too. The experiment has one.
[[nodiscard]] Result<measure::Noise> stored_control_noise(const Prepared& prepared,
                                                          std::span<const ledger::Entry> entries,
                                                          std::string_view now);

[[nodiscard]] measure::Better better_of(const Runner::MetricInfo& metric);

// A round's result, from its pairs; as stored where it has none.
[[nodiscard]] Result<double> median_of(const ledger::Round& round, measure::Better better);

// From one Event::time to another, in days; unset where either is not one.
[[nodiscard]] std::optional<double> days_between(std::string_view earlier, std::string_view later);

}  // namespace reckon::experiment
