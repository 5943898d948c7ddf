// Prices a queue without running it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiment/numbers.h"
#include "experiment/prepare.h"
#include "experiment/recorder.h"
#include "experiment/run.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

using Kind = CheckedExperiment::Kind;

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kWouldRun:
      return "would-run";
    case Kind::kWouldRefuse:
      return "would-refuse";
    case Kind::kWouldBeVoid:
      return "would-be-void";
    case Kind::kWouldNotFit:
      return "would-not-fit";
    case Kind::kFailed:
      return "failed";
  }
  RECKON_CHECK(false);
}

// Mean seconds that a counted pair of this workload class took on this device; unset: never run.
std::optional<double> seconds_a_pair(const ledger::Ledger& ledger, const ledger::Scope& scope) {
  double seconds = 0;
  int64_t pairs = 0;
  for (const ledger::Entry& entry : ledger.entries) {
    const ledger::Scope& other = entry.idea.scope;
    if (other.device != scope.device || other.workload_class != scope.workload_class) continue;
    for (const ledger::MeasuredBody& measured : entry.rounds) {
      for (const ledger::PairSample& pair : measured.round.pairs) {
        const auto found = pair.extra.find("seconds");
        if (pair.warmup || found == pair.extra.end() || !found->is_number()) continue;
        seconds += found->get<double>();
        ++pairs;
      }
    }
  }
  if (pairs == 0) return std::nullopt;
  return seconds / static_cast<double>(pairs);
}

std::string run_text(const CheckedExperiment& checked) {
  std::string text = fmt::format("would run {} rounds of {} pairs", checked.rounds, checked.pairs);
  if (checked.seconds) text += ", about " + duration_text(*checked.seconds);
  if (checked.smallest_effect) {
    text += fmt::format("; sees +{} and more", share_text(*checked.smallest_effect));
  }
  return text;
}

void apply(const Prepared& prepared, const Judgement& judgement, const ledger::Ledger& ledger,
           CheckedExperiment& checked) {
  const Experiment& experiment = prepared.experiment;
  checked.notes.insert(checked.notes.end(), judgement.notes.begin(), judgement.notes.end());
  checked.only_base = prepared.predicted.only_base;
  checked.only_arm = prepared.predicted.only_arm;
  checked.base_bytes = prepared.base_plan.planned_bytes;
  checked.arm_bytes = prepared.arm_plan.planned_bytes;
  checked.missing_noise_rounds = judgement.noise.missing_rounds();
  checked.rounds_to_see = judgement.rounds_to_see;
  if (judgement.band) checked.smallest_effect = std::expm1(judgement.band->smallest_detectable);
  checked.text = judgement.text;
  switch (judgement.next) {
    case Judgement::Next::kRefuse:
    case Judgement::Next::kKeep:
      checked.kind = Kind::kWouldRefuse;
      return;
    case Judgement::Next::kRecordVoid:
      checked.kind = Kind::kWouldBeVoid;
      return;
    case Judgement::Next::kRecordOutOfMemory:
      checked.kind = Kind::kWouldNotFit;
      return;
    case Judgement::Next::kRun:
      break;
  }
  checked.kind = Kind::kWouldRun;
  checked.rounds = judgement.rounds;
  checked.pairs = experiment.pairs;
  const std::optional<double> a_pair = seconds_a_pair(ledger, prepared.scope);
  const double pairs_a_round = experiment.pairs + experiment.warmup_pairs;
  if (a_pair) checked.seconds = *a_pair * pairs_a_round * judgement.rounds;
  if (!experiment.is_floor() && checked.missing_noise_rounds > 0) {
    checked.notes.push_back(
        missing_noise_text(judgement.noise, a_pair.value_or(0) * pairs_a_round));
  }
  checked.text = run_text(checked);
}

CheckedExperiment check_experiment(const Queue& queue, const Experiment& experiment, Runner& runner,
                                   const ledger::Store& store) {
  CheckedExperiment checked;
  checked.id = experiment.id;
  const auto attempt = [&]() -> Status {
    TRY_ASSIGN(const Prepared prepared, prepare(queue.path, experiment, runner));
    TRY_ASSIGN(const ledger::Ledger ledger, read_ledger(store, checked.notes));
    TRY_ASSIGN(const Judgement judgement, judge(prepared, ledger, false));
    apply(prepared, judgement, ledger, checked);
    return {};
  };
  if (const Status status = attempt(); !status.ok()) {
    checked.kind = Kind::kFailed;
    checked.error = status.error().kind;
    checked.text = status.error().message;
  }
  return checked;
}

}  // namespace

QueueCheck check_queue(const Queue& queue, Runner& runner, const ledger::Store& store) {
  QueueCheck check;
  check.queue = queue.name;
  for (const Experiment& experiment : queue.experiments) {
    check.experiments.push_back(check_experiment(queue, experiment, runner, store));
  }
  return check;
}

int QueueCheck::exit_code() const {
  bool usage = false;
  bool all_refused = true;
  for (const CheckedExperiment& checked : experiments) {
    if (checked.kind == Kind::kFailed && checked.error != ErrorKind::kUsage) return 1;
    usage = usage || checked.kind == Kind::kFailed;
    all_refused = all_refused && checked.kind != Kind::kWouldRun;
  }
  if (usage) return 2;
  return all_refused ? 3 : 0;
}

nlohmann::json to_json(const QueueCheck& check) {
  nlohmann::json list = nlohmann::json::array();
  for (const CheckedExperiment& checked : check.experiments) {
    nlohmann::json object{{"id", checked.id},
                          {"kind", kind_name(checked.kind)},
                          {"text", checked.text},
                          {"notes", checked.notes},
                          {"only_base", checked.only_base},
                          {"only_arm", checked.only_arm},
                          {"base_bytes", checked.base_bytes},
                          {"arm_bytes", checked.arm_bytes},
                          {"missing_noise_rounds", checked.missing_noise_rounds}};
    if (checked.kind == Kind::kWouldRun) {
      object["rounds"] = checked.rounds;
      object["pairs"] = checked.pairs;
    }
    if (checked.seconds) object["seconds"] = *checked.seconds;
    if (checked.smallest_effect) object["smallest_effect"] = *checked.smallest_effect;
    if (checked.rounds_to_see) object["rounds_to_see"] = *checked.rounds_to_see;
    list.push_back(std::move(object));
  }
  return {
      {"queue", check.queue}, {"exit_code", check.exit_code()}, {"experiments", std::move(list)}};
}

}  // namespace reckon::experiment
