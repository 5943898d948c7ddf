// The experiments of a queue that says `runner: command`: programs as arms. Internal to queue.cpp.
// Pure and thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/queue.h"
#include "experiment/queue_fields.h"

namespace reckon::experiment {

// Keys that such an experiment and its defaults may have beside the common ones.
extern const std::vector<std::string> kCommandKeys;

// Fills the workload; the switch, `set` and the time-out have been read. Usage errors with the
// line.
[[nodiscard]] Status read_command_workload(const Fields& fields, Experiment& experiment);

// As a double-quoted scalar of YAML, which a JSON string is.
[[nodiscard]] std::string quoted(const std::string& text);

// Its keys as lines of a queue, indented by four.
[[nodiscard]] std::string command_text(const CommandWorkload& workload);

}  // namespace reckon::experiment
