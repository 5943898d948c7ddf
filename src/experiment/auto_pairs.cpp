#include "experiment/auto_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace reckon::experiment {
namespace {

// Identical arms of the comparison's workload class: both run as its base does.
Experiment floor_of(const Prepared& prepared, const Experiment& comparison) {
  Experiment floor = comparison;
  floor.id = comparison.id + "-floor";
  floor.group.clear();
  floor.idea.clear();
  floor.kind = ledger::EntryKind::kFloor;
  floor.set[prepared.experiment.switch_pair.key] = prepared.experiment.switch_pair.base;
  floor.switch_pair = {};
  floor.reach = {};
  floor.claim.reset();
  floor.memory_limit.reset();
  floor.rounds = measure::kMinimumNoiseRounds;
  return floor;
}

Lengthened lengthened(const Prepared& prepared, const Judgement& judgement, Lengthened result) {
  const measure::Design& design = *judgement.longer;
  const auto earlier = static_cast<int>(judgement.earlier.size());
  Experiment longer = result.experiments.front();
  const bool same_pairs = design.pairs == longer.pairs;
  longer.rounds = std::max(1, design.rounds - (same_pairs ? earlier : 0));
  longer.pairs = design.pairs;
  result.note = fmt::format("lengthened from {} of {} to {} of {} to see the claim",
                            counted(prepared.experiment.rounds, "round"),
                            counted(prepared.experiment.pairs, "pair"),
                            counted(longer.rounds, "round"), counted(longer.pairs, "pair"));
  result.experiments = {longer};
  if (!same_pairs) {
    result.note += "; rounds of that size need their own A/A rounds first";
    result.experiments.insert(result.experiments.begin(), floor_of(prepared, longer));
  }
  return result;
}

}  // namespace

Lengthened lengthen(const std::string& queue_path, const Experiment& experiment, Runner& runner,
                    ledger::Catalog& ledger, const JudgeOptions& options) {
  Lengthened result;
  result.experiments = {experiment};
  if (experiment.is_floor() || !experiment.claim) return result;
  const Result<Prepared> prepared = prepare(queue_path, experiment, runner);
  if (!prepared.ok()) return result;
  const Result<Judgement> judgement = judge(*prepared, ledger, options);
  if (!judgement.ok() || !judgement->longer) return result;
  return lengthened(*prepared, *judgement, std::move(result));
}

}  // namespace reckon::experiment
