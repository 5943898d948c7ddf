#include "experiment/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"
#include "experiment/record.h"
#include "experiment/rows.h"
#include "ledger/facts.h"

namespace reckon::experiment {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

Result<Runner::MetricInfo> metric_named(const Runner& runner, const std::string& name) {
  std::vector<std::string> names;
  for (Runner::MetricInfo& metric : runner.metrics()) {
    if (metric.name == name) return std::move(metric);
    names.push_back(metric.name);
  }
  const std::string near = nearest(name, names);
  return usage_error(fmt::format(
      "unknown metric '{}'; {}", name,
      near.empty() ? "known are " + join(names, ", ") : fmt::format("did you mean '{}'?", near)));
}

Result<Runner::MetricInfo> find_metric(const Runner& runner, const Experiment& experiment) {
  if (const std::optional<CommandWorkload>& command = experiment.workload.command) {
    const CommandMetric& metric = command->metric;
    return Runner::MetricInfo{metric.name, metric.unit, metric.higher_is_better, kCommandPhase};
  }
  TRY_ASSIGN(Runner::MetricInfo metric, metric_named(runner, experiment.workload.metric));
  if (!metric.phase.empty() && metric.phase != experiment.workload.phase) {
    return usage_error(fmt::format("metric '{}' is read in {}, and the workload's phase is {}",
                                   metric.name, metric.phase, experiment.workload.phase));
  }
  return metric;
}

// A control that the switch may move controls nothing.
Result<std::optional<Runner::MetricInfo>> find_control(const Runner& runner,
                                                       const Experiment& experiment) {
  if (experiment.control.empty()) return std::optional<Runner::MetricInfo>();
  TRY_ASSIGN(Runner::MetricInfo control, metric_named(runner, experiment.control));
  const Reach& reach = experiment.reach;
  if (control.name == experiment.workload.metric) {
    return usage_error(fmt::format("control '{}' is the metric itself", control.name));
  }
  if (!control.phase.empty() && (reach.phase.empty() || reach.phase == control.phase)) {
    return usage_error(
        fmt::format("control '{}' is read in {}, where the switch may move it: expected a metric "
                    "out of its reach",
                    control.name, control.phase));
  }
  return std::optional(std::move(control));
}

// Missed now, not after the first pair.
Status check_generates(const Runner::MetricInfo& metric, const Workload& workload) {
  if (workload.generate_tokens >= metric.least_generated) return {};
  return usage_error(fmt::format("metric '{}' takes at least {} generated tokens: 'generate' is {}",
                                 metric.name, metric.least_generated, workload.generate_tokens));
}

Status resolve_switches(Runner& runner, Experiment& experiment) {
  for (const auto& [key, value] : experiment.set) TRY(runner.check_switch(key, value));
  if (experiment.is_floor()) return {};
  SwitchPair& pair = experiment.switch_pair;
  TRY(runner.check_switch(pair.key, pair.arm));
  if (pair.base.empty()) pair.base = runner.default_value(pair.key);
  TRY(runner.check_switch(pair.key, pair.base));
  if (pair.base == pair.arm) {
    return usage_error(
        fmt::format("'{}' is {} in both arms (its default); identical arms are "
                    "kind: aa",
                    pair.key, pair.arm));
  }
  return {};
}

Result<uint64_t> whole_number(const Subject& subject, const char* key) {
  const auto found = subject.device.find(key);
  uint64_t value = 0;
  if (found != subject.device.end()) {
    const char* end = found->second.data() + found->second.size();
    const auto [stop, failure] = std::from_chars(found->second.data(), end, value);
    if (failure == std::errc() && stop == end) return value;
  }
  return failed(fmt::format("the runner does not say the device's '{}'", key));
}

Result<ledger::DeviceKey> device_key(const Subject& subject, nlohmann::json& extra) {
  ledger::DeviceKey device;
  TRY_ASSIGN(const uint64_t units, whole_number(subject, "units"));
  TRY_ASSIGN(const uint64_t memory, whole_number(subject, "memory_bytes"));
  device.units = static_cast<int64_t>(units);
  device.memory_gib = static_cast<int64_t>((memory + kGib / 2) / kGib);
  for (const auto& [key, value] : subject.device) {
    if (key == "vendor") {
      device.vendor = value;
    } else if (key == "isa") {
      device.isa = value;
    } else if (key != "units" && key != "memory_bytes") {
      extra["device." + key] = value;
    }
  }
  return device;
}

// Both arms' limits in bytes. `base_bytes`: what the base arm plans without a limit.
Result<std::optional<uint64_t>> limit_bytes(const Experiment& experiment, const Subject& subject,
                                            uint64_t base_bytes) {
  if (!experiment.memory_limit) return std::optional<uint64_t>();
  const MemoryLimit& limit = *experiment.memory_limit;
  uint64_t bytes = limit.bytes;
  if (limit.kind == MemoryLimit::Kind::kAbovePlan) {
    if (!add_checked(base_bytes, limit.bytes, bytes)) {
      return usage_error("'memory_limit' is larger than any memory");
    }
  } else if (limit.kind == MemoryLimit::Kind::kPercent) {
    TRY_ASSIGN(const uint64_t memory, whole_number(subject, "memory_bytes"));
    bytes = static_cast<uint64_t>(static_cast<double>(memory) * limit.percent / 100);
  }
  return std::optional<uint64_t>(bytes);
}

// As the scope keeps it: what was asked for, not what it came to on this day.
std::string limit_key(const std::optional<MemoryLimit>& limit) {
  if (!limit) return "";
  if (limit->kind == MemoryLimit::Kind::kPercent) return fmt::format("{:g}%", limit->percent);
  return fmt::format("{}{}", limit->kind == MemoryLimit::Kind::kAbovePlan ? "plan+" : "",
                     limit->bytes);
}

// Tokens of the longest prefill pass: a chunk longer than the prompt is the prompt.
int64_t pass_rows(const Subject& subject) {
  return std::min(subject.prompt_tokens, std::max<int64_t>(subject.chunk, 1));
}

std::string workload_class(const Prepared& prepared) {
  const Workload& workload = prepared.experiment.workload;
  const Subject& subject = prepared.subject;
  if (!subject.workload_words.empty()) {
    return fmt::format("metric={} {} pairs={}", workload.metric, subject.workload_words,
                       prepared.experiment.pairs);
  }
  std::string words = fmt::format(
      "metric={} phase={} shape={} format={} prompt={} generate={} pairs={} threads={}",
      workload.metric, workload.phase, subject.model_shape_hash, subject.weight_format,
      subject.prompt_tokens, workload.generate_tokens, prepared.experiment.pairs, subject.threads);
  if (workload.phase == "prefill") words += fmt::format(" chunk={}", pass_rows(subject));
  return words;
}

Result<ledger::Scope> make_scope(const Prepared& prepared) {
  const Experiment& experiment = prepared.experiment;
  const Workload& workload = experiment.workload;
  const Subject& subject = prepared.subject;
  ledger::Scope scope;
  scope.switch_key = experiment.switch_pair.key;
  scope.base_value = experiment.switch_pair.base;
  scope.arm_value = experiment.switch_pair.arm;
  TRY_ASSIGN(scope.device, device_key(subject, scope.extra));
  scope.backend = subject.backend;
  scope.model_family = subject.model_family;
  scope.shape_hash = subject.model_shape_hash;
  scope.model_hash = subject.model_hash;
  scope.weight_format = subject.weight_format;
  scope.chunk = subject.chunk;
  scope.rows = workload.phase == "prefill" ? pass_rows(subject) : 1;
  scope.context =
      workload.context > 0 ? workload.context : subject.prompt_tokens + workload.generate_tokens;
  scope.metric = workload.metric;
  scope.workload_class = workload_class(prepared);
  scope.prompt_hash = subject.prompt_hash;
  scope.tokens_policy = workload.command ? "none" : token_policy_name(experiment.tokens);
  if (!experiment.is_floor()) scope.reach = reach_text(experiment.reach);
  scope.memory_limit = limit_key(experiment.memory_limit);
  scope.base_switches = experiment.set;
  scope.arm_switches = experiment.set;
  return scope;
}

// An op or a phase that neither arm has is a slip of the pen, not an experiment.
Status check_reach(const Prepared& prepared) {
  const Reach& reach = prepared.experiment.reach;
  if (!prepared.base_plan.complete) return {};
  const std::vector<DispatchRow> base = predicted_rows(prepared.base_plan);
  const std::vector<DispatchRow> arm = predicted_rows(prepared.arm_plan);
  if (!rows_at(base, reach).empty() || !rows_at(arm, reach).empty()) return {};
  std::vector<std::string> known;
  for (const DispatchRow& row : base) {
    const std::string text = reach_text({row.op, row.phase});
    if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(text);
  }
  return usage_error(fmt::format("reach {}: neither arm runs anything there; they run {}",
                                 reach_text(reach), join(known, ", ")));
}

Status fill(Prepared& prepared, Runner& runner) {
  Experiment& experiment = prepared.experiment;
  TRY_ASSIGN(prepared.metric, find_metric(runner, experiment));
  TRY(check_generates(prepared.metric, experiment.workload));
  TRY_ASSIGN(prepared.control, find_control(runner, experiment));
  if (prepared.control) TRY(check_generates(*prepared.control, experiment.workload));
  if (experiment.tokens == TokenPolicy::kMayDiverge && !runner.compares_quality()) {
    return usage_error("'tokens: may-diverge' needs a runner that can compare what arms predict");
  }
  TRY(resolve_switches(runner, experiment));
  prepared.base = {"base", experiment.set, std::nullopt};
  prepared.arm = {"arm", experiment.set, std::nullopt};
  if (!experiment.is_floor()) {
    prepared.base.switches[experiment.switch_pair.key] = experiment.switch_pair.base;
    prepared.arm.switches[experiment.switch_pair.key] = experiment.switch_pair.arm;
  }
  const Workload& workload = experiment.workload;
  TRY_ASSIGN(prepared.subject, runner.describe(workload, prepared.base));
  TRY_ASSIGN(prepared.base_plan, runner.predict(workload, prepared.base));
  TRY_ASSIGN(prepared.base.memory_limit_bytes,
             limit_bytes(experiment, prepared.subject, prepared.base_plan.planned_bytes));
  prepared.arm.memory_limit_bytes = prepared.base.memory_limit_bytes;
  if (prepared.base.memory_limit_bytes) {
    TRY_ASSIGN(prepared.base_plan, runner.predict(workload, prepared.base));
  }
  prepared.arm_plan = prepared.base_plan;
  if (!experiment.is_floor()) {
    TRY_ASSIGN(prepared.arm_plan, runner.predict(workload, prepared.arm));
    TRY(check_reach(prepared));
  }
  TRY_ASSIGN(prepared.scope, make_scope(prepared));
  prepared.sources = sources_in_reach(prepared.base_plan, prepared.arm_plan, experiment.reach);
  prepared.predicted = compare_rows(predicted_rows(prepared.base_plan),
                                    predicted_rows(prepared.arm_plan), experiment.reach);
  mark_weak(prepared.base_plan, prepared.predicted);
  prepared.facts = ledger::facts_of(to_environment(runner.environment(), ""));
  return {};
}

}  // namespace

Result<Prepared> prepare(const std::string& queue_path, const Experiment& experiment,
                         Runner& runner) {
  Prepared prepared;
  prepared.experiment = experiment;
  if (const Status status = fill(prepared, runner); !status.ok()) {
    if (status.error().kind == ErrorKind::kUnsupported) {
      return unsupported("not on this device: " + status.error().message);
    }
    return Error{status.error().kind,
                 fmt::format("{}:{}: experiment '{}': {}", queue_path, experiment.line,
                             experiment.id, status.error().message)};
  }
  return prepared;
}

std::string journal_key(const Prepared& prepared) {
  Hasher hasher;
  hasher.add_field(prepared.experiment.is_floor() ? "aa" : "ab");
  hasher.add_field(ledger::scope_id(prepared.scope));
  for (const auto& [name, hash] : prepared.sources) hasher.add_field(name).add_field(hash);
  return hasher.base32(16);
}

}  // namespace reckon::experiment
