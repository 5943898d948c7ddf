#include "engine/oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/oracle_case.h"
#include "engine/sampler.h"

namespace reckon::engine {
namespace {

// Keeps the larger; not-a-number counts as larger than everything.
void keep_largest(double& largest, double value) {
  if (!std::isnan(largest) && !(value <= largest)) largest = value;
}

struct RowDifference {
  double largest = 0;  // absolute
  double scaled = 0;   // largest over max(1, |expected|)
  double ratio = 0;    // of the norms
  int64_t column = 0;  // of the largest; the first that is not a number, where there is one
};

RowDifference compare_row(std::span<const float> got, std::span<const float> expected) {
  RowDifference row;
  double squares = 0;
  double expected_squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double want = static_cast<double>(expected[i]);
    const double difference = std::abs(static_cast<double>(got[i]) - want);
    squares += difference * difference;
    expected_squares += want * want;
    keep_largest(row.scaled, difference / std::max(1.0, std::abs(want)));
    if (std::isnan(row.largest) || difference <= row.largest) continue;
    row.largest = difference;
    row.column = static_cast<int64_t>(i);
  }
  row.ratio = squares == 0 ? 0 : std::sqrt(squares / expected_squares);
  return row;
}

class Checker {
 public:
  Checker(Session& session, OracleReport& report) : session_(session), report_(report) {}

  [[nodiscard]] Status check(int64_t index, const OraclePrompt& prompt) {
    index_ = index;
    TRY(session_.truncate(0));
    TRY_ASSIGN(const int32_t first, check_prefill(prompt));
    TRY(check_greedy(prompt, first));
    ++report_.prompts;
    return {};
  }

 private:
  // Compares hidden states and logits; gives the first token of the continuation.
  [[nodiscard]] Result<int32_t> check_prefill(const OraclePrompt& prompt) {
    if (!prompt.hidden.empty()) {
      session_.observe([&](int64_t layer, Activation hidden) {
        check_hidden(layer, prompt.hidden[static_cast<size_t>(layer)], hidden);
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
  return {OracleMeasure::kRowNorm, 5e-3, 5e-2};
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

// The prompt as the session computes it, recorded at the same places.
Result<OraclePrompt> record_prompt(Session& session, const OraclePrompt& like) {
  OraclePrompt prompt;
  prompt.tokens = like.tokens;
  prompt.logit_rows = like.logit_rows;
  prompt.hidden.resize(like.hidden.size());
  TRY(session.truncate(0));
  if (!like.hidden.empty()) {
    session.observe([&](int64_t layer, Activation hidden) {
      auto& rows = prompt.hidden[static_cast<size_t>(layer)];
      rows.insert(rows.end(), hidden.data, hidden.data + hidden.rows * hidden.columns);
    });
  }
  std::vector<float> rows;  // of every position
  int64_t columns = 0;
  const Status status = session.prefill_all(prompt.tokens, [&](int64_t, Activation logits) {
    columns = logits.columns;
    rows.insert(rows.end(), logits.data, logits.data + logits.rows * columns);
  });
  session.observe({});
  TRY(status);
  prompt.logits.assign(rows.end() - prompt.logit_rows * columns, rows.end());
  std::vector<float> last(rows.end() - columns, rows.end());
  prompt.min_top2_margin = std::numeric_limits<double>::infinity();
  while (prompt.greedy.size() < like.greedy.size()) {
    TRY_ASSIGN(const kernels::Pick pick, pick_token(last));
    prompt.greedy.push_back(pick.token);
    prompt.min_top2_margin = std::min(prompt.min_top2_margin, static_cast<double>(pick.margin));
    if (prompt.greedy.size() == like.greedy.size()) break;
    TRY_ASSIGN(const std::span<const float> logits, session.decode(pick.token));
    last.assign(logits.begin(), logits.end());
  }
  return prompt;
}

// Replaces what was recorded by what `model` computes in reference numerics.
Status record_again(const LoadedModel& model, const SessionShape& shape,
                    std::vector<OraclePrompt>& prompts) {
  SessionOptions options;
  TRY(options.switches.set("numerics", "reference"));
  options.shape = shape;
  TRY_ASSIGN(const std::unique_ptr<Session> session, Session::create(model, options));
  for (OraclePrompt& prompt : prompts) {
    TRY_ASSIGN(prompt, record_prompt(*session, prompt));
  }
  return {};
}

}  // namespace

Result<OracleReport> check_oracle(const LoadedModel& model, const SessionOptions& options,
                                  const LoadedModel* reference) {
  const models::ModelInfo& info = model.model().info();
  TRY_ASSIGN(std::vector<OraclePrompt> prompts, read_oracle_case(model.checkpoint(), info));
  SessionOptions adapted = options;
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
  Checker checker(*session, report);
  for (size_t i = 0; i < prompts.size(); ++i) {
    TRY(checker.check(static_cast<int64_t>(i), prompts[i]));
  }
  report.passed = !report.first_failure;
  return report;
}

}  // namespace reckon::engine
