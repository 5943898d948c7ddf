// How much of a queue is run: what its file says, or less in minutes, or more.
#pragma once

#include "experiment/queue.h"

namespace reckon::experiment {

enum class Extent {
  kUsual,  // the queue without experiments that say `only: full`
  kQuick,  // the same without A/A rounds, a round of few pairs each: what the plan decides (VOID,
           // OUT-OF-MEMORY) and what breaks is as conclusive as ever, the rest is INCONCLUSIVE
  kFull,   // every experiment
};

// The queue of that extent. With kQuick every comparison says in Experiment::lengthened what its
// design cannot conclude, and claims nothing. Pure.
[[nodiscard]] Queue with_extent(Queue queue, Extent extent);

}  // namespace reckon::experiment
