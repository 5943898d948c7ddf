#include "experiment/queue_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace reckon::experiment {

const std::vector<std::string> kCommandKeys{"command", "env",  "metric", "dispatch_file",
                                            "inputs",  "tags", "reach"};

namespace {

const std::vector<std::string> kMetricKeys{"name", "read", "unit", "better"};
// What `command` is where it is absent: the arms are whole commands.
constexpr const char* kWholeCommand = "{command}";

Status read_program(const Fields& fields, CommandWorkload& command) {
  TRY_ASSIGN(const auto words, fields.texts("command"));
  const YamlNode* node = fields.find("command");
  command.shell = node == nullptr || node->kind == YamlNode::Kind::kScalar;
  command.command = words.value_or(std::vector<std::string>{kWholeCommand});
  if (command.command.empty() || command.command.front().empty()) {
    return fields.key_error("command", "'command' is empty");
  }
  return {};
}

Status read_metric(const Fields& outer, CommandWorkload& command) {
  const YamlNode* node = outer.find("metric");
  std::string better;
  if (node != nullptr && node->kind == YamlNode::Kind::kMap) {
    const Fields fields(outer.path(), *node, outer.what() + ": metric");
    TRY(fields.check(kMetricKeys));
    TRY_ASSIGN(command.metric.read, fields.required("read"));
    TRY_ASSIGN(command.metric.name, fields.text("name"));
    TRY_ASSIGN(command.metric.unit, fields.text("unit"));
    TRY_ASSIGN(better, fields.text("better"));
  } else if (node != nullptr) {
    TRY_ASSIGN(command.metric.read, outer.text("metric"));
  }
  Result<CommandMetric> metric = make_command_metric(command.metric, better, "");
  if (!metric.ok()) return outer.key_error("metric", "metric: " + metric.error().message);
  command.metric = std::move(metric).value();
  return {};
}

Status read_env(const Fields& fields, CommandWorkload& command) {
  TRY_ASSIGN(const auto entries, fields.entries("env"));
  for (const Fields::Entry& entry : entries) {
    if (entry.key.empty() || entry.key.find('=') != std::string::npos) {
      return fields.error(entry.line,
                          fmt::format("'{}' is no name of an environment variable", entry.key));
    }
    command.env[entry.key] = entry.value;
  }
  return {};
}

// A tag becomes a word of the workload class.
Status read_tags(const Fields& fields, CommandWorkload& command) {
  TRY_ASSIGN(const auto entries, fields.entries("tags"));
  for (const Fields::Entry& entry : entries) {
    if (!is_placeholder_name(entry.key) ||
        entry.value.find_first_of(" \t\n=") != std::string::npos) {
      return fields.error(entry.line,
                          fmt::format("tag '{}': expected a name and one word", entry.key));
    }
    command.tags[entry.key] = entry.value;
  }
  return {};
}

// Every {KEY} is a switch, and every switch stands somewhere.
Status check_switches(const Fields& fields, const Experiment& experiment) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : experiment.set) keys.push_back(key);
  if (!experiment.is_floor()) keys.push_back(experiment.switch_pair.key);
  const std::vector<std::string> used = placeholders(*experiment.workload.command);
  for (const std::string& name : used) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::string near = nearest(name, keys);
    return fields.key_error(
        "command",
        fmt::format("nothing sets {{{0}}}; {1}write {{{{{0}}}}} for these very characters", name,
                    near.empty() ? "" : fmt::format("did you mean {{{}}}? Or ", near)));
  }
  for (const std::string& key : keys) {
    if (std::find(used.begin(), used.end(), key) != used.end()) continue;
    return fields.key_error(
        key == experiment.switch_pair.key ? "switch" : "set",
        fmt::format("'{0}' changes nothing: no {{{0}}} in the command, env, inputs or "
                    "dispatch_file",
                    key));
  }
  return {};
}

Status check_arms(const Fields& fields, const Experiment& experiment) {
  for (const auto& [key, value] : experiment.set) {
    if (!is_placeholder_name(key)) {
      return fields.key_error("set", fmt::format("'{}' cannot be a {{KEY}}", key));
    }
  }
  if (experiment.is_floor()) return {};
  if (!is_placeholder_name(experiment.switch_pair.key)) {
    return fields.key_error("switch",
                            fmt::format("'{}' cannot be a {{KEY}}", experiment.switch_pair.key));
  }
  if (experiment.switch_pair.base.empty()) {
    return fields.key_error("switch", "'base' is missing: a program's default is not known here");
  }
  if (fields.find("reach") != nullptr && fields.find("dispatch_file") == nullptr) {
    return fields.key_error("reach", "'reach' needs a 'dispatch_file' that says what ran");
  }
  return {};
}

std::string list_text(const char* key, const std::vector<std::string>& items) {
  std::vector<std::string> words;
  for (const std::string& item : items) words.push_back(quoted(item));
  return fmt::format("    {}: [{}]\n", key, join(words, ", "));
}

std::string map_text(const char* key, const std::map<std::string, std::string>& map) {
  if (map.empty()) return "";
  std::string text = fmt::format("    {}:\n", key);
  for (const auto& [name, value] : map) {
    text += fmt::format("      {}: {}\n", quoted(name), quoted(value));
  }
  return text;
}

}  // namespace

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

Status read_command_workload(const Fields& fields, Experiment& experiment) {
  CommandWorkload command;
  TRY(read_program(fields, command));
  TRY(read_metric(fields, command));
  TRY(read_env(fields, command));
  TRY(read_tags(fields, command));
  TRY_ASSIGN(command.dispatch_file, fields.text("dispatch_file"));
  TRY_ASSIGN(command.inputs, fields.texts("inputs"));
  use_command(experiment, std::move(command));
  TRY(check_arms(fields, experiment));
  return check_switches(fields, experiment);
}

void use_command(Experiment& experiment, CommandWorkload command) {
  command.timeout_seconds = experiment.timeout_seconds;
  Workload& workload = experiment.workload;
  workload.phase = kCommandPhase;
  workload.backend = kCommandRunner;
  workload.metric = command.metric.name;
  workload.command = std::move(command);
  experiment.reach.phase = kCommandPhase;
}

std::string command_text(const CommandWorkload& workload) {
  std::string text = workload.shell
                         ? fmt::format("    command: {}\n", quoted(workload.command.front()))
                         : list_text("command", workload.command);
  text += map_text("env", workload.env);
  const CommandMetric& metric = workload.metric;
  text += fmt::format("    metric:\n      name: {}\n      read: {}\n", quoted(metric.name),
                      quoted(metric.read));
  const bool is_time = metric.read == "wall" || metric.read == "cpu";
  if (!is_time && !metric.unit.empty())
    text += fmt::format("      unit: {}\n", quoted(metric.unit));
  text += fmt::format("      better: {}\n", metric.higher_is_better ? "higher" : "lower");
  if (!workload.dispatch_file.empty()) {
    text += fmt::format("    dispatch_file: {}\n", quoted(workload.dispatch_file));
  }
  if (workload.inputs) text += list_text("inputs", *workload.inputs);
  return text + map_text("tags", workload.tags);
}

}  // namespace reckon::experiment
