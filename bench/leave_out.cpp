// How often identical arms are called WON or LOST on a real machine: every A/A entry of a ledger,
// its rounds judged by one another.
//
//   scripts/build release leave_out && build/release/leave_out LEDGER [ROUNDS] [QUEUES] [SEED]
//
// A leave-out queue takes ROUNDS rounds (2) as an experiment and learns the noise from others, as
// the product does:
// - in the order of time: each run of ROUNDS neighbouring rounds, by the 20 (60) before it;
// - drawn: QUEUES times (100000), rounds and noise at random out of the whole entry.
// The first says what a user meets whose noise was measured just before; the second, whether the
// rule holds on noise of this shape once its order in time is taken away. Queues share rounds, so
// that the shares are known less well than their count suggests. Then the noise over time: s_m of
// every 20 rounds, and how alike neighbouring rounds are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/check.h"
#include "ledger/fold.h"
#include "ledger/open.h"
#include "ledger/store.h"
#include "measure/noise.h"
#include "measure/splitmix.h"
#include "measure/verdict.h"

namespace reckon {
namespace {

struct Tally {
  int64_t queues = 0, won = 0, lost = 0;

  void add(std::span<const double> rounds, const measure::Noise& noise) {
    const auto decision = measure::decide({rounds, noise, std::nullopt, false}).value();
    ++queues;
    won += decision.call == measure::Call::kWon;
    lost += decision.call == measure::Call::kLost;
  }
  [[nodiscard]] double share() const {
    return queues == 0 ? 0 : static_cast<double>(won + lost) / static_cast<double>(queues);
  }
};

void print(const char* what, int noise_rounds, const Tally& tally) {
  if (tally.queues == 0) return;
  fmt::print("  {}, K = {}: {} queues, {} WON, {} LOST: {:.2f}%\n", what, noise_rounds,
             tally.queues, tally.won, tally.lost, 100 * tally.share());
}

Tally in_order(std::span<const double> results, size_t rounds, size_t noise_rounds) {
  Tally tally;
  for (size_t i = noise_rounds; i + rounds <= results.size(); ++i) {
    const auto noise =
        measure::estimate_noise(results.subspan(i - noise_rounds, noise_rounds)).value();
    tally.add(results.subspan(i, rounds), noise);
  }
  return tally;
}

// The first `rounds` of a shuffled copy are the experiment, the `noise_rounds` behind them its
// noise.
Tally drawn(std::vector<double> results, size_t rounds, size_t noise_rounds, int64_t queues,
            uint64_t seed) {
  Tally tally;
  measure::SplitMix64 random(seed);
  const size_t taken = rounds + noise_rounds;
  if (results.size() < taken) return tally;
  for (int64_t queue = 0; queue < queues; ++queue) {
    for (size_t i = 0; i < taken; ++i) {
      std::swap(results[i], results[i + random.below(results.size() - i)]);
    }
    const std::span<const double> all(results);
    tally.add(all.first(rounds),
              measure::estimate_noise(all.subspan(rounds, noise_rounds)).value());
  }
  return tally;
}

double correlation_of_neighbours(std::span<const double> results) {
  const double mean = measure::mean(results);
  double products = 0, squares = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    squares += (results[i] - mean) * (results[i] - mean);
    if (i > 0) products += (results[i] - mean) * (results[i - 1] - mean);
  }
  return squares > 0 ? products / squares : 0;
}

void print_over_time(std::span<const double> results, std::span<const std::string> times) {
  fmt::print("  s_m of all {:.3f}%, mean {:+.3f}%, correlation of neighbours {:+.2f}\n",
             100 * measure::standard_deviation(results).value(), 100 * measure::mean(results),
             correlation_of_neighbours(results));
  constexpr size_t kBlock = measure::kMinimumNoiseRounds;
  for (size_t i = 0; i + kBlock <= results.size(); i += kBlock) {
    const auto block = results.subspan(i, kBlock);
    fmt::print("    {} to {}: s_m {:.3f}%, largest {:.3f}%\n", times[i], times[i + kBlock - 1],
               100 * measure::standard_deviation(block).value(),
               100 * std::abs(*std::ranges::max_element(
                         block, {}, [](double value) { return std::abs(value); })));
  }
}

void study(const ledger::Entry& entry, size_t rounds, int64_t queues, uint64_t seed) {
  std::vector<const ledger::Round*> by_time;
  for (const ledger::MeasuredBody& measured : entry.rounds) by_time.push_back(&measured.round);
  std::ranges::stable_sort(by_time, {}, &ledger::Round::started);
  std::vector<double> results;
  std::vector<std::string> times;
  for (const ledger::Round* round : by_time) {
    results.push_back(round->median_log);
    times.push_back(round->started);
  }
  fmt::print("{}: {} A/A rounds, experiments of {}\n", entry.id, results.size(), rounds);
  for (const size_t noise_rounds : {size_t{20}, size_t{60}}) {
    print("in order", static_cast<int>(noise_rounds), in_order(results, rounds, noise_rounds));
    print("drawn", static_cast<int>(noise_rounds),
          drawn(results, rounds, noise_rounds, queues, seed));
  }
  print_over_time(results, times);
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: leave_out LEDGER [ROUNDS] [QUEUES] [SEED]\n");
    return 2;
  }
  const auto number = [&](size_t at, int64_t otherwise) {
    return at < arguments.size() ? std::atoll(arguments[at]) : otherwise;
  };
  const auto store = ledger::open_store(arguments[1]).value();
  const ledger::Ledger ledger = ledger::fold(store->read().value().events);
  for (const ledger::Entry& entry : ledger.entries) {
    if (entry.idea.kind != ledger::EntryKind::kFloor || entry.imported) continue;
    if (entry.rounds.size() <= measure::kMinimumNoiseRounds) continue;
    study(entry, static_cast<size_t>(number(2, 2)), number(3, 100000),
          static_cast<uint64_t>(number(4, 1)));
  }
  return 0;
}

}  // namespace
}  // namespace reckon

int main(int argc, char** argv) {
  return reckon::run({argv, static_cast<size_t>(argc)});
}
