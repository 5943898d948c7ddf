// What signals mean to this program.
//
// A clean stop: the first SIGINT or SIGTERM is noted, the second one ends the process as ever.
#pragma once

namespace reckon::cli {

// Once, by main(): a model file that is cut short while it is mapped (SIGBUS) ends the program with
// one line that names it and kExitFailed, and a file that grows beyond the limit of the shell
// (SIGXFSZ) fails as a full disk does. Any other SIGBUS does what it ever did.
void prepare_signals();

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

// Ctrl-C as a wish rather than an end: SIGINT is noted until it is taken, whatever thread it comes
// to, and no call fails by it. A second one before that ends the process as ever. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();  // restores the default behaviour
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  [[nodiscard]] static bool pending();
  // Whether one came since the last call.
  static bool take();
  // Waits until `fd` has something to read, its end included: true. False where one is pending or
  // comes meanwhile.
  [[nodiscard]] static bool wait_readable(int fd);
};

}  // namespace reckon::cli
