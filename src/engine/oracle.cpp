#include "engine/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/oracle_case.h"
#include "engine/oracle_record.h"
#include "engine/oracle_rows.h"
#include "engine/sampler.h"
#include "engine/selections.h"

namespace reckon::engine {
namespace {

class Checker {
 public:
  Checker(Session& session, OracleReport& report) : session_(session), report_(report) {}

  // `selections`: to be forced on the prompt; may be null.
  [[nodiscard]] Status check(int64_t index, const OraclePrompt& prompt,
                             const Selections* selections) {
    index_ = index;
    if (selections != nullptr) {
      TRY(count_flips(prompt, *selections));
      session_.observe_routes([selections](int64_t first_position, const models::Routed& routed) {
        selections->force(first_position, routed);
      });
    }
    TRY(session_.truncate(0));
    TRY_ASSIGN(const int32_t first, check_prefill(prompt));
    if (prompt.drafts) TRY(check_drafts(prompt));
    TRY(check_greedy(prompt, first));
    ++report_.prompts;
    return {};
  }

 private:
  // Runs the prompt as it goes by itself.
  [[nodiscard]] Status count_flips(const OraclePrompt& prompt, const Selections& selections) {
    SelectionFlips flips;
    session_.observe_routes([&](int64_t first_position, const models::Routed& routed) {
      selections.count(first_position, routed, flips);
    });
    TRY(session_.truncate(0));
    TRY(session_.append(prompt.tokens));
    report_.selections += flips.selections;
    report_.selection_flips += flips.flips;
    return {};
  }

  // Compares hidden states and logits, those of the draft head, too; gives the first token of the
  // continuation.
  [[nodiscard]] Result<int32_t> check_prefill(const OraclePrompt& prompt) {
    if (!prompt.hidden.empty()) {
      session_.observe([&](int64_t layer, Activation hidden) {
        check_hidden(layer, prompt.hidden[static_cast<size_t>(layer)], hidden);
      });
    }
    if (prompt.drafts) {
      session_.observe_drafts([&](int64_t first_position, Activation hidden, Activation logits) {
        check_draft_rows(prompt, first_position, hidden, logits);
      });
    }
    std::vector<float> last;
    const Status status =
        session_.prefill_all(prompt.tokens, [&](int64_t first_position, Activation logits) {
          check_logits(prompt, first_position, logits);
          const float* row = logits.data + (logits.rows - 1) * logits.columns;
          last.assign(row, row + logits.columns);
        });
    session_.observe({});
    TRY(status);
    TRY_ASSIGN(const kernels::Pick pick, pick_token(last));
    return pick.token;
  }

  void check_hidden(int64_t layer, const std::vector<float>& expected, Activation hidden) {
    for (int64_t r = 0; r < hidden.rows; ++r) {
      const int64_t position = session_.position() + r;
      const RowDifference row = compare_row(row_of(hidden.data, r, hidden.columns),
                                            row_of(expected.data(), position, hidden.columns));
      keep_largest(report_.largest_hidden_difference, row.scaled);
      keep_largest(report_.largest_hidden_row_ratio, row.ratio);
      ++report_.hidden_rows;
      const double difference = measured(row.scaled, row.ratio);
      if (difference <= report_.tolerance.limit) continue;  // false for what is no number
      const auto at = static_cast<size_t>(position * hidden.columns + row.column);
      fail({.what = fmt::format("hidden {}", layer),
            .row = position,
            .column = row.column,
            .got = static_cast<double>(hidden.data[r * hidden.columns + row.column]),
            .expected = static_cast<double>(expected[at]),
            .difference = difference});
    }
  }

  void check_logits(const OraclePrompt& prompt, int64_t first_position, Activation logits) {
    const int64_t first_recorded = static_cast<int64_t>(prompt.tokens.size()) - prompt.logit_rows;
    for (int64_t r = 0; r < logits.rows; ++r) {
      const int64_t recorded = first_position + r - first_recorded;
      if (recorded < 0) continue;
      const auto expected = row_of(prompt.logits.data(), recorded, logits.columns);
      const RowDifference row = compare_row(row_of(logits.data, r, logits.columns), expected);
      keep_largest(report_.largest_logit_difference, row.largest);
      keep_largest(report_.largest_logit_row_ratio, row.ratio);
      ++report_.logit_rows;
      const double difference = measured(row.largest, row.ratio);
      if (difference <= report_.tolerance.limit) continue;  // false for what is no number
      fail({.what = "logits",
            .row = first_position + r,
            .column = row.column,
            .got = static_cast<double>(logits.data[r * logits.columns + row.column]),
            .expected = static_cast<double>(expected[static_cast<size_t>(row.column)]),
            .difference = difference});
    }
  }

