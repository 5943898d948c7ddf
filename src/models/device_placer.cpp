#include "models/device_placer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "models/first_error.h"

namespace reckon::models {
namespace {

constexpr uint64_t kStageBytes = uint64_t{64} << 20;
constexpr int64_t kTaskValues = int64_t{1} << 18;  // weights of one task, about

// Sends one weight after another.
class Sender {
 public:
  Sender(const kernels::WeightLoader& loader, kernels::WeightUpload& upload, ThreadPool& pool)
      : loader_(loader), upload_(upload), pool_(pool) {}

  [[nodiscard]] Status send(const PlacedWeight& weight, char* destination) {
    const bool matrix = weight.role != WeightRole::kVector;
    const int64_t strip_rows = matrix ? loader_.strip_rows() : 1;
    const uint64_t strip_bytes =
        matrix ? loader_.strip_bytes(weight.placed.type, weight.placed.k)
               : static_cast<uint64_t>(row_bytes(weight.placed.type, weight.placed.k));
    const auto stage_strips =
        static_cast<int64_t>(std::max<uint64_t>(1, kStageBytes / strip_bytes));
    for (int64_t row = 0; row < weight.stored.n; row += stage_strips * strip_rows) {
      const int64_t rows = std::min(stage_strips * strip_rows, weight.stored.n - row);
      TRY_ASSIGN(void* stage, upload_.stage());
      TRY(fill(weight, row, rows, strip_rows, strip_bytes, static_cast<char*>(stage)));
      const uint64_t bytes =
          static_cast<uint64_t>((rows + strip_rows - 1) / strip_rows) * strip_bytes;
      TRY(upload_.send(destination, bytes));
      destination += bytes;
    }
    return {};
  }

 private:
  [[nodiscard]] Status fill(const PlacedWeight& weight, int64_t first, int64_t count,
                            int64_t strip_rows, uint64_t strip_bytes, char* stage) {
    const DType type = weight.placed.type;
    const int64_t k = weight.placed.k;
    const int64_t task_rows = std::max<int64_t>(1, kTaskValues / k / strip_rows) * strip_rows;
    FirstError errors;
    pool_.parallel_for((count + task_rows - 1) / task_rows, [&](int64_t task) {
      const int64_t from = task * task_rows;
      const int64_t rows = std::min(task_rows, count - from);
      char* out = stage + static_cast<uint64_t>(from / strip_rows) * strip_bytes;
      std::vector<char> converted(static_cast<size_t>(rows * row_bytes(type, k)));
      Status made = weight.rows->rows(first + from, rows, type, converted.data());
      if (!made.ok()) {
        errors.add(task, std::move(made));
      } else if (weight.role == WeightRole::kVector) {
        std::copy(converted.begin(), converted.end(), out);
      } else {
        loader_.lay_out(type, converted.data(), rows, k, out);
      }
    });
    return errors.take();
  }

  const kernels::WeightLoader& loader_;
  kernels::WeightUpload& upload_;
  ThreadPool& pool_;
};

}  // namespace

Result<WeightPlacer::Place> DevicePlacer::place(const std::string& name, WeightRole role,
                                                const Weight& stored, int64_t /*experts*/) const {
  if (role == WeightRole::kVector) {
    const auto bytes = static_cast<uint64_t>(stored.n * row_bytes(DType::kF32, stored.k));
    return Place{DType::kF32, arena_rounded(bytes)};
  }
  const DType wanted = scheme_.type_of(name).value_or(stored.type);
  const std::optional<DType> kept = loader_.kept_as(wanted);
  if (!kept) {
    return failed(fmt::format("tensor '{}' is {}; this device has no kernels for it", name,
                              dtype_name(wanted)));
  }
  return Place{*kept, arena_rounded(loader_.matrix_bytes(*kept, stored.n, stored.k)),
               *kept != wanted};
}

Status DevicePlacer::fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) {
  uint64_t own_bytes = 0;
  uint64_t total = 0;
  uint64_t stage_bytes = kStageBytes;
  for (const PlacedWeight& weight : weights) {
    own_bytes += weight.bytes;
    total += static_cast<uint64_t>(weight.stored.bytes());
    const uint64_t one_strip = weight.role == WeightRole::kVector
                                   ? weight.bytes
                                   : loader_.strip_bytes(weight.placed.type, weight.placed.k);
    stage_bytes = std::max(stage_bytes, one_strip);
  }
  if (own_bytes == 0) return {};
  TRY_ASSIGN(void* memory, memory_.allocate(MemoryTag::kWeights, "weights", own_bytes));
  TRY_ASSIGN(const auto upload, loader_.begin(stage_bytes));
  ThreadPool pool(options.threads);
  Sender sender(loader_, *upload, pool);
  auto* next = static_cast<char*>(memory);
  uint64_t done = 0;
  for (PlacedWeight& weight : weights) {
    if (const Status sent = sender.send(weight, next); !sent.ok()) {
      Error error = sent.error();
      error.message = fmt::format("tensor '{}', {}", weight.name, error.message);
      return error;
    }
    weight.placed.data = next;
    next += weight.bytes;
    done += static_cast<uint64_t>(weight.stored.bytes());
    if (options.progress) options.progress(done, total);
  }
  return upload->finish();
}

}  // namespace reckon::models
