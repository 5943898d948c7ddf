// The process between the command Runner and a program: it starts the program, and when that has
// ended, when it is told to, or when whoever started it has died, it kills everything that the
// program left behind, however deep. Internal to command_process.cpp.
#pragma once

#include <cstdint>

namespace reckon::adapters {

struct SupervisorReport {
  int32_t start_error = 0;  // errno where the program could not be started
  int32_t wait_status = 0;  // as waitpid gives it
  int64_t wall_ns = 0;      // from just before the fork to the end
  int64_t cpu_ns = 0;       // user and system, of the program and of what it waited for
  uint64_t peak_bytes = 0;  // largest resident set of one of these
};

struct SupervisorFds {
  int lifeline = -1;  // ends when the program shall be killed
  int report = -1;    // takes one SupervisorReport
  int output = -1;    // the program's standard output
  int errors = -1;    // and standard error
};

// Runs in a freshly forked process of a single thread and makes only system calls. The program gets
// a session and a process group of its own, /dev/null as standard input, default signals.
[[noreturn]] void supervise(char* const* argv, char* const* environment, const SupervisorFds& fds);

}  // namespace reckon::adapters
