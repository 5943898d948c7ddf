// Keeps pairs out of dirty windows: judges each pair's window and waits until the machine is calm
// again. One for a round's process; used from one thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "experiment/prepare.h"
#include "experiment/run.h"

namespace reckon::experiment {

struct RunContext;

class Calm {
 public:
  // `child` is the round's process. Begins a window, but for a metric that does not care.
  Calm(RunContext& context, const Prepared& prepared, pid_t child);

  // Why the pair that was measured since the last call does not count; "" where it does.
  [[nodiscard]] std::string why_disturbed();

  // After a disturbed pair: returns when a window is clean. "": go on; else why the run stops
  // (options' most_wait_seconds are over, the budget is spent, the user ended it).
  [[nodiscard]] std::string wait();

  // Seconds that wait() took since the last call.
  [[nodiscard]] double take_paused_seconds();

 private:
  RunContext& context_;
  const Experiment& experiment_;
  MachineWatch* watch_;  // null: nobody looks
  pid_t child_;
  std::string last_;  // why the latest window was dirty
  double paused_seconds_ = 0;
};

}  // namespace reckon::experiment
