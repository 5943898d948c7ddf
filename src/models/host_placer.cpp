#include "models/host_placer.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/native_types.h"
#include "kernels/panels.h"
#include "models/first_error.h"
#include "models/nearest_type.h"

namespace reckon::models {
namespace {

constexpr int64_t kTaskValues = int64_t{1} << 16;  // weights of one conversion task, about
// Of one that lays out panels: a few MB, since threads whose pages share a page of the page table
// wait for each other; and of the strips that it does that in, which caches hold.
constexpr int64_t kPanelTaskValues = int64_t{1} << 23;
constexpr int64_t kPanelStripValues = int64_t{1} << 18;
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14
constexpr int kPopulateWrite = 23;

// Whether a weight of this type gets memory of its own.
bool is_moved(const Weight& stored, DType type) {
  return stored.data == nullptr || type != stored.type;
}

bool is_moved(const PlacedWeight& weight) {
  return is_moved(weight.stored, weight.placed.type);
}

bool makes_rows(const PlacedWeight& weight) {
  return is_moved(weight) && !weight.placed.panels_alone;
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

Error of_tensor(const PlacedWeight& weight, const Error& error) {
  return failed(fmt::format("tensor '{}', {}", weight.name, error.message));
}

// The whole pages in a range, as `advice` says; advice only.
void advise(const char* memory, uint64_t bytes, int advice) {
  static const auto kPage = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (address + kPage - 1) / kPage * kPage;
  const uintptr_t end = (address + bytes) / kPage * kPage;
  if (first < end) (void)madvise(reinterpret_cast<void*>(first), end - first, advice);
}

// Some panels of a weight: `count` of its rows.
struct PanelTask {
  const PlacedWeight* weight;
  int64_t first, count;
  char* out;
};

uint64_t panels_of(const Weight& placed, int64_t rows) {
  return kernels::panel_bytes(placed.type, rows, placed.k);
}

uint64_t stored_bytes(const PanelTask& task) {
  return static_cast<uint64_t>(task.count *
                               row_bytes(task.weight->placed.type, task.weight->placed.k));
}

// Rows of whole panels that hold about so many values.
int64_t panel_rows(const Weight& placed, int64_t values) {
  return std::max<int64_t>(1, values / (placed.k * kernels::kPanelHeight)) * kernels::kPanelHeight;
}

// The weight, or the part of it that `task` is, in parts of about so many values.
template <typename Each>
void each_part(const PanelTask& task, int64_t values, const Each& each) {
  const Weight& placed = task.weight->placed;
  const int64_t rows = panel_rows(placed, values);
  for (int64_t first = 0; first < task.count; first += rows) {
    each(PanelTask{task.weight, task.first + first, std::min(rows, task.count - first),
                   task.out + panels_of(placed, first)});
  }
}

// Both sides' pages are had in one go: one by one, their faults take as long as the laying out. The
// file's are not told cold afterwards: MADV_COLD splits large folios of the page cache.
Status lay_out(const PanelTask& task) {
  Status result;
  std::vector<char> made;  // rows that are nowhere in memory
  each_part(task, kPanelStripValues, [&](const PanelTask& strip) {
    const Weight& placed = strip.weight->placed;
    if (placed.panels_alone) {
      made.resize(stored_bytes(strip));
      if (!result.ok()) return;
      result = strip.weight->rows->rows(strip.first, strip.count, placed.type, made.data());
      kernels::lay_out_panels(placed.type, made.data(), strip.count, placed.k, strip.out);
      return;
    }
    const auto* rows =
        static_cast<const char*>(placed.data) + strip.first * row_bytes(placed.type, placed.k);
    advise(rows, stored_bytes(strip), kPopulateRead);
    advise(strip.out, panels_of(placed, strip.count), kPopulateWrite);
    kernels::lay_out_panels(placed.type, rows, strip.count, placed.k, strip.out);
  });
  return result;
}

}  // namespace

Result<WeightPlacer::Place> HostPlacer::place(const std::string& name, WeightRole role,
                                              const Weight& stored, int64_t experts) const {
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
  if (multiplied && kernels::reads_panels(backend_, *type, stored.n, stored.k)) {
    const kernels::LayoutsRead keep = kept(stored, *type, experts);
    const bool keeps_rows = keep.rows || role == WeightRole::kTiedEmbedding;
    if (keep.panels) {
      place.panel_bytes = arena_rounded(kernels::panel_bytes(*type, stored.n, stored.k));
      place.panels_alone = !keeps_rows && is_moved(stored, *type);
    }
    place.bytes = place.panel_bytes + (keeps_rows ? place.bytes : 0);
  }
  return place;
}

kernels::LayoutsRead HostPlacer::kept(const Weight& stored, DType type, int64_t experts) const {
  // A file's rows are read no more, and their pages are the file's.
  if (!is_moved(stored, type)) return {.rows = false, .panels = true};
  // The fast kernel of packed experts multiplies their codes, and reads rows.
  if (experts > 1) return {.rows = true, .panels = false};
  if (keeps_both_) return {.rows = true, .panels = true};
  if (!planner_) return {.rows = true, .panels = false};
  return kernels::layouts_read(*planner_, type, stored.n, stored.k);
}

Status HostPlacer::fill_rows(PlacedWeight& weight, char*& next, ThreadPool& pool) {
  if (weight.placed.panels_alone) return {};
  if (!is_moved(weight)) {
    weight.placed.data = weight.stored.data;
    return {};
  }
  const Status converted = convert(weight, next, pool);
  if (!converted.ok()) return of_tensor(weight, converted.error());
  weight.placed.data = next;
  next += weight.bytes - weight.panel_bytes;
  return {};
}

Status HostPlacer::fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) {
  Status filled = fill_all(weights, options);
  if (!filled.ok()) {
    large_pages_.reset();
    memory_.release(MemoryTag::kWeights);
  }
  return filled;
}

Status HostPlacer::fill_all(std::deque<PlacedWeight>& weights, const LoadOptions& options) {
  uint64_t own_bytes = 0;
  uint64_t total = 0;
  for (const PlacedWeight& weight : weights) {
    own_bytes += is_moved(weight) ? weight.bytes : weight.panel_bytes;
    if (makes_rows(weight)) total += static_cast<uint64_t>(weight.stored.bytes());
    if (weight.panel_bytes > 0) total += static_cast<uint64_t>(weight.placed.bytes());
  }
  char* next = nullptr;
  if (own_bytes > 0) {
    TRY_ASSIGN(void* memory, memory_.allocate(MemoryTag::kWeights, "loaded weights", own_bytes));
    next = static_cast<char*>(memory);
    large_pages_.emplace(memory, own_bytes);
  }
  ThreadPool pool(own_bytes > 0 ? options.threads : 1);
  std::atomic<uint64_t> done = 0;
  const auto add_done = [&](uint64_t bytes, bool reports) {
    const uint64_t now = done.fetch_add(bytes) + bytes;
    if (reports && options.progress) options.progress(now, total);
  };
  const std::thread::id loader = std::this_thread::get_id();
  std::vector<PanelTask> tasks;
  for (PlacedWeight& weight : weights) {
    TRY(fill_rows(weight, next, pool));
    if (makes_rows(weight)) add_done(static_cast<uint64_t>(weight.stored.bytes()), true);
    if (weight.panel_bytes == 0) continue;
    each_part({&weight, 0, weight.placed.n, next}, kPanelTaskValues,
              [&](const PanelTask& task) { tasks.push_back(task); });
    weight.placed.panels = next;
    next += weight.panel_bytes;
  }
  FirstError errors;
  pool.parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const PanelTask& task = tasks[static_cast<size_t>(i)];
    if (const Status laid_out = lay_out(task); !laid_out.ok()) {
      errors.add(i, of_tensor(*task.weight, laid_out.error()));
    }
    add_done(stored_bytes(task), std::this_thread::get_id() == loader);
  });
  TRY(errors.take());
  if (!tasks.empty()) add_done(0, true);
  if (large_pages_) large_pages_->start();
  return {};
}

}  // namespace reckon::models
