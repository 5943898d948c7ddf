// What to do with a prepared experiment, given the ledger.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/figures.h"
#include "base/text.h"
#include "experiment/prepare.h"
#include "experiment/rows.h"
#include "experiment/stored_noise.h"
#include "ledger/consult.h"

namespace reckon::experiment {
namespace {

constexpr size_t kNearShown = 3;

bool over_limit(const Prediction& plan, const Arm& arm) {
  return !plan.fits || (arm.memory_limit_bytes && plan.planned_bytes > *arm.memory_limit_bytes);
}

std::string why_not_fitting(const Prediction& plan, const Arm& arm) {
  if (!plan.fits && !plan.refusal.empty()) return plan.refusal;
  return fmt::format("plans {}, and may use {}", format_bytes(plan.planned_bytes),
                     format_bytes(arm.memory_limit_bytes.value_or(plan.budget_bytes)));
}

void note_findings(const ledger::Consultation& answer, std::vector<std::string>& notes) {
  for (const ledger::StaleFinding& stale : answer.stale) notes.push_back("stale: " + stale.text);
  for (const ledger::Finding& allowed : answer.allowed) notes.push_back("known: " + allowed.text);
  for (const ledger::OfferFinding& offer : answer.offers) notes.push_back("offer: " + offer.text);
  for (size_t i = 0; i < std::min(answer.near.size(), kNearShown); ++i) {
    notes.push_back("near: " + ledger::near_text(answer.near[i]));
  }
  if (answer.near_count > kNearShown) {
    const size_t more = answer.near_count - kNearShown;
    notes.push_back(
        fmt::format("near: {} more {} of this switch", more, more == 1 ? "entry" : "entries"));
  }
}

// The floor entry of exactly this scope, if the ledger has one that still counts.
std::string floor_entry(std::span<const ledger::Entry> peers, const ledger::Scope& scope) {
  for (const ledger::Entry& entry : peers) {
    if (entry.idea.kind == ledger::EntryKind::kFloor && !entry.imported &&
        entry.status != ledger::EntryStatus::kOverturned && entry.idea.scope == scope) {
      return entry.id;
    }
  }
  return "";
}

std::optional<double> seconds_a_pair(std::span<const ledger::Entry> peers) {
  double seconds = 0;
  int64_t pairs = 0;
  for (const ledger::Entry& entry : peers) {
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

// Of both arms' plans; what is true of both once.
void note_plans(const Prepared& prepared, std::vector<std::string>& notes) {
  const std::vector<std::string>& base = prepared.base_plan.notes;
  const std::vector<std::string>& arm = prepared.arm_plan.notes;
  const auto in = [](const std::vector<std::string>& list, const std::string& note) {
    return std::find(list.begin(), list.end(), note) != list.end();
  };
  for (const std::string& note : base) notes.push_back(in(arm, note) ? note : "base: " + note);
  for (const std::string& note : arm) {
    if (!in(base, note)) notes.push_back("arm: " + note);
  }
}

Judgement stop(Judgement judgement, Judgement::Next next, std::string text) {
  judgement.next = next;
  judgement.text = std::move(text);
  return judgement;
}

// As many A/A rounds as a verdict looks at, and for a floor as many as it asks for.
Result<StoredNoise> noise_for(const Prepared& prepared, std::span<const ledger::Entry> peers,
                              const JudgeOptions& options) {
  const Experiment& experiment = prepared.experiment;
  const int newest = experiment.is_floor()
                         ? std::max(measure::kNewestNoiseRounds, experiment.rounds)
                         : measure::kNewestNoiseRounds;
  return stored_noise(prepared, peers, options.now.empty() ? utc_timestamp() : options.now, newest);
}

std::string too_old_text(const StoredNoise& stored) {
  return fmt::format("{} of this workload class {} older than {:.0f} days and no longer {}",
                     counted(stored.too_old, "A/A round"), stored.too_old == 1 ? "is" : "are",
                     measure::kMostNoiseDays, stored.too_old == 1 ? "counts" : "count");
}

Judgement judge_floor(const Prepared& prepared, std::span<const ledger::Entry> peers,
                      Judgement judgement) {
  const int asked = prepared.experiment.rounds;
  judgement.joins = floor_entry(peers, prepared.scope);
  if (judgement.noise.rounds >= asked) {
    std::string text =
        fmt::format("kept {}: nothing to measure", counted(judgement.noise.rounds, "A/A round"));
    return stop(std::move(judgement), Judgement::Next::kKeep, std::move(text));
  }
  judgement.rounds = asked - judgement.noise.rounds;
  return judgement;
}

Status judge_design(const Prepared& prepared, Judgement& judgement) {
  judgement.rounds = prepared.experiment.rounds;
  if (judgement.noise.rounds < 2) return {};
  const int all_rounds = judgement.rounds + static_cast<int>(judgement.earlier.size());
  TRY_ASSIGN(judgement.band, measure::design_band(judgement.noise, all_rounds));
  if (!prepared.experiment.claim) return {};
  const Result<int> needed = measure::rounds_to_see(judgement.noise, *prepared.experiment.claim);
  if (needed.ok()) judgement.rounds_to_see = *needed;
  return {};
}

// What would see the claim, or why nothing does. Sets judgement.longer.
std::string remedy(const Prepared& prepared, const StoredNoise& stored, Judgement& judgement) {
  std::string by_rounds = judgement.rounds_to_see
                              ? "it takes " + counted(*judgement.rounds_to_see, "round")
                              : "no number of rounds of this size sees it";
  const auto forecast = measure::NoiseForecast::create(stored.rounds, better_of(prepared.metric));
  if (!forecast.ok()) return by_rounds;
  const Experiment& experiment = prepared.experiment;
  measure::DesignRequest request;
  request.claim = *experiment.claim;
  request.rounds = judgement.rounds + static_cast<int>(judgement.earlier.size());
  request.pairs = experiment.pairs;
  request.warmup_pairs = experiment.warmup_pairs;
  const Result<measure::Design> design = measure::auto_pairs(*forecast, request);
  if (!design.ok()) return design.error().message;
  judgement.longer = *design;
  if (judgement.rounds_to_see == design->rounds && design->pairs == experiment.pairs &&
      design->fresh_floor == 0) {
    return by_rounds + ", which --auto-pairs would choose";
  }
  std::string text = fmt::format("--auto-pairs would take {} of {}",
                                 counted(design->rounds, "round"), counted(design->pairs, "pair"));
  if (design->fresh_floor > 0) text += fmt::format(", after {} A/A rounds", design->fresh_floor);
  return by_rounds + "; " + text;
}

// The claim is smaller than the design can see: how much more it would take.
std::string too_small_text(const Prepared& prepared, const StoredNoise& stored,
                           Judgement& judgement) {
  const int rounds = judgement.rounds + static_cast<int>(judgement.earlier.size());
  return fmt::format("the claim of +{:.3g}% is smaller than {} of {} can see here (+{}); {}",
                     *prepared.experiment.claim * 100, counted(rounds, "round"),
                     counted(prepared.experiment.pairs, "pair"),
                     share_text(std::expm1(judgement.band->smallest_detectable)),
                     remedy(prepared, stored, judgement));
}

Judgement void_by_plan(const Prepared& prepared, Judgement judgement) {
  const Reach& reach = prepared.experiment.reach;
  const std::string& key = prepared.experiment.switch_pair.key;
  judgement.reasons = reasons_at(prepared.arm_plan, reach, key);
  const std::string rule = deciding_rule(judgement.reasons, key);
  return stop(std::move(judgement), Judgement::Next::kRecordVoid,
              fmt::format("the plans of both arms are equal at {}{}", reach_text(reach),
                          rule.empty() ? "" : ": " + rule));
}

// What the ledger says of exactly this scope: an entry that answers, or one that takes the rounds.
Result<Judgement> consulted(const Prepared& prepared, ledger::Catalog& ledger,
                            const JudgeOptions& options, Judgement judgement) {
  ledger::Query query;
  query.scope = prepared.scope;
  query.claim = prepared.experiment.claim;
  query.sources = prepared.sources;
  query.facts = prepared.facts;
  TRY_ASSIGN(const ledger::Consultation answer, ledger.consult(query));
  note_findings(answer, judgement.notes);
  if (answer.block && !options.force) {
    judgement.blocked_by = answer.block->entry;
    return stop(std::move(judgement), Judgement::Next::kRefuse, answer.block->text);
  }
  judgement.overrides_ledger = options.force && (answer.block || answer.join);
  if (answer.join && !options.force) {
    judgement.notes.push_back("joins: " + answer.join->text);
    TRY_ASSIGN(const ledger::Entry joined, ledger.entry(answer.join->entry));
    const std::span<const ledger::MeasuredBody> counting = joined.counting_rounds();
    judgement.joins = joined.id;
    judgement.earlier.assign(counting.begin(), counting.end());
    judgement.first_index = static_cast<int64_t>(joined.rounds.size());
  }
  return judgement;
}

}  // namespace

Result<Judgement> judge(const Prepared& prepared, ledger::Catalog& ledger,
                        const JudgeOptions& options) {
  const Experiment& experiment = prepared.experiment;
  Judgement judgement;
  TRY_ASSIGN(const std::vector<ledger::Entry> peers, ledger.of_class(prepared.scope));
  TRY_ASSIGN(const StoredNoise stored, noise_for(prepared, peers, options));
  judgement.noise = stored.noise;
  judgement.seconds_a_pair = seconds_a_pair(peers);
  if (prepared.control) {
    TRY_ASSIGN(
        judgement.control_noise,
        stored_control_noise(prepared, peers, options.now.empty() ? utc_timestamp() : options.now));
  }
  if (stored.too_old > 0) judgement.notes.push_back(too_old_text(stored));
  note_plans(prepared, judgement.notes);
  if (!experiment.is_floor()) {
    TRY_ASSIGN(judgement, consulted(prepared, ledger, options, std::move(judgement)));
    if (judgement.next == Judgement::Next::kRefuse) return judgement;
  }
  if (over_limit(prepared.base_plan, prepared.base)) {
    return stop(
        std::move(judgement), Judgement::Next::kRefuse,
        "the base arm itself does not fit: " + why_not_fitting(prepared.base_plan, prepared.base));
  }
  if (experiment.is_floor()) return judge_floor(prepared, peers, std::move(judgement));
  if (same_at_reach(prepared.base_plan, prepared.arm_plan, experiment.reach)) {
    return void_by_plan(prepared, std::move(judgement));
  }
  if (over_limit(prepared.arm_plan, prepared.arm)) {
    return stop(std::move(judgement), Judgement::Next::kRecordOutOfMemory,
                "the arm does not fit: " + why_not_fitting(prepared.arm_plan, prepared.arm));
  }
  TRY(judge_design(prepared, judgement));
  if (judgement.noise.missing_rounds() == 0 && experiment.claim && judgement.band &&
      std::log1p(*experiment.claim) < judgement.band->smallest_detectable) {
    std::string text = too_small_text(prepared, stored, judgement);
    return stop(std::move(judgement), Judgement::Next::kRefuse, std::move(text));
  }
  return judgement;
}

}  // namespace reckon::experiment
