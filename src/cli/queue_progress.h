// What a running queue shows on a terminal: one status line with the pairs done and the time left.
// Silent elsewhere.
#pragma once

#include <string>

#include "cli/terminal.h"
#include "experiment/run.h"

namespace reckon::cli {

class QueueProgress final : public experiment::Progress {
 public:
  void on_experiment(const experiment::Experiment& experiment, size_t index, size_t count) override;
  void on_note(const experiment::Experiment& experiment, const std::string& text) override;
  void on_pair(const experiment::PairProgress& pair) override;
  void on_outcome(const experiment::Outcome& outcome) override;

 private:
  StatusLine line_;
  std::string title_;  // "2/4"
  double pair_seconds_ = 0;
  int64_t pairs_timed_ = 0;
};

}  // namespace reckon::cli