  [[nodiscard]] Status check_greedy(const OraclePrompt& prompt, int32_t token) {
    for (size_t step = 0; step < prompt.greedy.size(); ++step) {
      ++report_.greedy_tokens;
      if (token != prompt.greedy[step]) {
        if (!(prompt.min_top2_margin <= report_.tolerance.greedy_margin)) {
          fail({.what = "greedy token",
                .row = static_cast<int64_t>(step),
                .got = static_cast<double>(token),
                .expected = static_cast<double>(prompt.greedy[step])});
        }
        return {};  // from here on the two continue different texts
      }
      ++report_.greedy_equal;
      if (step + 1 == prompt.greedy.size()) break;
      TRY_ASSIGN(const std::span<const float> logits, session_.decode(token));
      TRY_ASSIGN(const kernels::Pick pick, pick_token(logits));
      token = pick.token;
    }
    return {};
  }

  // Rows of the draft head: those of the prompt, then the drafts behind it, whose hidden states
  // were not recorded.
  void check_draft_rows(const OraclePrompt& prompt, int64_t first_position, Activation hidden,
                        Activation logits) {
    const OracleDrafts& drafts = *prompt.drafts;
    const auto recorded = static_cast<int64_t>(prompt.tokens.size()) - 1;
    for (int64_t r = 0; r < logits.rows; ++r) {
      const int64_t position = first_position + r;
      const bool behind = position >= recorded;
      if (!behind) check_draft_row("draft hidden", drafts.hidden, position, position, hidden, r);
      check_draft_row("draft logits", behind ? drafts.draft_logits : drafts.logits,
                      behind ? position - recorded : position, position, logits, r);
      ++report_.draft_rows;
    }
  }

  void check_draft_row(const char* what, const std::vector<float>& recorded, int64_t recorded_row,
                       int64_t position, Activation values, int64_t row) {
    const auto got = row_of(values.data, row, values.columns);
    const auto expected = row_of(recorded.data(), recorded_row, values.columns);
    const RowDifference difference = compare_row(got, expected);
    keep_largest(report_.largest_draft_difference, difference.scaled);
    keep_largest(report_.largest_draft_row_ratio, difference.ratio);
    const double size = measured(difference.scaled, difference.ratio);
    if (size <= report_.tolerance.limit) return;  // false for what is no number
    const auto column = static_cast<size_t>(difference.column);
    fail({.what = what,
          .row = position,
          .column = difference.column,
          .got = static_cast<double>(got[column]),
          .expected = static_cast<double>(expected[column]),
          .difference = size});
  }

  // The drafts behind the prompt, each after the one that was recorded.
  [[nodiscard]] Status check_drafts(const OraclePrompt& prompt) {
    const OracleDrafts& drafts = *prompt.drafts;
    int32_t token = drafts.next;
    for (size_t depth = 0; depth < drafts.tokens.size(); ++depth) {
      TRY_ASSIGN(const kernels::Pick pick, session_.draft(token));
      token = drafts.tokens[depth];
      ++report_.drafts;
      if (pick.token == token) {
        ++report_.drafts_equal;
      } else if (drafts.margin(depth) > report_.tolerance.greedy_margin) {
        fail({.what = "draft",
              .row = static_cast<int64_t>(depth),
              .got = static_cast<double>(pick.token),
              .expected = static_cast<double>(token)});
      }
    }
    session_.observe_drafts({});
    return {};
  }

  [[nodiscard]] double measured(double absolute, double ratio) const {
    return report_.tolerance.measure == OracleMeasure::kAbsolute ? absolute : ratio;
  }

  void fail(OracleMismatch mismatch) {
    if (report_.first_failure) return;
    mismatch.prompt = index_;
    report_.first_failure = std::move(mismatch);
  }

  static std::span<const float> row_of(const float* data, int64_t row, int64_t columns) {
    return {data + row * columns, static_cast<size_t>(columns)};
  }

  Session& session_;
  OracleReport& report_;
  int64_t index_ = 0;
};

bool has_quantised_weights(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensors(), [](const CheckpointTensor& tensor) {
    return tensor.weight && block_elements(tensor.weight->type) > 1;
  });
}

}  // namespace

