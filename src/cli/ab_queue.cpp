#include "cli/ab_queue.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "base/utf8.h"

namespace reckon::cli {
namespace {

using experiment::CommandWorkload;
using experiment::Experiment;
using experiment::Queue;

constexpr const char* kPlace = "command line";
constexpr const char* kSwitch = "command";  // the arms are whole commands
constexpr size_t kIdeaShown = 60;

// An option's value through a parser, the option in front of its error.
template <typename T>
Result<T> parsed(const char* option, Result<T> value) {
  if (value.ok()) return value;
  return usage_error(fmt::format("{}: {}", option, value.error().message));
}

Result<std::map<std::string, std::string>> pairs_of(const char* option,
                                                    const std::vector<std::string>& texts) {
  std::map<std::string, std::string> map;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return usage_error(fmt::format("{} {}: expected KEY=VALUE", option, text));
    }
    map[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return map;
}

Status check_texts(const AbOptions& options) {
  std::vector<std::string> texts{options.base, options.arm, options.metric, options.idea,
                                 options.dispatch_file};
  for (const auto* list : {&options.env, &options.inputs, &options.tags}) {
    texts.insert(texts.end(), list->begin(), list->end());
  }
  for (const std::string& text : texts) {
    if (!valid_utf8(text)) return usage_error(fmt::format("'{}' is not UTF-8", one_line(text)));
  }
  for (const auto& [option, command] :
       {std::pair("--base", &options.base), std::pair("--arm", &options.arm)}) {
    if (command->find_first_not_of(" \t\n") == std::string::npos) {
      return usage_error(fmt::format("{}: the command is empty", option));
    }
  }
  if (options.base == options.arm) {
    return usage_error("--base and --arm are the same command; --floor measures identical arms");
  }
  if (options.name.empty() || options.name.size() > 80 || one_line(options.name) != options.name) {
    return usage_error("--name: expected one line of at most 80 bytes");
  }
  return {};
}

Result<CommandWorkload> command_of(const AbOptions& options) {
  CommandWorkload command;
  command.command = {fmt::format("{{{}}}", kSwitch)};
  command.shell = true;
  command.metric.read = options.metric;
  command.metric.unit = options.unit;
  TRY_ASSIGN(command.metric,
             parsed("--metric", experiment::make_command_metric(std::move(command.metric),
                                                                options.better, "higher")));
  TRY_ASSIGN(command.env, pairs_of("--env", options.env));
  TRY_ASSIGN(command.tags, pairs_of("--tag", options.tags));
  for (const auto& [key, value] : command.tags) {
    if (!experiment::is_placeholder_name(key) || value.find_first_of(" \t=") != std::string::npos) {
      return usage_error(fmt::format("--tag {}={}: expected a name and one word", key, value));
    }
  }
  command.dispatch_file = options.dispatch_file;
  if (!options.inputs.empty()) command.inputs = options.inputs;
  return command;
}

// What both experiments have in common.
Result<Experiment> design_of(const AbOptions& options) {
  Experiment experiment;
  experiment.pairs = options.pairs;
  experiment.warmup_pairs = options.warmup;
  if (!options.timeout.empty()) {
    TRY_ASSIGN(const double seconds,
               parsed("--timeout", experiment::parse_seconds(options.timeout)));
    if (seconds < 1 || seconds > 86400) return usage_error("--timeout: expected 1s to 24h");
    experiment.timeout_seconds = static_cast<int>(seconds);
  }
  TRY_ASSIGN(CommandWorkload command, command_of(options));
  use_command(experiment, std::move(command));
  return experiment;
}

}  // namespace

Result<Queue> ab_queue(const AbOptions& options) {
  TRY(check_texts(options));
  TRY_ASSIGN(const Experiment design, design_of(options));
  Queue queue;
  queue.path = kPlace;
  queue.runner = experiment::kCommandRunner;
  Hasher hash;
  hash.add_field(options.base).add_field(options.arm).add_field(options.metric);
  for (const std::string& variable : options.env) hash.add_field(variable);
  queue.name = fmt::format("{}-{}", options.name, hash.base32(8));
  if (options.floor > 0) {
    Experiment floor = design;
    floor.id = options.name + "-floor";
    floor.kind = ledger::EntryKind::kFloor;
    floor.rounds = options.floor;
    floor.set[kSwitch] = options.base;
    queue.experiments.push_back(std::move(floor));
  }
  Experiment comparison = design;
  comparison.id = options.name;
  comparison.idea = options.idea;
  if (comparison.idea.empty()) {
    comparison.idea = fmt::format("{} instead of {}", shorten(one_line(options.arm), kIdeaShown),
                                  shorten(one_line(options.base), kIdeaShown));
  }
  comparison.rounds = options.rounds;
  comparison.switch_pair = {kSwitch, options.base, options.arm};
  if (!options.claim.empty()) {
    TRY_ASSIGN(comparison.claim, parsed("--claim", experiment::parse_claim(options.claim)));
  }
  queue.experiments.push_back(std::move(comparison));
  return queue;
}

std::string without_place(const std::string& message) {
  if (!message.starts_with(kPlace)) return message;
  const size_t end = message.find("': ");
  return end == std::string::npos ? message : message.substr(end + 3);
}

}  // namespace reckon::cli
