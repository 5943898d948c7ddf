// Runs one program to its end, with a time-out and a limit on what is kept of its output, and
// leaves nothing of it behind: whatever it started is killed when it ends, on a time-out, and when
// this process dies. Call it from a process without other threads. Linux.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace reckon::adapters {

// Of each stream; half of it from the beginning and half from the end.
inline constexpr size_t kMaximumOutputBytes = size_t{8} << 20;

struct ProcessJob {
  std::vector<std::string> argv;           // the first is a path, or is found on PATH
  std::map<std::string, std::string> env;  // on top of this process's own
  std::chrono::milliseconds timeout{300000};
  size_t maximum_output_bytes = kMaximumOutputBytes;
};

// What a program wrote to one stream.
class CapturedOutput {
 public:
  explicit CapturedOutput(size_t maximum_bytes) : half_(maximum_bytes / 2) {}
  void append(std::string_view bytes);
  // The beginning and the end; everything where nothing was dropped.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool dropped() const { return bytes_ > 2 * half_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Its last lines as one, for a message.
  [[nodiscard]] std::string tail() const;

 private:
  size_t half_;
  std::string first_, last_;  // the second is trimmed to half_ now and then
  uint64_t bytes_ = 0;
};

struct ProcessEnd {
  enum class Kind { kExited, kSignalled, kTimedOut };
  Kind kind = Kind::kExited;
  int code = 0;  // exit code, or number of the signal
  CapturedOutput output, errors;
  double wall_ms = 0;
  double cpu_ms = 0;        // user and system, of it and of the processes that it waited for
  uint64_t peak_bytes = 0;  // largest resident set of one of these; never less than a few MiB

  // "exit code 3; it said: …", "signal 11 (SEGV)", "no end within 5 s": "" for exit code 0.
  [[nodiscard]] std::string failure(const ProcessJob& job) const;
};

// kUsage where the program cannot be started, kFailed where the machine gives no process.
[[nodiscard]] Result<ProcessEnd> run_process(const ProcessJob& job);

}  // namespace reckon::adapters
