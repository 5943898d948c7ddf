#include "experiment/extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/text.h"

namespace reckon::experiment {
namespace {

constexpr int kQuickPairs = 3;

void shorten_design(Experiment& experiment) {
  experiment.rounds = 1;
  experiment.pairs = std::min(experiment.pairs, kQuickPairs);
  experiment.claim.reset();
  experiment.lengthened =
      fmt::format("quick: one round of {} and no A/A rounds cannot end WON, LOST or NEUTRAL",
                  counted(experiment.pairs, "pair"));
}

}  // namespace

Queue with_extent(Queue queue, Extent extent) {
  if (extent == Extent::kFull) return queue;
  std::erase_if(queue.experiments, [&](const Experiment& experiment) {
    return experiment.only_full || (extent == Extent::kQuick && experiment.is_floor());
  });
  if (extent == Extent::kQuick) std::ranges::for_each(queue.experiments, shorten_design);
  return queue;
}

}  // namespace reckon::experiment
