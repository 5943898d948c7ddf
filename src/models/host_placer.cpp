#include "models/host_placer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/quantise.h"

namespace reckon::models {
namespace {

constexpr int64_t kTaskValues = int64_t{1} << 16;  // weights of one task, about
constexpr uintptr_t kHugePage = uintptr_t{2} << 20;

// Whether the weight gets memory of its own.
bool is_moved(const PlacedWeight& weight) {
  return weight.placed.type != weight.stored.type;
}

// Asks for large pages before the memory is touched. A decode step streams all of it, and through
// small pages one core reads a third less (see matmul_common_avx2.h). Advice only.
void advise_large_pages(char* memory, uint64_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (address + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  if (first < end) (void)madvise(memory + (first - address), end - first, MADV_HUGEPAGE);
}

// Writes the whole weight to `out`. Gives the first row that its type cannot hold, or -1.
int64_t convert(const PlacedWeight& weight, char* out, ThreadPool& pool) {
  const Weight& from = weight.stored;
  const DType type = weight.placed.type;
  const int64_t from_stride = row_bytes(from.type, from.k);
  const int64_t to_stride = row_bytes(type, from.k);
  const int64_t task_rows = std::max<int64_t>(1, kTaskValues / from.k);
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> first_bad{kNone};
  pool.parallel_for((from.n + task_rows - 1) / task_rows, [&](int64_t task) {
    std::vector<float> row(static_cast<size_t>(from.k));
    const int64_t end = std::min((task + 1) * task_rows, from.n);
    for (int64_t j = task * task_rows; j < end; ++j) {
      const char* stored = static_cast<const char*>(from.data) + j * from_stride;
      dequantize_row(from.type, stored, from.k, row.data());
      char* to = out + j * to_stride;
      if (type == DType::kF32) {
        std::memcpy(to, row.data(), row.size() * sizeof(float));
      } else if (!quantise_row(type, row.data(), from.k, to)) {
        int64_t known = first_bad.load();
        while (j < known && !first_bad.compare_exchange_weak(known, j)) {
        }
        return;
      }
    }
  });
  const int64_t bad = first_bad.load();
  return bad == kNone ? -1 : bad;
}

}  // namespace

Result<WeightPlacer::Place> HostPlacer::place(const std::string& name, WeightRole role,
                                              const Weight& stored) const {
  DType type = stored.type;
  if (role == WeightRole::kVector) {
    type = DType::kF32;
  } else if (const auto packed = scheme_.type_of(name)) {
    type = *packed;
  }
  const auto bytes = static_cast<uint64_t>(stored.n * row_bytes(type, stored.k));
  return Place{type, type == stored.type ? bytes : arena_rounded(bytes)};
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
  TRY_ASSIGN(void* memory, memory_.allocate(MemoryTag::kWeights, "converted weights", own_bytes));
  auto* next = static_cast<char*>(memory);
  advise_large_pages(next, own_bytes);
  ThreadPool pool(options.threads);
  uint64_t done = 0;
  for (PlacedWeight& weight : weights) {
    if (!is_moved(weight)) continue;
    const int64_t bad_row = convert(weight, next, pool);
    if (bad_row >= 0) {
      memory_.release(MemoryTag::kWeights);
      return failed(
          fmt::format("tensor '{}', row {}: holds a weight that is not finite or too large for {}",
                      weight.name, bad_row, dtype_name(weight.placed.type)));
    }
    weight.placed.data = next;
    next += weight.bytes;
    done += static_cast<uint64_t>(weight.stored.bytes());
    if (options.progress) options.progress(done, total);
  }
  return {};
}

}  // namespace reckon::models
