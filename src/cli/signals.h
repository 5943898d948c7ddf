// A clean stop: the first SIGINT or SIGTERM is noted, the second one ends the process as ever.
#pragma once

namespace reckon::cli {

// Lives around the work that can be stopped; one at a time. Async-signal-safe throughout.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // restores the default behaviour
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The signal that came, or 0.
  [[nodiscard]] static int received();
};

}  // namespace reckon::cli
