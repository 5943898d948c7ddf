#include "experiment/stored_noise.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "experiment/control.h"
#include "experiment/samples.h"

namespace reckon::experiment {
namespace {

bool counts(const ledger::Entry& entry, const ledger::Scope& scope) {
  return entry.idea.kind == ledger::EntryKind::kFloor && !entry.imported &&
         entry.status != ledger::EntryStatus::kOverturned &&
         ledger::same_noise(entry.idea.scope, scope);
}

// "2026-09-14T08:30:00Z", perhaps with a fraction of a second, as seconds since 1970.
std::optional<double> seconds_of(std::string_view time) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int hour = 0;
  int minute = 0;
  double second = 0;
  const std::string text(time);
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%lf", &year, &month, &day, &hour, &minute,
                  &second) != 6) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400 + hour * 3600 + minute * 60 + second;
}

int counted_pairs(const std::vector<measure::Pair>& pairs) {
  return static_cast<int>(std::count_if(pairs.begin(), pairs.end(),
                                        [](const measure::Pair& pair) { return !pair.warmup; }));
}

}  // namespace

std::optional<double> days_between(std::string_view earlier, std::string_view later) {
  const std::optional<double> from = seconds_of(earlier);
  const std::optional<double> to = seconds_of(later);
  if (!from || !to) return std::nullopt;
  return (*to - *from) / 86400;
}

measure::Better better_of(const Runner::MetricInfo& metric) {
  return metric.higher_is_better ? measure::Better::kHigher : measure::Better::kLower;
}

Result<double> median_of(const ledger::Round& round, measure::Better better) {
  if (round.pairs.empty()) return round.median_log;
  return measure::round_median(to_pairs(round.pairs), better);
}

Result<StoredNoise> stored_noise(const Prepared& prepared, std::span<const ledger::Entry> entries,
                                 std::string_view now, int newest) {
  measure::NoiseRule rule;
  rule.pairs = prepared.experiment.pairs;
  rule.newest = newest;
  std::vector<measure::NoiseRound> rounds;
  std::vector<std::vector<measure::Pair>> pairs;
  for (const ledger::Entry& entry : entries) {
    if (!counts(entry, prepared.scope)) continue;
    for (const ledger::MeasuredBody& measured : entry.rounds) {
      measure::NoiseRound round;
      TRY_ASSIGN(round.median_log, median_of(measured.round, better_of(prepared.metric)));
      pairs.push_back(to_pairs(measured.round.pairs));
      round.pairs = counted_pairs(pairs.back());
      round.age_days =
          days_between(measured.round.started, now).value_or(std::numeric_limits<double>::max());
      rounds.push_back(round);
    }
  }
  TRY_ASSIGN(const measure::ChosenNoise chosen, measure::choose_noise(rounds, rule));
  StoredNoise stored;
  stored.noise = chosen.noise;
  stored.too_old = chosen.too_old;
  for (const size_t i : chosen.used) stored.rounds.push_back(std::move(pairs[i]));
  return stored;
}

Result<measure::Noise> stored_control_noise(const Prepared& prepared,
                                            std::span<const ledger::Entry> entries,
                                            std::string_view now) {
  measure::NoiseRule rule;
  rule.pairs = prepared.experiment.pairs;
  std::vector<measure::NoiseRound> rounds;
  for (const ledger::Entry& entry : entries) {
    if (!counts(entry, prepared.scope)) continue;
    for (const ledger::MeasuredBody& measured : entry.rounds) {
      const std::vector<measure::Pair> pairs =
          control_pairs(measured.round, prepared.control->name);
      if (pairs.empty()) continue;
      measure::NoiseRound round;
      TRY_ASSIGN(round.median_log, measure::round_median(pairs, better_of(*prepared.control)));
      round.pairs = counted_pairs(pairs);
      round.age_days =
          days_between(measured.round.started, now).value_or(std::numeric_limits<double>::max());
      rounds.push_back(round);
    }
  }
  TRY_ASSIGN(const measure::ChosenNoise chosen, measure::choose_noise(rounds, rule));
  return chosen.noise;
}

}  // namespace reckon::experiment
