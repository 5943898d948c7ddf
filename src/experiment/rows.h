// Dispatch rows compared: what the plan said, what ran, and where two arms differ. Pure and
// thread-safe.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/queue.h"
#include "experiment/runner.h"
#include "ledger/record.h"

namespace reckon::experiment {

// "decode matmul 1x1536x576 q4_1 exact_avx2 tile_order=band8 @0123456789abcdef"
[[nodiscard]] std::string row_text(const DispatchRow& row);

[[nodiscard]] bool in_reach(const DispatchRow& row, const Reach& reach);
// "matmul/decode", with "*" for any.
[[nodiscard]] std::string reach_text(const Reach& reach);

// Every row that the plan lists, certain or possible, sorted.
[[nodiscard]] std::vector<DispatchRow> predicted_rows(const Prediction& prediction);
// The same, or the certain ones alone, at a reach.
[[nodiscard]] std::vector<DispatchRow> rows_at(std::span<const DispatchRow> rows,
                                               const Reach& reach);
[[nodiscard]] std::vector<DispatchRow> certain_rows(const Prediction& prediction);

// A hash of the sorted, distinct rows: 16 hexadecimal digits.
[[nodiscard]] std::string fingerprint(std::span<const DispatchRow> rows);

// Fingerprints at the reach, the rows there that one arm only has, and every difference elsewhere
// ("base: …", "arm: …"). Both sorted.
[[nodiscard]] ledger::Proof compare_rows(std::span<const DispatchRow> base,
                                         std::span<const DispatchRow> arm, const Reach& reach);

// Says in the proof (as "weak") by what the plan's rows tell arms apart where that proves less than
// observing what is dispatched; then nothing counts as observed.
void mark_weak(const Prediction& prediction, ledger::Proof& proof);

// Do both plans list the same rows at the reach, each as certain in one as in the other?
[[nodiscard]] bool same_at_reach(const Prediction& base, const Prediction& arm, const Reach& reach);

// Certain rows all observed, and nothing observed that the plan does not list. The error (kFailed)
// says the rows: then the plan or the trace is wrong, and nothing may be recorded. `arm` is how a
// sentence about it starts: "the base arm".
[[nodiscard]] Status check_observed(const Prediction& prediction,
                                    std::span<const DispatchRow> observed, const std::string& arm);

// "matmul.exact_avx2" -> source hash, for every row at the reach of either arm, and what else the
// plans call sources.
[[nodiscard]] std::map<std::string, std::string> sources_in_reach(const Prediction& base,
                                                                  const Prediction& arm,
                                                                  const Reach& reach);

// Why the plan chose what it chose at the reach: its distinct reasons, those that name `key` first.
[[nodiscard]] std::vector<std::string> reasons_at(const Prediction& prediction, const Reach& reach,
                                                  const std::string& key);

// Of reasons_at: the clause of the first one that names `key`, or the whole of it where none does.
[[nodiscard]] std::string deciding_rule(std::span<const std::string> reasons,
                                        const std::string& key);

}  // namespace reckon::experiment
