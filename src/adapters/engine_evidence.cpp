// What the plan and the machine's bounds say about an arm's result.
#include <fmt/format.h>

#include <array>

#include "adapters/engine_runner.h"
#include "base/bytes.h"
#include "engine/cost.h"

namespace reckon::adapters {
namespace {

using experiment::EvidenceRow;

constexpr uint64_t kCpuBufferBytes = uint64_t{512}
                                     << 20;  // more than caches hold, less than memory
constexpr int kRepetitions = 3;

std::string scaled(double value, const char* unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, kPrefixes[prefix], unit);
}

// Tokens a second that the metric comes to; 0 for a metric that is no speed.
double tokens_per_second(const std::string& metric, double value, int64_t tokens) {
  if (metric == "decode_tok_per_s" || metric == "prefill_tok_per_s") return value;
  if (metric == "ms_per_token") return 1000 / value;
  if (metric == "prefill_ms") return 1000 * static_cast<double>(tokens) / value;
  return 0;
}

EvidenceRow share_row(const char* name, double rate, const kernels::Bound& bound,
                      const char* unit) {
  return {name, fmt::format("{:.0f}% of {} ({})", 100 * rate / bound.value, bound.name,
                            scaled(bound.value, unit))};
}

}  // namespace

Result<std::span<const kernels::Bound>> EngineRunner::bounds_for(const Bound& bound) {
  kernels::Backend& backend = bound.model->backend();
  kernels::BoundsOptions options;
  options.threads = planner_for(bound).threads();
  options.repetitions = kRepetitions;
  const bool cpu = backend.device().backend == "cpu";
  if (cpu) options.buffer_bytes = kCpuBufferBytes;
  const std::string key = fmt::format("{} {}", backend.device().backend, options.threads);
  if (!bounds_.contains(key)) {
    TRY_ASSIGN(bounds_[key], backend.measure_bounds(options));
  }
  return std::span<const kernels::Bound>(bounds_[key]);
}

Result<std::vector<EvidenceRow>> EngineRunner::evidence(const experiment::Workload& workload,
                                                        const experiment::Arm& arm, double value) {
  TRY_ASSIGN(const Bound bound, bind(workload, arm));
  kernels::Planner planner = planner_for(bound);
  const models::Model& model = bound.model->model();
  TRY_ASSIGN(const engine::SessionShape shape, engine::resolve_shape(model, planner, bound.shape));
  const bool prefill = workload.phase == "prefill";
  const auto prompt = static_cast<int64_t>(bound.prompt.size());
  const int64_t tokens = prefill ? prompt : workload.generate_tokens - 1;
  std::vector<EvidenceRow> rows;
  if (tokens > 0) {
    TRY_ASSIGN(const kernels::Cost cost,
               prefill ? engine::prefill_cost(model, planner, shape, 0, tokens)
                       : engine::decode_cost(model, planner, shape, prompt, tokens));
    const auto count = static_cast<double>(tokens);
    const double bytes = static_cast<double>(cost.bytes) / count;
    const double operations = static_cast<double>(cost.operations) / count;
    rows.push_back({"bytes moved a token, at least", scaled(bytes, "B")});
    rows.push_back({"operations a token, at least", scaled(operations, "op")});
    const double rate = tokens_per_second(workload.metric, value, tokens);
    if (rate > 0) {
      TRY_ASSIGN(const std::span<const kernels::Bound> bounds, bounds_for(bound));
      if (const auto* read = kernels::best_bound(bounds, kernels::BoundKind::kRead)) {
        rows.push_back(share_row("share of the memory bound", bytes * rate, *read, "B/s"));
      }
      if (const auto* most = kernels::best_bound(bounds, kernels::BoundKind::kMultiply)) {
        rows.push_back(share_row("share of the compute bound", operations * rate, *most, "op/s"));
      }
    }
  }
  engine::PassKinds passes;
  passes.prefill_rows = engine::chunk_rows(prompt, planner.prefill_chunk());
  passes.decode = workload.generate_tokens > 1;
  passes.pick = workload.generate_tokens > 0;
  TRY_ASSIGN(const engine::SessionPlan plan,
             engine::plan_session(model, planner, bound.shape, passes, bound.model->backend()));
  uint64_t scratch = 0;
  for (const MemoryTerm& term : plan.terms) {
    if (term.tag == MemoryTag::kScratch) scratch += term.bytes;
  }
  rows.push_back({"scratch", format_bytes(scratch)});
  return rows;
}

}  // namespace reckon::adapters
