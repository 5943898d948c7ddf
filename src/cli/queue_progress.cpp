#include "cli/queue_progress.h"

#include <fmt/format.h>

#include "experiment/words.h"

namespace reckon::cli {

void QueueProgress::on_experiment(const experiment::Experiment& experiment, size_t index,
                                  size_t count) {
  title_ = fmt::format("{}/{}", index + 1, count);
  pair_seconds_ = 0;
  pairs_timed_ = 0;
  line_.show(title_ + " " + experiment.id);
}

void QueueProgress::on_note(const experiment::Experiment& experiment, const std::string& text) {
  line_.show(fmt::format("{} {}  {}", title_, experiment.id, text));
}

void QueueProgress::on_pair(const experiment::PairProgress& pair) {
  pair_seconds_ += pair.seconds;
  ++pairs_timed_;
  const int64_t left = int64_t{pair.rounds - pair.round} * pair.pairs +
                       (pair.warmup ? pair.pairs : pair.pairs - pair.pair);
  const double mean_seconds = pair_seconds_ / static_cast<double>(pairs_timed_);
  line_.show(fmt::format("{} {}  round {}/{}  {} {}/{}  {:.4g} / {:.4g} {}  about {} left", title_,
                         pair.experiment, pair.round, pair.rounds, pair.warmup ? "warm-up" : "pair",
                         pair.pair, pair.pairs, pair.base, pair.arm, pair.unit,
                         experiment::duration_text(mean_seconds * static_cast<double>(left))));
}

void QueueProgress::on_outcome(const experiment::Outcome& /*outcome*/) {
  line_.clear();
}

}  // namespace reckon::cli
