// The child's side of a round.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "experiment/round_protocol.h"

namespace reckon::experiment {
namespace {

class LineChannel {
 public:
  LineChannel(int in_fd, int out_fd) : in_fd_(in_fd), out_fd_(out_fd) {}

  // False at the end of the input.
  Result<bool> read_line(std::string& line) {
    while (true) {
      const size_t end = buffer_.find('\n', searched_);
      if (end != std::string::npos) {
        line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        searched_ = 0;
        return true;
      }
      searched_ = buffer_.size();
      if (buffer_.size() > kMaximumLineBytes) return failed("round protocol: line too long");
      char bytes[65536];
      const ssize_t got = ::read(in_fd_, bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed(fmt::format("round protocol: {}", std::strerror(errno)));
      if (got == 0) return false;
      buffer_.append(bytes, static_cast<size_t>(got));
    }
  }

  Status write_line(std::string line) {
    line += '\n';
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t put = ::write(out_fd_, line.data() + sent, line.size() - sent);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return failed(fmt::format("round protocol: {}", std::strerror(errno)));
      sent += static_cast<size_t>(put);
    }
    return {};
  }

 private:
  int in_fd_;
  int out_fd_;
  std::string buffer_;
  size_t searched_ = 0;
};

Result<Measurement> measure_arm(Runner& runner, const RoundJob& job, int64_t arm) {
  if (arm < 0 || arm >= static_cast<int64_t>(job.arms.size())) {
    return failed(fmt::format("round protocol: no arm {}", arm));
  }
  TRY_ASSIGN(Measurement measurement,
             runner.measure(job.workload, job.arms[static_cast<size_t>(arm)]));
  for (const auto& [name, value] : measurement.metrics) {
    if (!std::isfinite(value)) return failed(fmt::format("metric '{}' is not finite", name));
  }
  return measurement;
}

Result<Quality> compare_quality(Runner& runner, const RoundJob& job, const RoundRequest& request) {
  if (request.arm < 0 || request.arm >= static_cast<int64_t>(job.arms.size())) {
    return failed(fmt::format("round protocol: no arm {}", request.arm));
  }
  TRY_ASSIGN(const Quality quality,
             runner.compare_quality(job.workload, job.arms.front(),
                                    job.arms[static_cast<size_t>(request.arm)], *request.quality));
  for (const double value :
       {quality.mean_kl, quality.largest_kl, quality.base_perplexity.value_or(1),
        quality.arm_perplexity.value_or(1)}) {
    if (!std::isfinite(value)) return failed("what the arms predict is not finite");
  }
  return quality;
}

Status serve_request(Runner& runner, const RoundJob& job, const RoundRequest& request,
                     RoundAnswer& answer) {
  if (request.quality) {
    TRY_ASSIGN(answer.quality, compare_quality(runner, job, request));
  } else {
    TRY_ASSIGN(answer.measurement, measure_arm(runner, job, request.arm));
  }
  answer.environment = runner.environment();
  return {};
}

}  // namespace

Status serve_round(const OpenRunner& open, int in_fd, int out_fd) {
  LineChannel channel(in_fd, out_fd);
  std::string line;
  TRY_ASSIGN(bool more, channel.read_line(line));
  if (!more) return failed("round protocol: no job came");
  TRY_ASSIGN(const RoundJob job, decode_job(line));
  TRY_ASSIGN(const std::unique_ptr<Runner> runner, open(job.runner));
  TRY(channel.write_line(encode_ready()));
  while (true) {
    TRY_ASSIGN(more, channel.read_line(line));
    if (!more) return {};
    TRY_ASSIGN(const RoundRequest request, decode_request(line));
    RoundAnswer answer;
    answer.sequence = request.sequence;
    if (const Status served = serve_request(*runner, job, request, answer); !served.ok()) {
      answer.error = served.error();
    }
    TRY(channel.write_line(encode_answer(answer)));
  }
}

}  // namespace reckon::experiment
