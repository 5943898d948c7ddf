#include "engine/kl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/sampler.h"

namespace reckon::engine {
namespace {

constexpr float kDecisiveMargin = 0.5F;

// log(sum of exp(x)), shifted by the highest value.
double log_sum_exp(std::span<const float> row) {
  const double highest = static_cast<double>(*std::ranges::max_element(row));
  double sum = 0;
  for (const float value : row) sum += std::exp(static_cast<double>(value) - highest);
  return highest + std::log(sum);
}

Status add_row(KlReport& report, std::span<const float> reference, std::span<const float> variant) {
  TRY_ASSIGN(const kernels::Pick expected, pick_token(reference));
  TRY_ASSIGN(const kernels::Pick got, pick_token(variant));
  const double kl = row_kl(reference, variant);
  report.largest_kl = std::max(report.largest_kl, kl);
  report.mean_kl += (kl - report.mean_kl) / static_cast<double>(++report.tokens);
  const bool equal = expected.token == got.token;
  report.top1_equal += equal ? 1 : 0;
  if (expected.margin > kDecisiveMargin) {
    ++report.decisive;
    report.decisive_equal += equal ? 1 : 0;
  }
  return {};
}

// `next`: the token that follows in the text.
void add_loss(KlReport& report, std::span<const float> reference, std::span<const float> variant,
              int32_t next) {
  const auto loss = [next](std::span<const float> row) {
    return log_sum_exp(row) - static_cast<double>(row[static_cast<size_t>(next)]);
  };
  const auto count = static_cast<double>(++report.predicted);
  report.reference_loss += (loss(reference) - report.reference_loss) / count;
  report.variant_loss += (loss(variant) - report.variant_loss) / count;
}

Status check_vocabularies(const Session& reference, const Session& variant) {
  const int64_t vocabulary = reference.model().info().vocabulary;
  if (variant.model().info().vocabulary == vocabulary) return {};
  return usage_error(fmt::format("vocabularies of {} and {} tokens cannot be compared", vocabulary,
                                 variant.model().info().vocabulary));
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 1.0 : static_cast<double>(part) / static_cast<double>(whole);
}

// `variant` has the logits of the first `count` of `tokens`; those after them are known, too.
Status compare_chunk(KlReport& report, Session& reference, std::span<const int32_t> tokens,
                     size_t count, const Activation& variant) {
  const int64_t start = reference.position();
  const auto row_of = [](const Activation& logits, int64_t row) {
    return std::span<const float>(logits.data + row * logits.columns,
                                  static_cast<size_t>(logits.columns));
  };
  Status rows;
  TRY(reference.prefill_all(tokens.first(count), [&](int64_t first_position, Activation logits) {
    for (int64_t r = 0; rows.ok() && r < logits.rows; ++r) {
      const int64_t index = first_position - start + r;
      rows = add_row(report, row_of(logits, r), row_of(variant, index));
      const auto next = static_cast<size_t>(index) + 1;
      if (rows.ok() && next < tokens.size()) {
        add_loss(report, row_of(logits, r), row_of(variant, index), tokens[next]);
      }
    }
  }));
  return rows;
}

// Tokens of a pass of a generation that drafts as many as it may; 1 where it does not draft.
int64_t rows_of_pass(const Session& session) {
  return std::max<int64_t>(session.plan().shape.verify_rows, 1);
}

// The logits after each token, run in passes of a generation.
Result<std::vector<float>> generate_rows(Session& session, std::span<const int32_t> tokens) {
  std::vector<float> rows;
  const auto add = [&](std::span<const float> row) {
    rows.insert(rows.end(), row.begin(), row.end());
  };
  while (!tokens.empty()) {
    const size_t count = std::min(static_cast<size_t>(rows_of_pass(session)), tokens.size());
    if (count == 1) {
      TRY_ASSIGN(const std::span<const float> logits, session.decode(tokens[0]));
      add(logits);
    } else {
      TRY_ASSIGN(const Activation logits, session.verify(tokens.first(count)));
      add({logits.data, static_cast<size_t>(logits.rows * logits.columns)});
    }
    tokens = tokens.subspan(count);
  }
  return rows;
}

}  // namespace

double KlReport::top1_agreement() const {
  return share(top1_equal, tokens);
}

double KlReport::decisive_agreement() const {
  return share(decisive_equal, decisive);
}

double row_kl(std::span<const float> reference, std::span<const float> variant) {
  RECKON_CHECK(reference.size() == variant.size() && !reference.empty());
  const double reference_sum = log_sum_exp(reference);
  const double variant_sum = log_sum_exp(variant);
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double log_p = static_cast<double>(reference[i]) - reference_sum;
    const double log_q = static_cast<double>(variant[i]) - variant_sum;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return std::max(kl, 0.0);  // rounding may leave a tiny negative sum
}

Result<KlReport> compare_kl(Session& reference, Session& variant, std::span<const int32_t> tokens) {
  TRY(check_vocabularies(reference, variant));
  KlReport report;
  const auto chunk = static_cast<size_t>(variant.plan().shape.chunk);
  while (!tokens.empty()) {
    const std::span<const int32_t> piece = tokens.first(std::min(chunk, tokens.size()));
    Status compared;
    TRY(variant.prefill_all(piece, [&](int64_t, Activation logits) {
      compared = compare_chunk(report, reference, tokens, piece.size(), logits);
    }));
    TRY(compared);
    tokens = tokens.subspan(piece.size());
  }
  return report;
}

Status compare_kl_decode(Session& reference, Session& variant, std::span<const int32_t> tokens,
                         KlReport& report) {
  TRY(check_vocabularies(reference, variant));
  const auto vocabulary = static_cast<size_t>(reference.model().info().vocabulary);
  const size_t block =
      static_cast<size_t>(std::max(rows_of_pass(reference), rows_of_pass(variant)));
  while (!tokens.empty()) {
    const std::span<const int32_t> piece = tokens.first(std::min(block, tokens.size()));
    TRY_ASSIGN(const std::vector<float> expected, generate_rows(reference, piece));
    TRY_ASSIGN(const std::vector<float> got, generate_rows(variant, piece));
    for (size_t r = 0; r < piece.size(); ++r) {
      TRY(add_row(report, std::span(expected).subspan(r * vocabulary, vocabulary),
                  std::span(got).subspan(r * vocabulary, vocabulary)));
    }
    tokens = tokens.subspan(piece.size());
  }
  return {};
}

}  // namespace reckon::engine
