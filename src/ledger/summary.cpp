#include "ledger/summary.h"

namespace reckon::ledger {

Summary summary_of(const Entry& entry) {
  const Scope& scope = entry.idea.scope;
  Summary summary;
  summary.id = entry.id;
  summary.kind = entry.idea.kind;
  if (entry.verdict) {
    summary.verdict = entry.verdict->verdict;
    if (entry.verdict->numbers) summary.effect = entry.verdict->numbers->effect;
    summary.lever_entry = entry.verdict->lever_entry;
  }
  summary.metric = scope.metric;
  summary.switch_key = scope.switch_key;
  summary.base_value = scope.base_value;
  summary.arm_value = scope.arm_value;
  summary.model_name = entry.idea.model_name;
  summary.model_family = scope.model_family;
  summary.device_name = entry.idea.device_name;
  summary.device_vendor = scope.device.vendor;
  summary.device_isa = scope.device.isa;
  summary.idea = entry.idea.text;
  summary.rounds = static_cast<int64_t>(entry.rounds.size());
  summary.imported = entry.imported;
  summary.status = entry.status;
  summary.superseded_by = entry.superseded_by;
  summary.created = entry.created;
  summary.updated = entry.updated;
  summary.writer = entry.writer;
  return summary;
}

}  // namespace reckon::ledger
