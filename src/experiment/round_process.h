// A round's child process, seen from its parent: started afresh, asked for one measurement at a
// time, killed with everything it started when it hangs or is no longer wanted.
//
// The child gets the job on its standard input and answers on its standard output; what it says on
// standard error is kept for the error text. It runs in a process group of its own and dies with
// the thread that started it. Used from one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "experiment/round_protocol.h"

namespace reckon::experiment {

class ChildProcess;

// The child died, hung or talked nonsense while an arm was being measured: "signal SIGSEGV",
// "no answer within 300 s", "exit code 3", with the last lines of its standard error.
struct Broken {
  std::string reason;
};

class RoundProcess {
 public:
  struct Options {
    std::vector<std::string> command;           // argv; the first one is a path or is found on PATH
    std::chrono::milliseconds timeout{300000};  // for the start and for each measurement
    size_t maximum_line_bytes = kMaximumLineBytes;
  };

  // Starts the child, gives it the job and waits until it is ready. A child that cannot be started
  // or fails before it is ready is a failure (kFailed), not an arm's fault.
  [[nodiscard]] static Result<std::unique_ptr<RoundProcess>> start(const RoundJob& job,
                                                                   const Options& options);
  // Kills what is left.
  ~RoundProcess();
  RoundProcess(const RoundProcess&) = delete;
  RoundProcess& operator=(const RoundProcess&) = delete;

  // Measures one arm of the job. After Broken the process is gone. A runner's own error, which the
  // child reported cleanly, is in the answer.
  using Answer = std::variant<RoundAnswer, Broken>;
  [[nodiscard]] Answer measure(int64_t arm);
  // Compares what an arm predicts with arm 0, over tokens that arm 0 generated; the answer has the
  // quality. Both arms are run: twice the time-out.
  [[nodiscard]] Answer compare_quality(int64_t arm, std::vector<int32_t> generated);

  [[nodiscard]] pid_t pid() const;  // -1: it is gone

  // Ends the child as it wants to be ended. kFailed: it did not end with exit code 0 in time.
  [[nodiscard]] Status finish();

 private:
  explicit RoundProcess(Options options);
  [[nodiscard]] Answer ask(const RoundRequest& request, std::chrono::milliseconds timeout);

  std::unique_ptr<ChildProcess> child_;
  Options options_;
  int64_t sequence_ = 0;
};

}  // namespace reckon::experiment
