// The error rates of the verdict rule, of sequential stopping and of common practices, on simulated
// machines: the tables of docs/measuring.md.
//
//   scripts/build release measure_study && build/release/measure_study [QUEUES] [SEED] [PART]
//
// QUEUES a row (100000 by default; a tenth of it for sequential stopping) and equal seeds (1) give
// equal tables. PART: rule, designs, practices, joining or sequential alone.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/check.h"
#include "measure/study.h"

namespace reckon::measure {
namespace {

double percent(double share) {
  return 100 * share;
}

NoiseModel plain(double round_shift) {
  NoiseModel model;
  model.name = fmt::format("normal, shifts {:g}", round_shift);
  model.round_shift = round_shift;
  return model;
}

void print_rule(const std::vector<NoiseModel>& models, const StudyDesign& design, int64_t queues,
                uint64_t seed) {
  fmt::print("\n{} rounds of {} pairs, K = {}, {} queues a row\n\n", design.rounds, design.pairs,
             design.noise_rounds, queues);
  fmt::print("| noise | WON or LOST of A/A | NEUTRAL at the claim | power | smallest effect |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const NoiseModel& model : models) {
    const ErrorRates rates = study_rule(model, design, queues, seed).value();
    fmt::print(
        "| {} | {:.2f}% | {:.2f}% | {:.1f}% | {:.2f}% |\n", model.name,
        percent(rates.share(rates.false_calls)), percent(rates.share(rates.neutral_at_claim)),
        percent(rates.share(rates.found_at_smallest)), percent(std::expm1(rates.mean_smallest)));
    std::fflush(stdout);
  }
}

void print_practices(const std::vector<NoiseModel>& models, int64_t comparisons, uint64_t seed) {
  fmt::print("\nA difference reported between identical arms, {} comparisons a row\n\n",
             comparisons);
  fmt::print("| noise | A then B, Welch | best of 12 | Welch, up to 5 tries | pooled Wilcoxon |\n");
  fmt::print("|---|---|---|---|---|\n");
  for (const NoiseModel& model : models) {
    const PracticeRates rates = study_practices(model, comparisons, seed).value();
    fmt::print("| {} | {:.1f}% | {:.1f}% | {:.1f}% | {:.1f}% |\n", model.name,
               percent(rates.share(rates.welch)), percent(rates.share(rates.best)),
               percent(rates.share(rates.retry)), percent(rates.share(rates.pooled)));
    std::fflush(stdout);
  }
}

void print_sequential(const NoiseModel& model, int64_t queues, uint64_t seed) {
  fmt::print("\nSequential stopping, {}, {} queues a row\n\n", model.name, queues);
  fmt::print(
      "| claim in s_m | called of A/A | claim missed | claim found | undecided | rounds of A/A "
      "| rounds at the claim |\n|---|---|---|---|---|---|---|\n");
  for (const double claim : {0.5, 1.0, 2.0, 3.0}) {
    const SequentialRates rates = study_sequential(model, claim, queues, seed).value();
    const auto mean_rounds = [&](int64_t all) { return rates.share(all); };
    fmt::print("| {:g} | {:.2f}% | {:.2f}% | {:.1f}% | {:.2f}% | {:.1f} | {:.1f} |\n", claim,
               percent(rates.share(rates.false_calls)), percent(rates.share(rates.missed_claims)),
               percent(rates.share(rates.found)), percent(rates.share(rates.undecided)),
               mean_rounds(rates.rounds_same), mean_rounds(rates.rounds_better));
    std::fflush(stdout);
  }
}

void print_joining(const std::vector<NoiseModel>& models, int64_t queues, uint64_t seed) {
  fmt::print("\nWON or LOST of A/A when an INCONCLUSIVE one is run again, {} queues a row\n\n",
             queues);
  fmt::print("| noise | 1 run | 2 | 5 |\n|---|---|---|---|\n");
  for (const NoiseModel& model : models) {
    fmt::print("| {} |", model.name);
    for (const int looks : {1, 2, 5}) {
      fmt::print(" {:.2f}% |", percent(study_joining(model, looks, queues, seed).value()));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
}

// What the rule does not stand: rounds that are shifted alike one after the other.
std::vector<NoiseModel> beyond_the_promise() {
  std::vector<NoiseModel> models;
  for (const double correlation : {0.2, 0.5}) {
    models.push_back(plain(2));
    models.back().shift_correlation = correlation;
    models.back().name = fmt::format("normal, shifts 2, neighbours correlated {:g}", correlation);
  }
  return models;
}

NoiseModel heavy_shifts() {
  NoiseModel model = plain(1);
  model.heavy_shifts = true;
  model.name = "normal, shifts 1 with heavy tails";
  return model;
}

// The parts of the study, in the order of the page.
void print_part(std::string_view part, int64_t queues, uint64_t seed) {
  const std::vector<NoiseModel> few = {plain(0), plain(1), heavy_shifts()};
  if (part == "rule") {
    print_rule(promised_noise(), {}, queues, seed);
    print_rule(beyond_the_promise(), {}, queues, seed);
  } else if (part == "designs") {
    for (const int rounds : {1, 3, 4, 6, 8}) print_rule(few, {20, rounds, 6}, queues, seed);
    for (const int noise_rounds : {40, 60}) print_rule(few, {noise_rounds, 2, 6}, queues, seed);
  } else if (part == "practices") {
    print_practices(promised_noise(), queues, seed);
  } else if (part == "joining") {
    print_joining(few, queues, seed);
  } else {
    print_sequential(plain(1), queues / 10, seed);
    print_sequential(heavy_shifts(), queues / 10, seed);
  }
}

constexpr std::string_view kParts[] = {"rule", "designs", "practices", "joining", "sequential"};

}  // namespace
}  // namespace reckon::measure

int main(int count, char** arguments) {
  const int64_t queues = count > 1 ? std::strtoll(arguments[1], nullptr, 10) : 100'000;
  const uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
  const std::string_view only = count > 3 ? arguments[3] : "";
  bool printed = false;
  for (const std::string_view part : reckon::measure::kParts) {
    if (queues < 10 || (!only.empty() && part != only)) continue;
    reckon::measure::print_part(part, queues, seed);
    printed = true;
  }
  if (printed) return 0;
  fmt::print(stderr,
             "usage: measure_study [QUEUES] [SEED] [PART]: at least 10 queues; PART is rule, "
             "designs, practices, joining or sequential\n");
  return 2;
}
