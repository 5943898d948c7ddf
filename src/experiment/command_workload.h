// A program as what an experiment runs: its command line, what is read from it, and how it says
// what it dispatched. All of it is text as a queue has it; the command Runner (src/adapters) gives
// it its meaning. Pure and thread-safe.
//
// In the texts, {KEY} stands for the value of the switch KEY (letters, digits, "_", "." and "-",
// not beginning with a digit). {{KEY}} is {KEY} itself, ${KEY} is the shell's, and every other
// brace is left alone.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon::experiment {

struct CommandMetric {
  std::string name;           // one word
  std::string read = "wall";  // "wall" and "cpu" (milliseconds), "json:PATH", "regex:PATTERN"
  std::string unit;           // shown only; may be ""
  bool higher_is_better = false;
};

struct CommandWorkload {
  std::vector<std::string> command;        // the program and its arguments; with `shell`, one text
  bool shell = false;                      // for /bin/sh -c
  std::map<std::string, std::string> env;  // on top of what Reckon was started with
  CommandMetric metric;
  std::string dispatch_file;  // that the program writes, a line a thing it dispatched; "": none
  // Files whose content counts; unset: the first argument that is a file and no option.
  std::optional<std::vector<std::string>> inputs;
  std::map<std::string, std::string> tags;  // tell workload classes apart
  int timeout_seconds = 300;
};

inline constexpr const char* kCommandRunner = "command";  // as queues and round jobs name it
inline constexpr const char* kCommandPhase = "run";       // the only phase of a program

// Fills in what is empty: the name by `read` ("wall_ms", the last name of a JSON path, "value"),
// the unit, and `better` ("higher", "lower", or "": lower for times, `fallback` for what is read,
// where "" there is an error). Usage errors.
[[nodiscard]] Result<CommandMetric> make_command_metric(CommandMetric metric,
                                                        const std::string& better,
                                                        const std::string& fallback);

// Can it stand between the braces of {KEY}?
[[nodiscard]] bool is_placeholder_name(std::string_view text);

// The names that stand in braces, in order, each as often as it stands there.
[[nodiscard]] std::vector<std::string> placeholders(const CommandWorkload& workload);

// With every {KEY} replaced, in every text; a name without a value stays as it is.
[[nodiscard]] CommandWorkload filled(const CommandWorkload& workload,
                                     const std::map<std::string, std::string>& values);

// For the round protocol. Decoding fails (kFailed) naming the field.
[[nodiscard]] nlohmann::json encode_command(const CommandWorkload& workload);
[[nodiscard]] Result<CommandWorkload> decode_command(const nlohmann::json& object,
                                                     const std::string& what);

}  // namespace reckon::experiment
