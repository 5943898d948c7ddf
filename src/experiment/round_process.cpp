#include "experiment/round_process.h"

#include <fmt/format.h>

#include <utility>

#include "experiment/child_process.h"

namespace reckon::experiment {
namespace {

constexpr std::chrono::milliseconds kFinishTimeout{10000};

std::string with_tail(std::string reason, const ChildProcess& child) {
  const std::string tail = child.error_tail();
  return tail.empty() ? reason : fmt::format("{}; it said: {}", reason, tail);
}

}  // namespace

RoundProcess::RoundProcess(Options options)
    : child_(std::make_unique<ChildProcess>()), options_(std::move(options)) {}

RoundProcess::~RoundProcess() = default;

Result<std::unique_ptr<RoundProcess>> RoundProcess::start(const RoundJob& job,
                                                          const Options& options) {
  std::unique_ptr<RoundProcess> process(new RoundProcess(options));
  ChildProcess& child = *process->child_;
  TRY(child.start(options.command));
  const ChildProcess::Exchange ready =
      child.exchange(encode_job(job), options.timeout, options.maximum_line_bytes);
  const std::string& name = options.command.front();
  if (!ready.line) {
    child.kill();
    return failed(fmt::format("the round's process ({}) did not start: {}", name,
                              with_tail(ready.failure, child)));
  }
  if (const Status status = decode_ready(*ready.line); !status.ok()) {
    child.kill();
    return failed(fmt::format("the round's process ({}) does not speak the {}", name,
                              with_tail(status.error().message, child)));
  }
  return process;
}

RoundProcess::Answer RoundProcess::measure(int64_t arm) {
  return ask({arm, sequence_++, std::nullopt}, options_.timeout);
}

RoundProcess::Answer RoundProcess::compare_quality(int64_t arm, std::vector<int32_t> generated) {
  return ask({arm, sequence_++, std::move(generated)}, 2 * options_.timeout);
}

RoundProcess::Answer RoundProcess::ask(const RoundRequest& request,
                                       std::chrono::milliseconds timeout) {
  const ChildProcess::Exchange exchange =
      child_->exchange(encode_request(request), timeout, options_.maximum_line_bytes);
  if (!exchange.line) {
    child_->kill();
    return Broken{with_tail(exchange.failure, *child_)};
  }
  Result<RoundAnswer> answer = decode_answer(*exchange.line);
  const bool fits = answer.ok() && answer->sequence == request.sequence &&
                    (answer->error || answer->quality.has_value() == request.quality.has_value());
  if (fits) return std::move(answer).value();
  child_->kill();
  const std::string reason = answer.ok() ? "an answer to another request" : answer.error().message;
  return Broken{with_tail("garbage instead of an answer: " + reason, *child_)};
}

pid_t RoundProcess::pid() const {
  return child_->pid();
}

Status RoundProcess::finish() {
  const std::string end = child_->finish(kFinishTimeout);
  if (end.empty()) return {};
  return failed(fmt::format("the round's process ended badly: {}", with_tail(end, *child_)));
}

}  // namespace reckon::experiment
