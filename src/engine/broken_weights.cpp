#include "engine/broken_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "models/first_error.h"

namespace reckon::engine {
namespace {

constexpr int64_t kTaskValues = int64_t{1} << 18;

Status check_rows(const RowSource& source, int64_t first, int64_t count, int64_t k) {
  std::vector<float> values(static_cast<size_t>(count * k));
  TRY(source.rows(first, count, DType::kF32, values.data()));
  const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  if (bad == values.end()) return {};
  return failed(fmt::format("row {}: holds a weight that is not finite",
                            first + std::distance(values.begin(), bad) / k));
}

Status check_tensor(const RowSource& source, const Weight& weight, ThreadPool& pool) {
  const int64_t rows = std::max<int64_t>(1, kTaskValues / weight.k);
  models::FirstError errors;
  pool.parallel_for((weight.n + rows - 1) / rows, [&](int64_t task) {
    const int64_t first = task * rows;
    errors.add(task, check_rows(source, first, std::min(rows, weight.n - first), weight.k));
  });
  return errors.take();
}

}  // namespace

Error explain_not_finite(const LoadedModel& model, const Error& error) {
  const Checkpoint& checkpoint = model.checkpoint();
  ThreadPool pool(0);
  for (const models::PlacedWeight& weight : model.weights()) {
    const Status checked = check_tensor(*weight.rows, weight.stored, pool);
    if (checked.ok()) continue;
    return failed(fmt::format("{}: tensor '{}', {}", checkpoint.path(), weight.name,
                              checked.error().message));
  }
  return failed(fmt::format("{}: {}", checkpoint.path(), error.message));
}

Result<kernels::Pick> explained(const LoadedModel& model, const Result<kernels::Pick>& pick) {
  if (!pick.ok()) return explain_not_finite(model, pick.error());
  return pick;
}

}  // namespace reckon::engine
