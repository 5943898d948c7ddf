// Checking the engine against recorded reference results (oracle_case.h), prompt by prompt: every
// recorded row of logits, the hidden states where they are recorded, and the greedy continuation;
// of a draft head that the model was built with, every recorded row and the drafts behind it.
//
// A model that was packed at load computes something else than what was recorded: it is held
// against the CPU's reference numerics on the same packed weights, at the same places.
//
// Tolerances (docs/numerics.md):
//  - numerics=reference: each logit within 2e-3, each hidden value within 2e-3 of max(1,
//    |expected|);
//  - otherwise each row by ||difference|| / ||expected||: 1e-4 for float weights (float32
//    activations), 5e-3 for them on a GPU (half precision; 2e-2 where fast kernels round to bf16),
//    2e-2 for quantised and packed ones.
// Where rows are routed to experts and the numerics are not the reference's, a router's near-ties
// may fall otherwise and another expert's row is no rounding: results are compared with the experts
// forced that reference numerics select along the same tokens, and how many selections flip without
// that is counted beside (on a CPU; on a GPU nothing is forced, nor counted).
// Rows of a draft head count as hidden values do. Drafts must be equal where the margin of their
// own recorded logits is wide enough. Greedy tokens must all be equal where the recorded margins
// are wide enough for the tolerance (over 1e-3; in other than reference numerics over 0.05 on a
// GPU, over 0.5 for quantised weights); on a narrower path another order of summation may pick
// another token, and the comparison ends at the first one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/session.h"

namespace reckon::engine {

enum class OracleMeasure : uint8_t { kAbsolute, kRowNorm };

struct OracleTolerance {
  OracleMeasure measure = OracleMeasure::kAbsolute;
  double limit = 2e-3;
  double greedy_margin = 1e-3;  // paths whose smallest margin is over this must be equal
};

struct OracleMismatch {
  // "logits", "hidden 2" (after layer 2), "greedy token", "draft hidden", "draft logits", "draft"
  std::string what;
  int64_t prompt = 0;
  int64_t row = 0;     // position in the prompt; for a greedy token or a draft its number, from 0
  int64_t column = 0;  // the worst of the row; 0 for a token
  double got = 0;
  double expected = 0;
  double difference = 0;  // of the row, as the tolerance measures it; 0 for a token
};
// "prompt 3, logits, row 12, column 77: got 1.25, expected 1.5"
[[nodiscard]] std::string mismatch_text(const OracleMismatch& mismatch);

struct OracleReport {
  bool passed = false;
  OracleTolerance tolerance;
  int64_t prompts = 0;
  int64_t logit_rows = 0;
  int64_t hidden_rows = 0;
  int64_t greedy_tokens = 0;  // compared
  int64_t greedy_equal = 0;
  int64_t selections = 0;       // of a row of a prompt and an expert, in a pass of its own choice
  int64_t selection_flips = 0;  // that reference numerics select otherwise
  int64_t draft_rows = 0;       // of the draft head
  int64_t drafts = 0;           // tokens behind a prompt
  int64_t drafts_equal = 0;
  double largest_logit_difference = 0;   // absolute
  double largest_logit_row_ratio = 0;    // ||difference|| / ||expected||
  double largest_hidden_difference = 0;  // over max(1, |expected|)
  double largest_hidden_row_ratio = 0;
  double largest_draft_difference = 0;  // over max(1, |expected|)
  double largest_draft_row_ratio = 0;
  std::optional<OracleMismatch> first_failure;
};

// What the switches ask of this model.
[[nodiscard]] OracleTolerance oracle_tolerance(const LoadedModel& model,
                                               const kernels::SwitchSet& switches);

// Runs the case of `model`; the options' shape is chosen here (it fits the longest prompt). A case
// that disagrees is a report, not an error; errors are files that cannot be read or do not match
// the model, and what sessions report. `reference`: the same checkpoint packed in the same way, on
// the CPU (it may be `model` itself), where `model` is packed; else it is not used.
[[nodiscard]] Result<OracleReport> check_oracle(const LoadedModel& model,
                                                const SessionOptions& options,
                                                const LoadedModel* reference = nullptr);

}  // namespace reckon::engine
