#include "adapters/command_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "adapters/environment.h"
#include "adapters/metric_reader.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "kernels/backend.h"

namespace reckon::adapters {
namespace {

namespace fs = std::filesystem;
using experiment::Arm;
using experiment::CommandWorkload;
using experiment::DispatchRow;
using experiment::Measurement;
using experiment::Prediction;
using experiment::Subject;
using experiment::Workload;

constexpr size_t kTextShown = 300;
constexpr int kShellCannotRun = 126;
constexpr int kShellFindsNothing = 127;

Result<CommandWorkload> command_of(const Workload& workload, const Arm& arm) {
  if (!workload.command) return usage_error("the workload names no command");
  return experiment::filled(*workload.command, arm.switches);
}

bool is_time(const std::string& read) {
  return read == "wall" || read == "cpu";
}

ProcessJob job_of(const CommandWorkload& command) {
  ProcessJob job;
  job.argv = command.command;
  if (command.shell) job.argv = {"/bin/sh", "-c", command.command.front()};
  job.env = command.env;
  job.timeout = std::chrono::seconds(command.timeout_seconds);
  return job;
}

std::string short_hash(const Hasher& hash) {
  return hash.hex().substr(0, 16);
}

// Of all that decides what is measured; how long it may take does not.
std::string hash_of(CommandWorkload command) {
  command.timeout_seconds = 0;
  command.metric.unit.clear();
  return hash_hex(experiment::encode_command(command).dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Words of a workload class: the base arm's command, where it lies, and how its metric is read.
std::string class_words(const CommandWorkload& command, const CommandIdentity& identity) {
  Hasher text;
  text.add_field(command.shell ? "shell" : "list");
  for (const std::string& word : command.command) text.add_field(word);
  for (const auto& [key, value] : command.env) text.add_field(key).add_field(value);
  text.add_field(identity.place).add_field(command.dispatch_file);
  std::string program = identity.program;
  std::replace(program.begin(), program.end(), ' ', '_');
  std::string words = fmt::format(
      "read={} better={} program={} command={}",
      is_time(command.metric.read) ? command.metric.read
                                   : short_hash(Hasher().add_field(command.metric.read)),
      command.metric.higher_is_better ? "higher" : "lower", program, short_hash(text));
  for (const auto& [key, value] : command.tags) words += fmt::format(" {}={}", key, value);
  return words;
}

DispatchRow command_row(const CommandWorkload& command, const CommandIdentity& identity) {
  std::vector<std::string> params;
  for (const auto& [key, value] : command.env) {
    params.push_back(shorten(one_line(key + "=" + value), 60));
  }
  params.push_back("hash=" + identity.hash);
  return {experiment::kCommandPhase,          "command",         "",
          shorten(identity.text, kTextShown), join(params, " "), ""};
}

// A dispatch file's line: its first word is the op, the rest what was chosen for it.
DispatchRow line_row(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string op = line.substr(0, space);
  return {experiment::kCommandPhase,
          op,
          "",
          space == std::string::npos ? "" : line.substr(space + 1),
          "",
          ""};
}

Status remove_dispatch_file(const std::string& path) {
  std::error_code failure;
  if (!fs::exists(fs::symlink_status(path, failure))) return {};
  if (const std::string why = why_not_a_file(path); !why.empty()) {
    return usage_error(fmt::format("dispatch_file {}: {}", path, why));
  }
  if (fs::file_size(path, failure) > kMaximumDispatchBytes) {
    return usage_error(
        fmt::format("dispatch_file {}: is larger than {} bytes, and so is not taken "
                    "for one",
                    path, kMaximumDispatchBytes));
  }
  if (!fs::remove(path, failure)) {
    return failed(fmt::format("dispatch_file {}: cannot be removed before a run", path));
  }
  return {};
}

Measurement broken(std::string how) {
  Measurement measurement;
  measurement.broken = std::move(how);
  return measurement;
}

Result<double> read_metric(const CommandWorkload& command, const ProcessEnd& end) {
  if (command.metric.read == "wall") return end.wall_ms;
  if (command.metric.read == "cpu") return end.cpu_ms;
  if (end.output.dropped()) {
    return failed(
        fmt::format("it wrote {} bytes to standard output, and the metric is looked for "
                    "in no more than {}",
                    end.output.bytes(), kMaximumOutputBytes));
  }
  TRY_ASSIGN(const MetricReader reader, MetricReader::parse(command.metric.read));
  return reader.read(end.output.text(), end.errors.text());
}

}  // namespace

Result<CommandIdentity> CommandRunner::identity_of(const CommandWorkload& command) {
  const std::string key = hash_of(command);
  const auto found = known_.find(key);
  const auto unchanged = [](const auto& file) {
    std::error_code failure;
    return fs::last_write_time(file.first, failure) == file.second && !failure;
  };
  if (found != known_.end() &&
      std::all_of(found->second.times.begin(), found->second.times.end(), unchanged)) {
    return found->second.identity;
  }
  Known known;
  TRY_ASSIGN(known.identity, identify(command));
  for (const auto& [file, hash] : known.identity.files) {
    std::error_code failure;
    known.times[file] = fs::last_write_time(file, failure);
  }
  return known_.insert_or_assign(key, std::move(known)).first->second.identity;
}

Result<Subject> CommandRunner::describe(const Workload& workload, const Arm& base) {
  TRY_ASSIGN(const CommandWorkload command, command_of(workload, base));
  if (!is_time(command.metric.read)) {
    if (const auto reader = MetricReader::parse(command.metric.read); !reader.ok()) {
      return usage_error("metric: " + reader.error().message);
    }
  }
  TRY_ASSIGN(const CommandIdentity identity, identity_of(command));
  const kernels::Device& device = kernels::cpu_backend().device();
  Subject subject;
  subject.device = {{"vendor", device.vendor},
                    {"isa", std::string(kernels::isa_name(device.best_isa))},
                    {"units", std::to_string(device.cores)},
                    {"memory_bytes", std::to_string(device.memory_bytes)}};
  subject.device_name = device.name;
  subject.backend = experiment::kCommandRunner;
  subject.model_name = identity.program;
  subject.model_family = "program";
  subject.weight_format = "none";
  subject.prompt_hash = hash_of(*workload.command);
  subject.workload_words = class_words(command, identity);
  return subject;
}

Result<Prediction> CommandRunner::predict(const Workload& workload, const Arm& arm) {
  TRY_ASSIGN(const CommandWorkload command, command_of(workload, arm));
  TRY_ASSIGN(const CommandIdentity identity, identity_of(command));
  Prediction prediction;
  prediction.rows.push_back(
      {command_row(command, identity),
       "both run the same program file with the same arguments, environment and inputs (what else "
       "tells them apart belongs under 'inputs')",
       true});
  prediction.sources = identity.files;
  prediction.complete = command.dispatch_file.empty();
  if (prediction.complete) prediction.weak_proof = kWeakProof;
  return prediction;
}

Result<Measurement> CommandRunner::measure(const Workload& workload, const Arm& arm) {
  TRY_ASSIGN(const CommandWorkload command, command_of(workload, arm));
  TRY_ASSIGN(const CommandIdentity identity, identity_of(command));
  const bool writes_dispatch = !command.dispatch_file.empty();
  if (writes_dispatch) TRY(remove_dispatch_file(command.dispatch_file));
  const ProcessJob job = job_of(command);
  TRY_ASSIGN(const ProcessEnd end, run_process(job));
  const bool exited = end.kind == ProcessEnd::Kind::kExited;
  if (exited && command.shell && (end.code == kShellCannotRun || end.code == kShellFindsNothing)) {
    return usage_error(fmt::format("the shell finds no such program ({})", end.failure(job)));
  }
  if (const std::string failure = end.failure(job); !failure.empty()) return broken(failure);
  const Result<double> value = read_metric(command, end);
  if (!value.ok()) return broken("its metric cannot be read: " + value.error().message);
  if (!std::isfinite(*value) || *value <= 0) {
    return broken(
        fmt::format("{} is {}, and must be above zero and finite", command.metric.name, *value));
  }
  Measurement measurement;
  measurement.peak_bytes = end.peak_bytes;
  measurement.metrics[command.metric.name] = *value;
  if (!writes_dispatch) {
    measurement.observed = {command_row(command, identity)};
    return measurement;
  }
  if (const std::string why = why_not_a_file(command.dispatch_file); !why.empty()) {
    return broken(fmt::format("it wrote no dispatch file {}: {}", command.dispatch_file, why));
  }
  TRY_ASSIGN(measurement.observed, dispatched(command, arm.name));
  if (measurement.observed.empty()) {
    return broken(fmt::format("its dispatch file {} is empty", command.dispatch_file));
  }
  return measurement;
}

Result<std::vector<DispatchRow>> CommandRunner::dispatched(const CommandWorkload& command,
                                                           const std::string& arm) {
  const std::string& path = command.dispatch_file;
  std::error_code failure;
  if (fs::file_size(path, failure) > kMaximumDispatchBytes) {
    return failed(fmt::format("{}: a dispatch file of over {} bytes", path, kMaximumDispatchBytes));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!valid_utf8(text)) return failed(path + ": a dispatch file that is not UTF-8");
  std::vector<DispatchRow> rows;
  for (std::string line : split(text, '\n')) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (!line.empty()) rows.push_back(line_row(one_line(line)));
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  const auto [before, first] = written_.emplace(arm, rows);
  if (!first && before->second != rows) {
    return failed(fmt::format(
        "{}: not the same lines as in the run before, so they do not tell what is dispatched; "
        "leave out what changes from run to run",
        path));
  }
  return rows;
}

nlohmann::json CommandRunner::environment() {
  return environment_record(kernels::cpu_backend().device());
}

std::vector<experiment::Runner::MetricInfo> CommandRunner::metrics() const {
  return {};
}

Status CommandRunner::check_switch(const std::string& key, const std::string& /*value*/) {
  if (experiment::is_placeholder_name(key)) return {};
  return usage_error(fmt::format("'{}' cannot stand in the braces of a {{KEY}}", key));
}

std::string CommandRunner::default_value(const std::string& /*key*/) {
  return "";
}

}  // namespace reckon::adapters
