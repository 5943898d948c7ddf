// A child process that talks in lines. Internal to round_process.cpp. Used from one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/unique_fd.h"

namespace reckon::experiment {

class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess();  // kills
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Starts it in a process group of its own; it is killed when the calling thread ends. kFailed
  // where it cannot be started at all (no such program included).
  [[nodiscard]] Status start(const std::vector<std::string>& command);

  [[nodiscard]] pid_t pid() const { return pid_; }  // -1: none, or it is gone

  // Sends a line and waits for one: the child's answer, or why none came.
  struct Exchange {
    std::optional<std::string> line;
    std::string failure;  // set exactly where `line` is not
  };
  [[nodiscard]] Exchange exchange(const std::string& request, std::chrono::milliseconds timeout,
                                  size_t maximum_line_bytes);

  // Closes the child's input and waits for its end; kills it after the time-out. "" for exit code
  // 0, else what happened.
  [[nodiscard]] std::string finish(std::chrono::milliseconds timeout);

  // Kills the whole process group and reaps the child. Harmless when it is gone.
  void kill();

  // The last few KiB of what it wrote to standard error, as one line.
  [[nodiscard]] std::string error_tail() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  enum class Pumped { kProgress, kEnded, kTimedOut };
  // Waits once for anything to send, to read or to end.
  [[nodiscard]] Pumped pump(std::string_view& unsent, Deadline deadline);
  void send_some(std::string_view& unsent);
  void drain_errors();
  // Has it ended? Then reaps it and kills whatever it left in its group.
  bool reap_if_ended();
  [[nodiscard]] std::string describe_end();

  pid_t pid_ = -1;
  std::optional<int> wait_status_;
  UniqueFd input_;   // socket to the child's standard input
  UniqueFd output_;  // pipe from its standard output
  UniqueFd errors_;  // pipe from its standard error
  std::string output_buffer_;
  size_t searched_ = 0;  // of output_buffer_, for a line end
  std::string error_buffer_;
};

}  // namespace reckon::experiment
