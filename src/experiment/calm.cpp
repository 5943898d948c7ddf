#include "experiment/calm.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "experiment/machine_watch.h"
#include "experiment/rounds.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

constexpr double kLookEverySeconds = 1;

void sleep_for(const RunContext& context, double seconds) {
  if (context.options.sleep_seconds) {
    context.options.sleep_seconds(seconds);
  } else {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
}

}  // namespace

Calm::Calm(RunContext& context, const Prepared& prepared, pid_t child)
    : context_(context),
      experiment_(prepared.experiment),
      watch_(prepared.metric.timed ? context.options.watch : nullptr),
      child_(child) {
  if (watch_ != nullptr) (void)watch_->look(child_);
}

std::string Calm::why_disturbed() {
  if (watch_ == nullptr) return "";
  const std::optional<MachineWindow> window = watch_->look(child_);
  last_ = window ? why_dirty(*window) : "";
  return last_;
}

std::string Calm::wait() {
  context_.progress.on_note(experiment_, fmt::format("paused: {}", last_));
  const double begin = context_.now();
  std::string stop;
  while (stop.empty() && !last_.empty()) {
    sleep_for(context_, kLookEverySeconds);
    stop = context_.stop_reason();
    if (context_.now() - begin > context_.options.most_wait_seconds) {
      stop = fmt::format("the machine did not become calm within {}: {}",
                         duration_text(context_.options.most_wait_seconds), last_);
    }
    if (stop.empty()) (void)why_disturbed();
  }
  paused_seconds_ += context_.now() - begin;
  return stop;
}

double Calm::take_paused_seconds() {
  return std::exchange(paused_seconds_, 0);
}

}  // namespace reckon::experiment
