#include "experiment/machine_watch.h"

#include <fmt/format.h>

#include "base/text.h"
#include "experiment/words.h"

namespace reckon::experiment {

std::string why_dirty(const MachineWindow& window) {
  if (window.throttled.value_or(0) > 0) {
    return fmt::format("the processor was throttled for its temperature ({})",
                       counted(*window.throttled, "time"));
  }
  if (window.other_share.value_or(0) > kMostOtherShare) {
    return fmt::format("other processes took {} of the processors",
                       share_text(*window.other_share));
  }
  if (window.stolen_share.value_or(0) > kMostStolenShare) {
    return fmt::format("the host took {} of the processors", share_text(*window.stolen_share));
  }
  if (window.clock_share.value_or(1) < kLeastClockShare) {
    return fmt::format("the fastest core ran at {} of its highest clock",
                       share_text(*window.clock_share));
  }
  return "";
}

}  // namespace reckon::experiment
