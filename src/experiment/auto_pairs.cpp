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

std::vector<Experiment> lengthened(const Prepared& prepared, const Judgement& judgement,
                                   const Experiment& experiment) {
  const measure::Design& design = *judgement.longer;
  const auto earlier = static_cast<int>(judgement.earlier.size());
  Experiment longer = experiment;
  const bool same_pairs = design.pairs == longer.pairs;
  longer.rounds = std::max(1, design.rounds - (same_pairs ? earlier : 0));
  longer.pairs = design.pairs;
  longer.lengthened =
      fmt::format("lengthened from {} of {} to {} of {} to see the claim",
                  counted(experiment.rounds, "round"), counted(experiment.pairs, "pair"),
                  counted(longer.rounds, "round"), counted(longer.pairs, "pair"));
  if (same_pairs) return {longer};
  longer.lengthened += "; rounds of that size need their own A/A rounds first";
  return {floor_of(prepared, longer), longer};
}

}  // namespace

std::vector<Experiment> lengthen(const std::string& queue_path, const Experiment& experiment,
                                 Runner& runner, ledger::Catalog& ledger,
                                 const JudgeOptions& options) {
  if (experiment.is_floor() || !experiment.claim) return {experiment};
  const Result<Prepared> prepared = prepare(queue_path, experiment, runner);
  if (!prepared.ok()) return {experiment};
  const Result<Judgement> judgement = judge(*prepared, ledger, options);
  if (!judgement.ok() || !judgement->longer) return {experiment};
  return lengthened(*prepared, *judgement, experiment);
}

}  // namespace reckon::experiment
