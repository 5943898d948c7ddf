// Prices a queue without running it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "experiment/auto_pairs.h"
#include "experiment/numbers.h"
#include "experiment/prepare.h"
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

// A/A rounds that the ledger will hold of one workload class once the queue has come this far.
struct FloorStage {
  ledger::Scope scope;
  int rounds = 0;
};

class FloorStages {
 public:
  void add(const ledger::Scope& scope, int rounds) { stages_.push_back({scope, rounds}); }

  // At least `stored`, which the ledger holds now.
  [[nodiscard]] int rounds_by_then(const ledger::Scope& scope, int stored) const {
    int rounds = stored;
    for (const FloorStage& stage : stages_) {
      if (ledger::same_noise(stage.scope, scope)) rounds = std::max(rounds, stage.rounds);
    }
    return rounds;
  }

 private:
  std::vector<FloorStage> stages_;
};

std::string run_text(const CheckedExperiment& checked, const measure::Noise& noise) {
  std::string text = fmt::format("would run {} of {}", counted(checked.rounds, "round"),
                                 counted(checked.pairs, "pair"));
  text += checked.seconds ? ", about " + duration_text(*checked.seconds)
                          : std::string("; cost: not measured yet");
  if (checked.smallest_effect && unknown_band_text(noise.rounds).empty()) {
    text += fmt::format("; sees +{} and more", share_text(*checked.smallest_effect));
  }
  return text;
}

// Too few A/A rounds end in INCONCLUSIVE whatever the arms do: said before anybody pays for it.
std::string noise_note(const measure::Noise& stored, int by_then, double seconds_a_round) {
  const int needed = measure::kMinimumNoiseRounds;
  if (by_then == stored.rounds) {
    return missing_noise_text(stored, seconds_a_round) + ": it must end INCONCLUSIVE";
  }
  std::string stage = fmt::format(
      "{} of {} A/A rounds of this workload class are stored, and {} of them once this "
      "queue's own are measured",
      stored.rounds, needed, by_then);
  if (by_then >= needed) return stage;
  return fmt::format("{}; {} missing: it must end INCONCLUSIVE", stage, needed - by_then);
}

std::string short_floor_note(int rounds) {
  return fmt::format(
      "{} {} {} of the needed {} missing: every comparison of this workload class must end "
      "INCONCLUSIVE",
      counted(rounds, "A/A round"), rounds == 1 ? "leaves" : "leave",
      measure::kMinimumNoiseRounds - rounds, measure::kMinimumNoiseRounds);
}

void apply(const Prepared& prepared, const Judgement& judgement, FloorStages& stages,
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
  checked.reasons = judgement.reasons;
  int noise_by_then = stages.rounds_by_then(prepared.scope, judgement.noise.rounds);
  if (experiment.is_floor() && judgement.next != Judgement::Next::kRefuse) {
    noise_by_then = std::max(noise_by_then, experiment.rounds);
    stages.add(prepared.scope, noise_by_then);
    if (noise_by_then < measure::kMinimumNoiseRounds) {
      checked.notes.push_back(short_floor_note(noise_by_then));
    }
  }
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
  const std::optional<double> a_pair = judgement.seconds_a_pair;
  const double pairs_a_round = experiment.pairs + experiment.warmup_pairs;
  if (a_pair) checked.seconds = *a_pair * pairs_a_round * judgement.rounds;
  if (!experiment.is_floor() && checked.missing_noise_rounds > 0) {
    checked.notes.push_back(
        noise_note(judgement.noise, noise_by_then, a_pair.value_or(0) * pairs_a_round));
  }
  checked.text = run_text(checked, judgement.noise);
}

using OpenedCatalog = Result<std::unique_ptr<ledger::Catalog>>;

CheckedExperiment check_experiment(const Queue& queue, const Experiment& experiment, Runner& runner,
                                   const OpenedCatalog& ledger, FloorStages& stages) {
  CheckedExperiment checked;
  checked.id = experiment.id;
  const auto attempt = [&]() -> Status {
    TRY_ASSIGN(const Prepared prepared, prepare(queue.path, experiment, runner));
    if (!ledger.ok()) return ledger.error();
    checked.notes = (*ledger)->warnings();
    TRY_ASSIGN(const Judgement judgement, judge(prepared, **ledger, {}));
    apply(prepared, judgement, stages, checked);
    return {};
  };
  if (const Status status = attempt(); !status.ok()) {
    const bool refused = status.error().kind == ErrorKind::kUnsupported;
    checked.kind = refused ? Kind::kWouldRefuse : Kind::kFailed;
    checked.error = status.error().kind;
    checked.text = status.error().message;
  }
  return checked;
}

}  // namespace

QueueCheck check_queue(const Queue& queue, Runner& runner, const ledger::Store& store,
                       TooShort too_short) {
  QueueCheck check;
  check.queue = queue.name;
  FloorStages stages;
  const OpenedCatalog ledger = ledger::open_catalog(store);
  for (const Experiment& experiment : queue.experiments) {
    const std::vector<Experiment> list =
        too_short == TooShort::kLengthen && ledger.ok()
            ? lengthen(queue.path, experiment, runner, **ledger, {})
            : std::vector{experiment};
    for (const Experiment& one : list) {
      check.experiments.push_back(check_experiment(queue, one, runner, ledger, stages));
      if (one.lengthened.empty()) continue;
      std::vector<std::string>& notes = check.experiments.back().notes;
      notes.insert(notes.begin(), one.lengthened);
    }
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
    if (!checked.reasons.empty()) object["reasons"] = checked.reasons;
    if (checked.seconds) object["seconds"] = *checked.seconds;
    if (checked.smallest_effect) object["smallest_effect"] = *checked.smallest_effect;
    if (checked.rounds_to_see) object["rounds_to_see"] = *checked.rounds_to_see;
    list.push_back(std::move(object));
  }
  return {
      {"queue", check.queue}, {"exit_code", check.exit_code()}, {"experiments", std::move(list)}};
}

}  // namespace reckon::experiment
