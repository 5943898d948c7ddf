// What to do with a prepared experiment, given the ledger.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/text.h"
#include "experiment/prepare.h"
#include "experiment/rows.h"
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

std::string near_text(const ledger::NearFinding& near) {
  std::vector<std::string> parts;
  for (const ledger::ScopeDifference& difference : near.differences) {
    parts.push_back(fmt::format("{} {} there, {} here", difference.field,
                                difference.a.empty() ? "unset" : difference.a,
                                difference.b.empty() ? "unset" : difference.b));
  }
  return fmt::format("near: {} ({})", near.text, join(parts, "; "));
}

void note_findings(const ledger::Consultation& answer, std::vector<std::string>& notes) {
  for (const ledger::StaleFinding& stale : answer.stale) notes.push_back("stale: " + stale.text);
  for (const ledger::Finding& allowed : answer.allowed) notes.push_back("known: " + allowed.text);
  for (const ledger::OfferFinding& offer : answer.offers) notes.push_back("offer: " + offer.text);
  for (size_t i = 0; i < std::min(answer.near.size(), kNearShown); ++i) {
    notes.push_back(near_text(answer.near[i]));
  }
  if (answer.near.size() > kNearShown) {
    notes.push_back(
        fmt::format("near: {} more entries of this switch", answer.near.size() - kNearShown));
  }
}

// The floor entry of exactly this scope, if the ledger has one that still counts.
std::string floor_entry(const ledger::Ledger& ledger, const ledger::Scope& scope) {
  for (const ledger::Entry& entry : ledger.entries) {
    if (entry.idea.kind == ledger::EntryKind::kFloor && !entry.imported &&
        entry.status != ledger::EntryStatus::kOverturned && entry.idea.scope == scope) {
      return entry.id;
    }
  }
  return "";
}

Judgement stop(Judgement judgement, Judgement::Next next, std::string text) {
  judgement.next = next;
  judgement.text = std::move(text);
  return judgement;
}

Judgement judge_floor(const Prepared& prepared, const ledger::Ledger& ledger, Judgement judgement) {
  const int asked = prepared.experiment.rounds;
  judgement.joins = floor_entry(ledger, prepared.scope);
  if (judgement.noise.rounds >= asked) {
    std::string text =
        fmt::format("kept {} A/A rounds: nothing to measure", judgement.noise.rounds);
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

// The claim is smaller than the design can see: how much more it would take.
std::string too_small_text(const Prepared& prepared, const Judgement& judgement) {
  const double seen = judgement.band->smallest_detectable;
  const double claimed = std::log1p(*prepared.experiment.claim);
  const int pairs = prepared.experiment.pairs;
  const double more_pairs = std::ceil(pairs * (seen / claimed) * (seen / claimed));
  const int rounds = judgement.rounds + static_cast<int>(judgement.earlier.size());
  return fmt::format(
      "the claim of +{:.3g}% is smaller than {} rounds of {} pairs can see here (+{:.2g}%); it "
      "takes {} rounds, or about {:.0f} pairs a round (with A/A rounds of that size)",
      *prepared.experiment.claim * 100, rounds, pairs, std::expm1(seen) * 100,
      judgement.rounds_to_see ? fmt::format("{}", *judgement.rounds_to_see)
                              : std::string("over a million"),
      more_pairs);
}

std::string void_text(const Prepared& prepared) {
  const Reach& reach = prepared.experiment.reach;
  const std::string reason =
      reason_at(prepared.arm_plan, reach, prepared.experiment.switch_pair.key);
  return fmt::format("the plans of both arms are equal at {}{}", reach_text(reach),
                     reason.empty() ? "" : ": " + reason);
}

}  // namespace

Result<Judgement> judge(const Prepared& prepared, const ledger::Ledger& ledger, bool force) {
  const Experiment& experiment = prepared.experiment;
  Judgement judgement;
  const std::vector<double> floor = ledger::floor_round_medians(ledger, prepared.scope);
  TRY_ASSIGN(judgement.noise, measure::estimate_noise(floor));
  if (!experiment.is_floor()) {
    ledger::Query query;
    query.scope = prepared.scope;
    query.claim = experiment.claim;
    query.sources = prepared.sources;
    const ledger::Consultation answer = ledger::consult(ledger.entries, query);
    note_findings(answer, judgement.notes);
    if (answer.block && !force) {
      return stop(std::move(judgement), Judgement::Next::kRefuse, answer.block->text);
    }
    judgement.overrides_ledger = answer.block.has_value();
    if (answer.join && !judgement.overrides_ledger) {
      judgement.joins = answer.join->entry;
      judgement.notes.push_back("joins: " + answer.join->text);
      judgement.earlier = ledger.find(judgement.joins)->rounds;
    }
  }
  if (over_limit(prepared.base_plan, prepared.base)) {
    return stop(
        std::move(judgement), Judgement::Next::kRefuse,
        "the base arm itself does not fit: " + why_not_fitting(prepared.base_plan, prepared.base));
  }
  if (experiment.is_floor()) return judge_floor(prepared, ledger, std::move(judgement));
  if (same_at_reach(prepared.base_plan, prepared.arm_plan, experiment.reach)) {
    return stop(std::move(judgement), Judgement::Next::kRecordVoid, void_text(prepared));
  }
  if (over_limit(prepared.arm_plan, prepared.arm)) {
    return stop(std::move(judgement), Judgement::Next::kRecordOutOfMemory,
                "the arm does not fit: " + why_not_fitting(prepared.arm_plan, prepared.arm));
  }
  TRY(judge_design(prepared, judgement));
  if (judgement.noise.missing_rounds() == 0 && experiment.claim && judgement.band &&
      std::log1p(*experiment.claim) < judgement.band->smallest_detectable) {
    std::string text = too_small_text(prepared, judgement);
    return stop(std::move(judgement), Judgement::Next::kRefuse, std::move(text));
  }
  return judgement;
}

}  // namespace reckon::experiment
