#include "models/host_placer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/native_types.h"
#include "models/first_error.h"
#include "models/nearest_type.h"

namespace reckon::models {
namespace {

constexpr int64_t kTaskValues = int64_t{1} << 16;  // weights of one task, about
constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

// Whether a weight of this type gets memory of its own.
bool is_moved(const Weight& stored, DType type) {
  return stored.data == nullptr || type != stored.type;
}

bool is_moved(const PlacedWeight& weight) {
  return is_moved(weight.stored, weight.placed.type);
}

// Asks for large pages before the memory is touched. A decode step streams all of it, and through
// small pages one core reads a third less (see matmul_common_avx2.h). Advice only.
void advise_large_pages(char* memory, uint64_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (address + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (first < end) (void)madvise(memory + (first - address), end - first, MADV_HUGEPAGE);
}

// Writes the whole weight to `out`; the error of its first bad row otherwise.
Status convert(const PlacedWeight& weight, char* out, ThreadPool& pool) {
  const Weight& placed = weight.placed;
  const int64_t stride = row_bytes(placed.type, placed.k);
  const int64_t task_rows = std::max<int64_t>(1, kTaskValues / placed.k);
  FirstError errors;
  pool.parallel_for((placed.n + task_rows - 1) / task_rows, [&](int64_t task) {
    const int64_t first = task * task_rows;
    const int64_t count = std::min(task_rows, placed.n - first);
    errors.add(task, weight.rows->rows(first, count, placed.type, out + first * stride));
  });
  return errors.take();
}

}  // namespace

Result<WeightPlacer::Place> HostPlacer::place(const std::string& name, WeightRole role,
                                              const Weight& stored) const {
  DType wanted = stored.type;
  std::optional<DType> type = DType::kF32;
  if (role == WeightRole::kMatrix || role == WeightRole::kEmbedding) {
    wanted = scheme_.type_of(name).value_or(stored.type);
    type = nearest_type(wanted, [&](DType candidate) {
      return (pads_rows(candidate) || stored.k % block_elements(candidate) == 0) &&
             kernels::has_matmul(backend_, candidate, stored.n, stored.k);
    });
  }
  if (!type) {
    return failed(fmt::format("tensor '{}' is {}; this device has no kernels for it", name,
                              dtype_name(wanted)));
  }
  const auto bytes = static_cast<uint64_t>(stored.n * row_bytes(*type, stored.k));
  return Place{*type, is_moved(stored, *type) ? arena_rounded(bytes) : bytes,
               role != WeightRole::kVector && *type != wanted};
}

Status HostPlacer::fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) {
  uint64_t own_bytes = 0;
  uint64_t total = 0;
  for (PlacedWeight& weight : weights) {
    if (is_moved(weight)) {
      own_bytes += weight.bytes;
      total += static_cast<uint64_t>(weight.stored.bytes());
    } else {
      weight.placed.data = weight.stored.data;
    }
  }
  if (own_bytes == 0) return {};
  TRY_ASSIGN(void* memory, memory_.allocate(MemoryTag::kWeights, "loaded weights", own_bytes));
  auto* next = static_cast<char*>(memory);
  advise_large_pages(next, own_bytes);
  ThreadPool pool(options.threads);
  uint64_t done = 0;
  for (PlacedWeight& weight : weights) {
    if (!is_moved(weight)) continue;
    const Status converted = convert(weight, next, pool);
    if (!converted.ok()) {
      memory_.release(MemoryTag::kWeights);
      return failed(fmt::format("tensor '{}', {}", weight.name, converted.error().message));
    }
    weight.placed.data = next;
    next += weight.bytes;
    done += static_cast<uint64_t>(weight.stored.bytes());
    if (options.progress) options.progress(done, total);
  }
  return {};
}

}  // namespace reckon::models
