#include "experiment/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/hash.h"
#include "base/text.h"

namespace reckon::experiment {
namespace {

using Rows = std::vector<DispatchRow>;

Rows sorted(std::span<const DispatchRow> rows) {
  Rows copy(rows.begin(), rows.end());
  std::sort(copy.begin(), copy.end());
  copy.erase(std::unique(copy.begin(), copy.end()), copy.end());
  return copy;
}

Rows difference(const Rows& a, const Rows& b) {
  Rows only_a;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
  return only_a;
}

std::vector<std::string> texts(const Rows& rows) {
  std::vector<std::string> result;
  for (const DispatchRow& row : rows) result.push_back(row_text(row));
  return result;
}

Rows outside(std::span<const DispatchRow> rows, const Reach& reach) {
  Rows result;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(result),
               [&](const DispatchRow& row) { return !in_reach(row, reach); });
  return sorted(result);
}

// The first few rows of a list, for an error message.
std::string some(const Rows& rows) {
  constexpr size_t kShown = 3;
  std::vector<std::string> shown = texts(rows);
  const size_t hidden = shown.size() > kShown ? shown.size() - kShown : 0;
  shown.resize(shown.size() - hidden);
  return join(shown, "; ") + (hidden > 0 ? fmt::format("; and {} more", hidden) : "");
}

}  // namespace

std::string row_text(const DispatchRow& row) {
  std::string text = row.phase;
  for (const std::string* field : {&row.op, &row.shape, &row.variant, &row.params}) {
    if (!field->empty()) text += " " + *field;
  }
  if (!row.source_hash.empty()) text += " @" + row.source_hash;
  return text;
}

bool in_reach(const DispatchRow& row, const Reach& reach) {
  return (reach.op.empty() || row.op == reach.op) &&
         (reach.phase.empty() || row.phase == reach.phase);
}

std::string reach_text(const Reach& reach) {
  return fmt::format("{}/{}", reach.op.empty() ? "*" : reach.op,
                     reach.phase.empty() ? "*" : reach.phase);
}

std::vector<DispatchRow> predicted_rows(const Prediction& prediction) {
  Rows rows;
  for (const PredictedRow& predicted : prediction.rows) rows.push_back(predicted.row);
  return sorted(rows);
}

std::vector<DispatchRow> certain_rows(const Prediction& prediction) {
  Rows rows;
  for (const PredictedRow& predicted : prediction.rows) {
    if (predicted.certain) rows.push_back(predicted.row);
  }
  return sorted(rows);
}

std::vector<DispatchRow> rows_at(std::span<const DispatchRow> rows, const Reach& reach) {
  Rows result;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(result),
               [&](const DispatchRow& row) { return in_reach(row, reach); });
  return sorted(result);
}

std::string fingerprint(std::span<const DispatchRow> rows) {
  Hasher hasher;
  for (const DispatchRow& row : sorted(rows)) {
    for (const std::string* field :
         {&row.phase, &row.op, &row.shape, &row.variant, &row.params, &row.source_hash}) {
      hasher.add_field(*field);
    }
  }
  return hasher.hex().substr(0, 16);
}

ledger::Proof compare_rows(std::span<const DispatchRow> base, std::span<const DispatchRow> arm,
                           const Reach& reach) {
  const Rows base_at = rows_at(base, reach);
  const Rows arm_at = rows_at(arm, reach);
  ledger::Proof proof;
  proof.base_fingerprint = fingerprint(base_at);
  proof.arm_fingerprint = fingerprint(arm_at);
  proof.only_base = texts(difference(base_at, arm_at));
  proof.only_arm = texts(difference(arm_at, base_at));
  const Rows base_elsewhere = outside(base, reach);
  const Rows arm_elsewhere = outside(arm, reach);
  for (const std::string& row : texts(difference(base_elsewhere, arm_elsewhere))) {
    proof.side_effects.push_back("base: " + row);
  }
  for (const std::string& row : texts(difference(arm_elsewhere, base_elsewhere))) {
    proof.side_effects.push_back("arm: " + row);
  }
  return proof;
}

void mark_weak(const Prediction& prediction, ledger::Proof& proof) {
  if (prediction.weak_proof.empty()) return;
  proof.observed = false;
  proof.extra["weak"] = prediction.weak_proof;
}

bool same_at_reach(const Prediction& base, const Prediction& arm, const Reach& reach) {
  return rows_at(predicted_rows(base), reach) == rows_at(predicted_rows(arm), reach) &&
         rows_at(certain_rows(base), reach) == rows_at(certain_rows(arm), reach);
}

Status check_observed(const Prediction& prediction, std::span<const DispatchRow> observed,
                      const std::string& arm) {
  if (!prediction.complete) return {};
  const Rows seen = sorted(observed);
  const Rows unplanned = difference(seen, predicted_rows(prediction));
  if (!unplanned.empty()) {
    return failed(
        fmt::format("{} dispatched what its plan does not list: {}", arm, some(unplanned)));
  }
  const Rows missing = difference(certain_rows(prediction), seen);
  if (!missing.empty()) {
    return failed(
        fmt::format("{} did not dispatch what its plan calls certain: {}", arm, some(missing)));
  }
  return {};
}

std::map<std::string, std::string> sources_in_reach(const Prediction& base, const Prediction& arm,
                                                    const Reach& reach) {
  std::map<std::string, std::string> sources;
  for (const Prediction* prediction : {&base, &arm}) {
    for (const DispatchRow& row : rows_at(predicted_rows(*prediction), reach)) {
      if (!row.source_hash.empty()) sources[row.op + "." + row.variant] = row.source_hash;
    }
    sources.insert(prediction->sources.begin(), prediction->sources.end());
  }
  return sources;
}

std::vector<std::string> reasons_at(const Prediction& prediction, const Reach& reach,
                                    const std::string& key) {
  std::vector<std::string> reasons;
  for (const PredictedRow& predicted : prediction.rows) {
    if (!in_reach(predicted.row, reach) || predicted.reason.empty()) continue;
    if (std::find(reasons.begin(), reasons.end(), predicted.reason) == reasons.end()) {
      reasons.push_back(predicted.reason);
    }
  }
  std::stable_partition(reasons.begin(), reasons.end(), [&](const std::string& reason) {
    return reason.find(key) != std::string::npos;
  });
  return reasons;
}

std::string deciding_rule(std::span<const std::string> reasons, const std::string& key) {
  if (reasons.empty()) return "";
  size_t start = 0;
  while (start != std::string::npos) {
    const size_t end = reasons.front().find("; ", start);
    std::string clause = reasons.front().substr(start, end - start);
    if (clause.find(key) != std::string::npos) return clause;
    start = end == std::string::npos ? end : end + 2;
  }
  return reasons.front();
}

}  // namespace reckon::experiment
