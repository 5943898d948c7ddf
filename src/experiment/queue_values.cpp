// The small languages inside a queue (durations, limits, claims), and writing a queue.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "experiment/queue.h"
#include "experiment/queue_command.h"

namespace reckon::experiment {
namespace {

// A plain decimal number and what follows it; false where there is none.
bool split_number(std::string_view text, double& number, std::string_view& rest) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number)) return false;
  rest = text.substr(static_cast<size_t>(end - text.data()));
  return true;
}

std::string limit_text(const MemoryLimit& limit) {
  switch (limit.kind) {
    case MemoryLimit::Kind::kAbovePlan:
      return fmt::format("plan+{}B", limit.bytes);
    case MemoryLimit::Kind::kBytes:
      return fmt::format("{}B", limit.bytes);
    case MemoryLimit::Kind::kPercent:
      return fmt::format("{}%", limit.percent);
  }
  return {};
}

std::string subject_text(const Workload& workload) {
  return fmt::format("    model: {}\n    backend: {}\n    quant: {}\n    metric: {}\n",
                     quoted(workload.model), quoted(workload.backend), quoted(workload.quant),
                     quoted(workload.metric));
}

// Can it be a YAML block and come back unchanged? Its last line may have an end or none.
bool fits_a_block(std::string_view text) {
  const auto plain = [](char c) {
    return c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  };
  // Separators of lines and paragraphs, a next-line and a byte order mark.
  constexpr std::array<std::string_view, 4> kOdd{"\xe2\x80\xa8", "\xe2\x80\xa9", "\xc2\x85",
                                                 "\xef\xbb\xbf"};
  const auto holds = [&](std::string_view odd) { return text.find(odd) != text.npos; };
  return text.find('\n') < text.size() - 1 && text.front() != '\n' && !text.ends_with("\n\n") &&
         std::ranges::all_of(text, plain) && std::ranges::none_of(kOdd, holds);
}

// A text of several lines as lines, so that a person can read it; else in quotes.
std::string prompt_text(const std::string& prompt) {
  if (!fits_a_block(prompt)) return fmt::format("      prompt: {}\n", quoted(prompt));
  const bool ends = prompt.ends_with('\n');
  std::string text = fmt::format("      prompt: |2{}\n", ends ? "" : "-");
  for (const std::string& line : split(prompt.substr(0, prompt.size() - (ends ? 1 : 0)), '\n')) {
    text += line.empty() ? "\n" : fmt::format("        {}\n", line);
  }
  return text;
}

// The prompt is last, since it may be long.
std::string workload_text(const Workload& workload) {
  std::string text = fmt::format("    workload:\n      phase: {}\n      prompt_tokens: {}\n",
                                 quoted(workload.phase), workload.prompt_tokens);
  text += fmt::format("      generate: {}\n", workload.generate_tokens);
  text += fmt::format("      context: {}\n", workload.context);
  return workload.prompt.empty() ? text : text + prompt_text(workload.prompt);
}

// The switch, where the arms must differ, what they must have in common, and the claim.
std::string comparison_text(const Experiment& experiment) {
  const SwitchPair& pair = experiment.switch_pair;
  std::string text = fmt::format("    switch:\n      key: {}\n", quoted(pair.key));
  if (!pair.base.empty()) text += fmt::format("      base: {}\n", quoted(pair.base));
  text += fmt::format("      arm: {}\n", quoted(pair.arm));
  const std::optional<CommandWorkload>& command = experiment.workload.command;
  if (!command || !command->dispatch_file.empty()) {
    text += "    reach:\n";
    if (!experiment.reach.op.empty()) {
      text += fmt::format("      op: {}\n", quoted(experiment.reach.op));
    }
    text += fmt::format("      phase: {}\n", quoted(experiment.reach.phase));
  }
  if (!command) text += fmt::format("    tokens: {}\n", token_policy_name(experiment.tokens));
  if (experiment.claim) text += fmt::format("    claim: \"+{:.10g}%\"\n", *experiment.claim * 100);
  return text;
}

}  // namespace

