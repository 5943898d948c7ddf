#include "experiment/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "measure/pairs.h"

namespace reckon::experiment {
namespace {

using Rows = std::vector<EvidenceRow>;

std::string value_of(const Rows& rows, const std::string& name) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const EvidenceRow& row) { return row.name == name; });
  return found == rows.end() ? "none" : found->value;
}

nlohmann::json as_json(const Rows& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const EvidenceRow& row : rows) list.push_back({{"name", row.name}, {"value", row.value}});
  return list;
}

// Those of an arm that the other arm has not, or otherwise.
void add_kernels(const KernelUse& use, const KernelUse& others, Rows& rows) {
  for (const auto& [kernel, text] : new_kernel_use(others, use)) rows.push_back({kernel, text});
}

}  // namespace

Status add_evidence(const Prepared& prepared, const Samples& samples, Runner& runner,
                    ledger::VerdictBody& body) {
  if (!body.numbers) return {};
  const Workload& workload = prepared.experiment.workload;
  TRY_ASSIGN(const double base_value, measure::median(body.numbers->base_values));
  TRY_ASSIGN(const double arm_value, measure::median(body.numbers->arm_values));
  TRY_ASSIGN(Rows base, runner.evidence(workload, prepared.base, base_value));
  TRY_ASSIGN(Rows arm, runner.evidence(workload, prepared.arm, arm_value));
  add_kernels(samples.base_kernel_use, samples.arm_kernel_use, base);
  add_kernels(samples.arm_kernel_use, samples.base_kernel_use, arm);
  if (base.empty() && arm.empty()) return {};
  Rows names = base;
  for (const EvidenceRow& row : arm) {
    const bool known = std::any_of(names.begin(), names.end(), [&](const EvidenceRow& other) {
      return other.name == row.name;
    });
    if (!known) names.push_back(row);
  }
  for (const EvidenceRow& row : names) {
    body.evidence.push_back(fmt::format("{}: base {}, arm {}", row.name, value_of(base, row.name),
                                        value_of(arm, row.name)));
  }
  body.extra["evidence_table"] = {{"base", as_json(base)}, {"arm", as_json(arm)}};
  return {};
}

}  // namespace reckon::experiment