std::string mismatch_text(const OracleMismatch& mismatch) {
  return fmt::format("prompt {}, {}, row {}, column {}: got {:.7g}, expected {:.7g}",
                     mismatch.prompt, mismatch.what, mismatch.row, mismatch.column, mismatch.got,
                     mismatch.expected);
}

namespace {

constexpr OracleTolerance kHalfPrecision = {OracleMeasure::kRowNorm, 5e-3, 5e-2};

// A GPU keeps its cache, and for 16-bit weights its activations, in half precision; its fast
// kernels round them to bf16 where the weights are.
OracleTolerance on_gpu_tolerance(const LoadedModel& model, const kernels::SwitchSet& switches) {
  const bool bf16 = std::ranges::any_of(model.weights(), [](const models::PlacedWeight& weight) {
    return weight.placed.type == DType::kBF16;
  });
  const bool fast =
      switches.get("numerics") != "reference" && switches.get("prefill.numerics") == "fast";
  if (bf16 && fast) {
    return {OracleMeasure::kRowNorm, 2e-2, 0.5};
  }
  return kHalfPrecision;
}

// Whether the plan has a gated delta rule by products of bfloat16, in two parts each: they are
// held to the bound of half precision.
bool has_fast_delta_rule(const SessionPlan& plan) {
  return std::ranges::any_of(plan.calls, [](const PlannedCall& planned) {
    return planned.call.op == kernels::Op::kGatedDeltaRule &&
           planned.choice->variant->numerics == kernels::NumericsClass::kFast;
  });
}

}  // namespace

OracleTolerance oracle_tolerance(const LoadedModel& model, const kernels::SwitchSet& switches) {
  const bool on_gpu = model.backend().device().backend != "cpu";
  const bool quantised = has_quantised_weights(model.checkpoint());
  if (model.is_packed()) return {OracleMeasure::kRowNorm, 2e-2, 0.5};
  // A GPU keeps block-quantised weights as half precision, so that even its reference differs.
  if (on_gpu && quantised) return on_gpu_tolerance(model, switches);
  if (switches.get("numerics") == "reference") return {OracleMeasure::kAbsolute, 2e-3, 1e-3};
  if (quantised) return {OracleMeasure::kRowNorm, 2e-2, 0.5};
  if (on_gpu) return on_gpu_tolerance(model, switches);
  return {OracleMeasure::kRowNorm, 1e-4, 1e-3};
}

namespace {

bool forces_selections(const LoadedModel& model, const kernels::SwitchSet& switches) {
  return model.model().info().has_experts && model.backend().device().backend == "cpu" &&
         switches.get("numerics") != "reference";
}

}  // namespace

Result<OracleReport> check_oracle(const LoadedModel& model, const SessionOptions& options,
                                  const LoadedModel* reference) {
  const models::ModelInfo& info = model.model().info();
  TRY_ASSIGN(std::vector<OraclePrompt> prompts, read_oracle_case(model.checkpoint(), info));
  SessionOptions adapted = options;
  adapted.shape.drafts =
      info.has_draft_head && std::ranges::any_of(prompts, [](const OraclePrompt& prompt) {
        return prompt.drafts.has_value();
      });
  adapted.shape.logit_rows = models::LogitRows::kAll;
  adapted.shape.capacity = 0;
  for (const OraclePrompt& prompt : prompts) {
    const auto needed = static_cast<int64_t>(prompt.tokens.size() + prompt.greedy.size());
    adapted.shape.capacity = std::max(adapted.shape.capacity, needed);
  }
  if (model.is_packed()) {
    RECKON_CHECK(reference != nullptr);
    TRY(record_again(*reference, adapted.shape, prompts));
  }
  TRY_ASSIGN(const std::unique_ptr<Session> session, Session::create(model, adapted));
  OracleReport report;
  report.tolerance = oracle_tolerance(model, options.switches);
  if (report.tolerance.limit < kHalfPrecision.limit && has_fast_delta_rule(session->plan())) {
    report.tolerance = kHalfPrecision;
  }
  std::vector<Selections> selections;
  if (forces_selections(model, options.switches)) {
    const LoadedModel& source = model.is_packed() ? *reference : model;
    TRY_ASSIGN(selections, record_selections(source, adapted.shape, prompts));
  }
  Checker checker(*session, report);
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Selections* forced = selections.empty() ? nullptr : &selections[i];
    TRY(checker.check(static_cast<int64_t>(i), prompts[i], forced));
  }
  report.passed = !report.first_failure;
  return report;
}

}  // namespace reckon::engine
