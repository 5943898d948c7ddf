// Private to the module: the JSON fields of the event bodies (codec.h).
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "ledger/codec.h"
#include "ledger/record.h"
#include "ledger/scope_fields.h"

namespace reckon::ledger {

template <>
struct codec::Names<EntryKind> {
  static constexpr std::array<std::pair<EntryKind, std::string_view>, 3> kTable{{
      {EntryKind::kComparison, "ab"},
      {EntryKind::kFloor, "aa"},
      {EntryKind::kTuning, "tune"},
  }};
};

template <>
struct codec::Names<Verdict> {
  static constexpr std::array<std::pair<Verdict, std::string_view>, 7> kTable{{
      {Verdict::kWon, "WON"},
      {Verdict::kLost, "LOST"},
      {Verdict::kNeutral, "NEUTRAL"},
      {Verdict::kInconclusive, "INCONCLUSIVE"},
      {Verdict::kVoid, "VOID"},
      {Verdict::kBroke, "BROKE"},
      {Verdict::kOutOfMemory, "OUT-OF-MEMORY"},
  }};
};

template <>
struct codec::Names<VoidReason> {
  static constexpr std::array<std::pair<VoidReason, std::string_view>, 2> kTable{{
      {VoidReason::kEqualDispatch, "equal-dispatch"},
      {VoidReason::kDisturbed, "disturbed"},
  }};
};

template <typename Fields>
void describe(Fields& fields, codec::Like<Reproduction> auto& value) {
  fields("command", value.command);
  fields("queue_text", value.queue_text);
  fields("commit", value.commit);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<IdeaBody> auto& value) {
  fields.required("kind", value.kind);
  fields("experiment", value.experiment);
  fields("text", value.text);
  fields.required("scope", value.scope);
  fields("claim", value.claim);
  fields("device_name", value.device_name);
  fields("model_name", value.model_name);
  fields("reproduce", value.reproduce);
  fields("force_reason", value.force_reason);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<PairSample> auto& value) {
  fields.required("base", value.base);
  fields.required("arm", value.arm);
  fields("arm_first", value.arm_first);
  fields("warmup", value.warmup);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Round> auto& value) {
  fields.required("id", value.id);
  fields("index", value.index);
  fields("started", value.started);
  fields("seed", value.seed);
  fields("pairs", value.pairs);
  fields("base_value", value.base_value);
  fields("arm_value", value.arm_value);
  fields.required("median_log", value.median_log);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Environment> auto& value) {
  fields("device_name", value.device_name);
  fields("driver", value.driver);
  fields("kernel", value.kernel);
  fields("compiler", value.compiler);
  fields("commit", value.commit);
  fields("dirty", value.dirty);
  fields("readings", value.readings);
  fields("facts", value.facts);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Proof> auto& value) {
  fields("observed", value.observed);
  fields("base_fingerprint", value.base_fingerprint);
  fields("arm_fingerprint", value.arm_fingerprint);
  fields("only_base", value.only_base);
  fields("only_arm", value.only_arm);
  fields("side_effects", value.side_effects);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Divergence> auto& value) {
  fields("prompt", value.prompt);
  fields.required("position", value.position);
  fields("base_token", value.base_token);
  fields("arm_token", value.arm_token);
  fields("margin", value.margin);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<TokenCheck> auto& value) {
  fields.required("identical", value.identical);
  fields("compared", value.compared);
  fields("first_divergence", value.first_divergence);
  fields("mean_kl", value.mean_kl);
  fields("perplexity_change", value.perplexity_change);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Peaks> auto& value) {
  fields.required("base_bytes", value.base_bytes);
  fields.required("arm_bytes", value.arm_bytes);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<PlanTerm> auto& value) {
  fields.required("name", value.name);
  fields.required("bytes", value.bytes);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<MemoryPlan> auto& value) {
  fields.required("budget_bytes", value.budget_bytes);
  fields("base_bytes", value.base_bytes);
  fields("arm_bytes", value.arm_bytes);
  fields("arm_terms", value.arm_terms);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Interval> auto& value) {
  fields.required("low", value.low);
  fields.required("high", value.high);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<Numbers> auto& value) {
  fields("metric", value.metric);
  fields("unit", value.unit);
  fields("higher_is_better", value.higher_is_better);
  fields("base_values", value.base_values);
  fields("arm_values", value.arm_values);
  fields("effect", value.effect);
  fields("interval", value.interval);
  fields("noise_band", value.noise_band);
  fields("claim", value.claim);
  fields("noise_rounds", value.noise_rounds);
  fields("smallest_effect", value.smallest_effect);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<MeasuredBody> auto& value) {
  fields.required("round", value.round);
  fields("proof", value.proof);
  fields("tokens", value.tokens);
  fields("peaks", value.peaks);
  fields("sources", value.sources);
  fields("environment", value.environment);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<VerdictBody> auto& value) {
  fields.required("verdict", value.verdict);
  fields("void_reason", value.void_reason);
  fields("detail", value.detail);
  fields("numbers", value.numbers);
  fields("rounds", value.rounds);
  fields("proof", value.proof);
  fields("tokens", value.tokens);
  fields("peaks", value.peaks);
  fields("memory_plan", value.memory_plan);
  fields("sources", value.sources);
  fields("environment", value.environment);
  fields("mechanism", value.mechanism);
  fields("evidence", value.evidence);
  fields("revisit_when", value.revisit_when);
  fields("conditions", value.conditions);
  fields("lever", value.lever);
  fields("lever_entry", value.lever_entry);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<NoteBody> auto& value) {
  fields("text", value.text);
  fields("mechanism", value.mechanism);
  fields("evidence", value.evidence);
  fields("revisit_when", value.revisit_when);
  fields("conditions", value.conditions);
  fields("lever", value.lever);
  fields("lever_entry", value.lever_entry);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<StatusBody> auto& value) {
  fields("reason", value.reason);
  fields("by", value.by);
  fields.rest(value.extra);
}

template <typename Fields>
void describe(Fields& fields, codec::Like<ImportedBody> auto& value) {
  fields("source", value.source);
  fields("provenance", value.provenance);
  fields.required("idea", value.idea);
  fields("result", value.result);
  fields("figures", value.figures);
  fields.rest(value.extra);
}

}  // namespace reckon::ledger
