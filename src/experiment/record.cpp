#include "experiment/record.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "experiment/control.h"
#include "experiment/numbers.h"
#include "experiment/rows.h"
#include "experiment/stored_noise.h"

namespace reckon::experiment {
namespace {

constexpr size_t kTermsKept = 8;

// Copies `key` as text, where it is one.
void take_text(nlohmann::json& record, const char* key, std::string& target) {
  const auto found = record.find(key);
  if (found == record.end() || !found->is_string()) return;
  target = found->get<std::string>();
  record.erase(found);
}

Result<double> median_of(const std::vector<JournalPair>& pairs, double JournalPair::*value) {
  std::vector<double> values;
  for (const JournalPair& pair : pairs) values.push_back(pair.*value);
  return measure::median(values);
}

ledger::VerdictBody start_verdict(const Prepared& prepared, ledger::Verdict verdict,
                                  const std::string& detail, const nlohmann::json& environment) {
  ledger::VerdictBody body;
  body.verdict = verdict;
  body.detail = one_line(detail);
  body.sources = prepared.sources;
  body.environment = to_environment(environment, prepared.subject.device_name);
  return body;
}

void add_observed(const Prepared& prepared, const Samples& samples, ledger::VerdictBody& body) {
  if (samples.rounds.empty()) return;
  body.proof = compare_rows(samples.base_rows, samples.arm_rows, prepared.experiment.reach);
  body.proof->observed = true;
  mark_weak(prepared.base_plan, *body.proof);
  body.peaks = ledger::Peaks{samples.base_peak_bytes, samples.arm_peak_bytes};
}

// Unset for programs, whose output is not compared.
std::optional<ledger::TokenCheck> tokens_of(const Prepared& prepared, const Samples& samples) {
  if (prepared.experiment.workload.command) return std::nullopt;
  const std::vector<int32_t>& arm =
      samples.arm_tokens.empty() ? samples.tokens : samples.arm_tokens;
  ledger::TokenCheck check =
      compare_tokens(samples.tokens, arm, {}, prepared.experiment.workload.prompt);
  if (check.first_divergence) check.first_divergence->margin = samples.margin;
  return check;
}

ledger::MemoryPlan memory_plan(const Prepared& prepared) {
  ledger::MemoryPlan plan;
  plan.budget_bytes = prepared.arm_plan.budget_bytes;
  if (prepared.arm.memory_limit_bytes) {
    const uint64_t limit = *prepared.arm.memory_limit_bytes;
    plan.budget_bytes = plan.budget_bytes == 0 ? limit : std::min(plan.budget_bytes, limit);
  }
  plan.base_bytes = prepared.base_plan.planned_bytes;
  plan.arm_bytes = prepared.arm_plan.planned_bytes;
  for (const MemoryTermText& term : prepared.arm_plan.terms) {
    if (plan.arm_terms.size() == kTermsKept) break;
    plan.arm_terms.push_back({term.tag + ": " + term.name, term.bytes});
  }
  return plan;
}

// Pairs that were measured again, and what was waited.
void add_disturbance(const std::vector<ledger::MeasuredBody>& rounds, ledger::VerdictBody& body) {
  int64_t pairs = 0;
  double paused_seconds = 0;
  std::string why;
  for (const ledger::MeasuredBody& measured : rounds) {
    for (const ledger::PairSample& pair : measured.round.pairs) {
      paused_seconds += pair.extra.value("paused_seconds", 0.0);
      if (!pair.extra.contains("disturbed")) continue;
      ++pairs;
      why = pair.extra.value("disturbed", "");
    }
  }
  if (pairs == 0) return;
  body.extra["disturbance"] = {
      {"pairs", pairs}, {"paused_seconds", paused_seconds}, {"latest", why}};
}

}  // namespace

ledger::Environment to_environment(const nlohmann::json& record, const std::string& device_name) {
  ledger::Environment environment;
  environment.device_name = device_name;
  nlohmann::json rest = record.is_object() ? record : nlohmann::json::object();
  rest.erase("device_name");
  take_text(rest, "driver", environment.driver);
  take_text(rest, "kernel", environment.kernel);
  take_text(rest, "compiler", environment.compiler);
  take_text(rest, "commit", environment.commit);
  if (rest.contains("dirty") && rest["dirty"].is_boolean()) {
    environment.dirty = rest["dirty"].get<bool>();
    rest.erase("dirty");
  }
  const nlohmann::json readings = rest.value("readings", nlohmann::json::object());
  for (const auto& [name, value] : readings.items()) {
    environment.readings[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  const nlohmann::json facts = rest.value("facts", nlohmann::json::object());
  for (const auto& [name, value] : facts.items()) {
    if (value.is_number()) environment.facts[name] = value.get<double>();
  }
  rest.erase("readings");
  rest.erase("facts");
  environment.extra = std::move(rest);
  return environment;
}

ledger::IdeaBody idea_body(const Prepared& prepared, const RunOptions& options,
                           const nlohmann::json& environment, const std::string& override_reason) {
  const Experiment& experiment = prepared.experiment;
  ledger::IdeaBody body;
  body.kind = experiment.kind;
  body.experiment = experiment.id;
  body.text = experiment.idea;
  body.scope = prepared.scope;
  body.claim = experiment.claim;
  body.device_name = prepared.subject.device_name;
  const std::string& name = prepared.subject.model_name;
  body.model_name = name.empty() ? experiment.workload.model : name;
  body.reproduce.command = one_line(options.command);
  body.reproduce.queue_text = standalone_queue(experiment);
  body.reproduce.commit = to_environment(environment, "").commit;
  body.force_reason = one_line(override_reason);
  return body;
}

Result<ledger::MeasuredBody> measured_body(const Prepared& prepared, const Samples& samples,
                                           const CollectedRound& collected) {
  ledger::MeasuredBody body;
  ledger::Round& round = body.round;
  round.id = collected.identity.id;
  round.index = collected.identity.index;
  round.started = collected.identity.started;
  round.seed = collected.identity.seed;
  for (const JournalPair& pair : collected.warmups) round.pairs.push_back(to_sample(pair));
  for (const JournalPair& pair : collected.pairs) round.pairs.push_back(to_sample(pair));
  TRY_ASSIGN(round.base_value, median_of(collected.pairs, &JournalPair::base));
  TRY_ASSIGN(round.arm_value, median_of(collected.pairs, &JournalPair::arm));
  TRY_ASSIGN(round.median_log,
             measure::round_median(to_pairs(round.pairs), better_of(prepared.metric)));
  round.extra["processes"] = collected.processes;
  if (prepared.control) round.extra["control"] = prepared.control->name;
  if (!prepared.experiment.is_floor()) {
    body.proof = compare_rows(samples.base_rows, samples.arm_rows, prepared.experiment.reach);
    body.proof->observed = true;
    mark_weak(prepared.base_plan, *body.proof);
  }
  body.tokens = tokens_of(prepared, samples);
  body.peaks = ledger::Peaks{samples.base_peak_bytes, samples.arm_peak_bytes};
  body.sources = prepared.sources;
  body.environment = to_environment(collected.environment, prepared.subject.device_name);
  return body;
}

ledger::VerdictBody void_by_plan(const Prepared& prepared, const Judgement& judgement,
                                 const nlohmann::json& environment) {
  ledger::VerdictBody body =
      start_verdict(prepared, ledger::Verdict::kVoid, judgement.text, environment);
  for (const std::string& reason : judgement.reasons) {
    body.extra["reasons"].push_back(one_line(reason));
  }
  body.void_reason = ledger::VoidReason::kEqualDispatch;
  body.proof = prepared.predicted;
  return body;
}

ledger::VerdictBody out_of_memory(const Prepared& prepared, const std::string& detail,
                                  const nlohmann::json& environment) {
  ledger::VerdictBody body =
      start_verdict(prepared, ledger::Verdict::kOutOfMemory, detail, environment);
  body.proof = prepared.predicted;
  body.memory_plan = memory_plan(prepared);
  return body;
}

ledger::VerdictBody verdict_of_end(const Prepared& prepared, const RoundEnd& end,
                                   const Samples& samples,
                                   const std::vector<std::string>& round_ids,
                                   const nlohmann::json& environment) {
  ledger::VerdictBody body =
      end.kind == RoundEnd::Kind::kOutOfMemory
          ? out_of_memory(prepared, end.detail, environment)
          : start_verdict(prepared, ledger::Verdict::kBroke, end.detail, environment);
  if (end.kind == RoundEnd::Kind::kDisturbed) {
    body.verdict = ledger::Verdict::kVoid;
    body.void_reason = ledger::VoidReason::kDisturbed;
  }
  body.rounds = round_ids;
  body.tokens = end.tokens;
  add_observed(prepared, samples, body);
  if (!body.proof) body.proof = prepared.predicted;
  nlohmann::json unfinished = nlohmann::json::array();
  for (const CollectedRound& round : samples.rounds) {
    if (round.missing(prepared.experiment.pairs).empty()) continue;
    for (const auto* list : {&round.warmups, &round.pairs}) {
      for (const JournalPair& pair : *list) {
        unfinished.push_back({{"round", pair.round.id},
                              {"base", pair.base},
                              {"arm", pair.arm},
                              {"arm_first", pair.arm_first},
                              {"warmup", pair.warmup},
                              {"disturbed", pair.disturbed}});
      }
    }
  }
  if (!unfinished.empty()) body.extra["unfinished_pairs"] = std::move(unfinished);
  return body;
}

void add_quality(const Quality& quality, ledger::TokenCheck& tokens) {
  tokens.mean_kl = quality.mean_kl;
  tokens.extra["quality"] = {{"tokens", quality.tokens},
                             {"largest_kl", quality.largest_kl},
                             {"top1_equal", quality.top1_equal}};
  if (!quality.base_perplexity || !quality.arm_perplexity) return;
  tokens.perplexity_change = *quality.arm_perplexity / *quality.base_perplexity - 1;
  tokens.extra["quality"]["base_perplexity"] = *quality.base_perplexity;
  tokens.extra["quality"]["arm_perplexity"] = *quality.arm_perplexity;
}

Result<ledger::VerdictBody> verdict_of_rounds(const Prepared& prepared, const Judgement& judgement,
                                              const Samples& samples,
                                              const std::vector<ledger::MeasuredBody>& rounds) {
  RECKON_CHECK(!rounds.empty() && !samples.rounds.empty());
  const nlohmann::json& environment = samples.rounds.back().environment;
  ledger::VerdictBody body = start_verdict(prepared, ledger::Verdict::kVoid, "", environment);
  add_observed(prepared, samples, body);
  body.tokens = tokens_of(prepared, samples);
  for (const ledger::MeasuredBody& measured : rounds) body.rounds.push_back(measured.round.id);
  const bool different = body.proof->base_fingerprint != body.proof->arm_fingerprint;
  if (!different) {
    body.void_reason = ledger::VoidReason::kEqualDispatch;
    body.detail =
        fmt::format("both arms dispatched the same at {}", reach_text(prepared.experiment.reach));
    return body;
  }
  TRY(add_numbers(prepared, judgement, samples, rounds, body));
  if (const std::string& weak = prepared.base_plan.weak_proof; !weak.empty()) {
    body.detail += fmt::format("{}the arms differ {}", body.detail.empty() ? "" : "; ", weak);
  }
  if (prepared.control) TRY(apply_control(prepared, judgement, rounds, body));
  add_disturbance(rounds, body);
  return body;
}

}  // namespace reckon::experiment
