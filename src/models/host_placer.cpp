#include "models/host_placer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/native_types.h"
#include "kernels/panels.h"
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

// The panels of the weight's rows, to `out`. Pages of a file that were read for this alone may go
// first when memory is short; advice only.
void lay_out(const PlacedWeight& weight, char* out, ThreadPool& pool) {
  const Weight& placed = weight.placed;
  const auto* rows = static_cast<const char*>(placed.data);
  const int64_t stride = row_bytes(placed.type, placed.k);
  const int64_t task_panels =
      std::max<int64_t>(1, kTaskValues / (placed.k * kernels::kPanelHeight));
  const int64_t task_rows = task_panels * kernels::kPanelHeight;
  const auto task_bytes =
      static_cast<int64_t>(kernels::panel_bytes(placed.type, task_rows, placed.k));
  pool.parallel_for((placed.n + task_rows - 1) / task_rows, [&](int64_t task) {
    const int64_t first = task * task_rows;
    kernels::lay_out_panels(placed.type, rows + first * stride,
                            std::min(task_rows, placed.n - first), placed.k,
                            out + task * task_bytes);
  });
  if (weight.role != WeightRole::kMatrix) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(rows) + page - 1) / page * page;
  const uintptr_t end =
      (reinterpret_cast<uintptr_t>(rows) + static_cast<uintptr_t>(placed.n * stride)) / page * page;
  if (first < end) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_COLD);
}

bool takes_work(const PlacedWeight& weight) {
  return is_moved(weight) || weight.panel_bytes > 0;
}

}  // namespace

Result<WeightPlacer::Place> HostPlacer::place(const std::string& name, WeightRole role,
                                              const Weight& stored) const {
  DType wanted = stored.type;
  std::optional<DType> type = DType::kF32;
  if (role != WeightRole::kVector) {
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
  Place place{.type = *type,
              .bytes = is_moved(stored, *type) ? arena_rounded(bytes) : bytes,
              .converted = role != WeightRole::kVector && *type != wanted};
  const bool multiplied = role == WeightRole::kMatrix || role == WeightRole::kTiedEmbedding;
  if (multiplied && *type == stored.type &&
      kernels::reads_panels(backend_, *type, stored.n, stored.k)) {
    place.panel_bytes = arena_rounded(kernels::panel_bytes(*type, stored.n, stored.k));
    // The rows of a matrix are read no more, and their pages are the file's.
    const bool keeps_rows = role == WeightRole::kTiedEmbedding || stored.data == nullptr;
    place.bytes = place.panel_bytes + (keeps_rows ? place.bytes : 0);
  }
  return place;
}

Status HostPlacer::fill_rows(PlacedWeight& weight, char*& next, ThreadPool& pool) {
  if (!is_moved(weight)) {
    weight.placed.data = weight.stored.data;
    return {};
  }
  const Status converted = convert(weight, next, pool);
  if (!converted.ok()) {
    return failed(fmt::format("tensor '{}', {}", weight.name, converted.error().message));
  }
  weight.placed.data = next;
  next += weight.bytes - weight.panel_bytes;
  return {};
}

Status HostPlacer::fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) {
  uint64_t own_bytes = 0;
  uint64_t total = 0;
  for (const PlacedWeight& weight : weights) {
    own_bytes += is_moved(weight) ? weight.bytes : weight.panel_bytes;
    if (takes_work(weight)) total += static_cast<uint64_t>(weight.stored.bytes());
  }
  char* next = nullptr;
  if (own_bytes > 0) {
    TRY_ASSIGN(void* memory, memory_.allocate(MemoryTag::kWeights, "loaded weights", own_bytes));
    next = static_cast<char*>(memory);
    advise_large_pages(next, own_bytes);
  }
  ThreadPool pool(own_bytes > 0 ? options.threads : 1);
  uint64_t done = 0;
  for (PlacedWeight& weight : weights) {
    Status filled = fill_rows(weight, next, pool);
    if (!filled.ok()) {
      memory_.release(MemoryTag::kWeights);
      return filled;
    }
    if (weight.panel_bytes > 0) {
      lay_out(weight, next, pool);
      weight.placed.panels = next;
      next += weight.panel_bytes;
    }
    if (!takes_work(weight)) continue;
    done += static_cast<uint64_t>(weight.stored.bytes());
    if (options.progress) options.progress(done, total);
  }
  return {};
}

}  // namespace reckon::models
