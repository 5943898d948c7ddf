// What an experiment writes down: the bodies of its ledger events. Pure and thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/prepare.h"
#include "experiment/rounds.h"
#include "experiment/run.h"
#include "experiment/samples.h"
#include "ledger/record.h"

namespace reckon::experiment {

[[nodiscard]] ledger::Environment to_environment(const nlohmann::json& record,
                                                 const std::string& device_name);

// `override_reason`: why the ledger's answer was overridden; "" where it was not.
[[nodiscard]] ledger::IdeaBody idea_body(const Prepared& prepared, const RunOptions& options,
                                         const nlohmann::json& environment,
                                         const std::string& override_reason);

// A complete round. Errors: values without a logarithm.
[[nodiscard]] Result<ledger::MeasuredBody> measured_body(const Prepared& prepared,
                                                         const Samples& samples,
                                                         const CollectedRound& round);

// The verdict that the plans give on their own; its detail is the judgement's text.
[[nodiscard]] ledger::VerdictBody void_by_plan(const Prepared& prepared, const Judgement& judgement,
                                               const nlohmann::json& environment);
[[nodiscard]] ledger::VerdictBody out_of_memory(const Prepared& prepared, const std::string& detail,
                                                const nlohmann::json& environment);

// The verdict on a round that ended badly (kBroke, kOutOfMemory). The pairs of unfinished rounds
// are kept in it.
[[nodiscard]] ledger::VerdictBody verdict_of_end(const Prepared& prepared, const RoundEnd& end,
                                                 const Samples& samples,
                                                 const std::vector<std::string>& round_ids,
                                                 const nlohmann::json& environment);

// The verdict over all rounds of the entry, in order: those it joined and the new ones, which
// `samples` holds. At least one.
[[nodiscard]] Result<ledger::VerdictBody> verdict_of_rounds(
    const Prepared& prepared, const Judgement& judgement, const Samples& samples,
    const std::vector<ledger::MeasuredBody>& rounds);

// Adds what an arm's diverging predictions cost to the tokens of its verdict.
void add_quality(const Quality& quality, ledger::TokenCheck& tokens);

}  // namespace reckon::experiment