std::string_view token_policy_name(TokenPolicy policy) {
  return policy == TokenPolicy::kIdentical ? "identical" : "may-diverge";
}

Result<double> parse_seconds(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 3> kUnits{
      {{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}};
  double number = 0;
  std::string_view unit;
  if (split_number(text, number, unit)) {
    if (unit.empty()) {
      return usage_error(fmt::format("'{0}' has no unit: {0}s, {0}m or {0}h?", text));
    }
    for (const auto& [name, factor] : kUnits) {
      const double seconds = number * factor;
      if (unit == name && seconds > 0 && seconds <= 30.0 * 86400) return seconds;
    }
  }
  return usage_error(fmt::format(
      "'{}' is not a time: expected a number of s, m or h above zero and up to 30 days, as in 9m",
      text));
}

Result<double> parse_number(std::string_view text) {
  double number = 0;
  std::string_view rest;
  if (split_number(text, number, rest) && rest.empty()) return number;
  return usage_error(fmt::format("'{}' is not a number of 0 or more, as in 1.0", text));
}

Result<MemoryLimit> parse_memory_limit(std::string_view text) {
  constexpr std::string_view kPlan = "plan+";
  if (text.starts_with(kPlan)) {
    TRY_ASSIGN(const uint64_t bytes, parse_bytes(text.substr(kPlan.size())));
    return MemoryLimit{MemoryLimit::Kind::kAbovePlan, bytes, 0};
  }
  double percent = 0;
  std::string_view unit;
  if (split_number(text, percent, unit) && unit == "%") {
    if (percent > 0 && percent <= 100) return MemoryLimit{MemoryLimit::Kind::kPercent, 0, percent};
  } else if (const Result<uint64_t> bytes = parse_bytes(text); bytes.ok() && *bytes > 0) {
    return MemoryLimit{MemoryLimit::Kind::kBytes, *bytes, 0};
  }
  return usage_error(
      fmt::format("'{}' is not a memory limit: expected plan+32MiB, 8GiB or 75%", text));
}

Result<double> parse_claim(std::string_view text) {
  double percent = 0;
  std::string_view unit;
  if (split_number(text.starts_with('+') ? text.substr(1) : text, percent, unit) && unit == "%" &&
      percent > 0 && percent <= 1000) {
    return percent / 100;
  }
  return usage_error(fmt::format(
      "'{}' is not a claim: expected a gain above zero and up to 1000%, as in \"+2%\"", text));
}

std::string standalone_queue(const Experiment& experiment) {
  const Workload& workload = experiment.workload;
  std::string text = fmt::format("name: {}\n", quoted(experiment.id));
  if (workload.command) text += fmt::format("runner: {}\n", kCommandRunner);
  text += fmt::format("experiments:\n  - id: {}\n", quoted(experiment.id));
  text += fmt::format("    kind: {}\n", experiment.is_floor() ? "aa" : "ab");
  if (!experiment.idea.empty()) text += fmt::format("    idea: {}\n", quoted(experiment.idea));
  if (!experiment.is_floor()) text += comparison_text(experiment);
  if (!experiment.set.empty()) text += "    set:\n";
  for (const auto& [key, value] : experiment.set) {
    text += fmt::format("      {}: {}\n", quoted(key), quoted(value));
  }
  text += workload.command ? command_text(*workload.command) : subject_text(workload);
  if (!experiment.control.empty()) {
    text += fmt::format("    control: {}\n", quoted(experiment.control));
  }
  if (experiment.memory_limit) {
    text += fmt::format("    memory_limit: {}\n", quoted(limit_text(*experiment.memory_limit)));
  }
  text += fmt::format("    rounds: {}\n    pairs: {}\n    warmup_pairs: {}\n    timeout: {}s\n",
                      experiment.rounds, experiment.pairs, experiment.warmup_pairs,
                      experiment.timeout_seconds);
  return workload.command ? text : text + workload_text(workload);
}

}  // namespace reckon::experiment
