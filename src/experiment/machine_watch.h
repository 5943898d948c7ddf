// What the machine did besides the experiment: the consumer's interface, and the rule that calls a
// window dirty. Adapters read the machine; tests script it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace reckon::experiment {

// A stretch of time, as far as the system says.
struct MachineWindow {
  double seconds = 0;
  // Shares of the CPU time of the processors that this process may use.
  std::optional<double> other_share;   // that everything but the experiment took
  std::optional<double> stolen_share;  // that the host of a virtual machine took
  std::optional<int64_t> throttled;    // times that a core was slowed down for its temperature
  std::optional<double> clock_share;   // the fastest core's clock at the end, of its highest
};

inline constexpr double kMostOtherShare = 0.10;
inline constexpr double kMostStolenShare = 0.05;
inline constexpr double kLeastClockShare = 0.50;

// Why nothing that was timed in the window counts: "other processes took 43% of the processors";
// "" where it is clean or nothing is known.
[[nodiscard]] std::string why_dirty(const MachineWindow& window);

// Used from one thread.
class MachineWatch {
 public:
  virtual ~MachineWatch() = default;
  // The window since the last call that gave one. `child` is a process that belongs to the
  // experiment, with all it started; -1: none. Unset where the window is too short to tell: it goes
  // on, and the next call gives it whole.
  [[nodiscard]] virtual std::optional<MachineWindow> look(pid_t child) = 0;
};

}  // namespace reckon::experiment
