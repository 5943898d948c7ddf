#include "experiment/outcome.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ledger/record.h"

namespace reckon::experiment {
namespace {

using nlohmann::json;

const char* error_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFailed:
      return "failed";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kRefused:
      return "refused";
    case ErrorKind::kUnsupported:
      return "unsupported";
  }
  RECKON_CHECK(false);
}

constexpr int kRegressionCode = 4;

bool is_regression(const Outcome& outcome) {
  const std::optional<ledger::Verdict> verdict =
      outcome.known_verdict ? outcome.known_verdict : outcome.verdict();
  return verdict == ledger::Verdict::kLost || verdict == ledger::Verdict::kBroke ||
         verdict == ledger::Verdict::kOutOfMemory;
}

bool is_decided(const Outcome& outcome) {
  switch (outcome.kind) {
    case OutcomeKind::kFloor:
    case OutcomeKind::kKept:
      return true;
    case OutcomeKind::kRefused:
      return outcome.known_verdict.has_value();
    case OutcomeKind::kVerdict:
      return outcome.record->verdict->void_reason != ledger::VoidReason::kDisturbed;
    case OutcomeKind::kPaused:
    case OutcomeKind::kFailed:
      return false;
  }
  RECKON_CHECK(false);
}

json floor_json(const FloorSummary& floor) {
  json object{{"rounds", floor.noise.rounds}, {"missing_rounds", floor.noise.missing_rounds()}};
  if (floor.band) {
    object["s_m_log"] = floor.noise.standard_deviation;
    object["band"] = {{"rounds", floor.rounds},
                      {"noise_band", std::expm1(floor.band->noise_band)},
                      {"smallest_effect", std::expm1(floor.band->smallest_detectable)}};
  }
  return object;
}

}  // namespace

std::string_view outcome_kind_name(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::kVerdict:
      return "verdict";
    case OutcomeKind::kFloor:
      return "floor";
    case OutcomeKind::kKept:
      return "kept";
    case OutcomeKind::kRefused:
      return "refused";
    case OutcomeKind::kPaused:
      return "paused";
    case OutcomeKind::kFailed:
      return "failed";
  }
  RECKON_CHECK(false);
}

std::optional<ledger::Verdict> Outcome::verdict() const {
  if (kind != OutcomeKind::kVerdict || !record || !record->verdict) return std::nullopt;
  return record->verdict->verdict;
}

int QueueOutcome::exit_code() const {
  const auto any_error = [&](auto matches) {
    return std::any_of(experiments.begin(), experiments.end(), [&](const Outcome& outcome) {
      return outcome.kind == OutcomeKind::kFailed && matches(outcome.error);
    });
  };
  if (any_error([](ErrorKind kind) { return kind != ErrorKind::kUsage; })) return 1;
  if (any_error([](ErrorKind) { return true; })) return 2;
  const bool nothing_measured =
      std::all_of(experiments.begin(), experiments.end(), [](const Outcome& outcome) {
        return outcome.kind == OutcomeKind::kRefused || outcome.kind == OutcomeKind::kKept;
      });
  return nothing_measured ? 3 : 0;
}

int QueueOutcome::gate_exit_code() const {
  const int code = exit_code();
  if (code == 1 || code == 2) return code;
  if (std::any_of(experiments.begin(), experiments.end(), is_regression)) return kRegressionCode;
  return std::all_of(experiments.begin(), experiments.end(), is_decided) ? 0 : 3;
}

json to_json(const Outcome& outcome) {
  json object{{"id", outcome.id},
              {"kind", outcome_kind_name(outcome.kind)},
              {"text", outcome.text},
              {"notes", outcome.notes},
              {"seconds", outcome.seconds}};
  if (!outcome.idea.empty()) object["idea"] = outcome.idea;
  if (!outcome.design.empty()) object["design"] = outcome.design;
  if (!outcome.entry.empty()) object["entry"] = outcome.entry;
  if (outcome.kind == OutcomeKind::kFailed) object["error"] = error_name(outcome.error);
  if (outcome.known_verdict) object["known_verdict"] = ledger::verdict_name(*outcome.known_verdict);
  if (outcome.floor) object["floor"] = floor_json(*outcome.floor);
  if (const std::optional<ledger::Verdict> verdict = outcome.verdict()) {
    object["verdict"] = ledger::verdict_name(*verdict);
    object["result"] = ledger::encode(*outcome.record->verdict);
    object["scope"] = ledger::scope_to_json(outcome.record->idea.scope);
    if (outcome.holm_p) object["holm_p"] = *outcome.holm_p;
    json rounds = json::array();
    for (const ledger::MeasuredBody& measured : outcome.record->rounds) {
      rounds.push_back(ledger::encode(measured)["round"]);
    }
    object["rounds"] = std::move(rounds);
  }
  return object;
}

json to_json(const QueueOutcome& outcome) {
  json experiments = json::array();
  for (const Outcome& experiment : outcome.experiments) experiments.push_back(to_json(experiment));
  return {{"queue", outcome.queue},
          {"exit_code", outcome.exit_code()},
          {"experiments", std::move(experiments)}};
}

}  // namespace reckon::experiment
