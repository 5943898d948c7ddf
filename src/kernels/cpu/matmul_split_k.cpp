#include "kernels/cpu/matmul_split_k.h"

#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

// A part of the fast matmul is no shorter than a segment of the exact one.
constexpr int64_t kShortestPart = 512;
constexpr int64_t kMostParts = 4;

SplitKScratch with_sums(uint64_t multiplying, int64_t parts, int64_t rows, int64_t n) {
  const int64_t columns = (n + kPanelLanes - 1) / kPanelLanes * kPanelLanes;
  const uint64_t sums = aligned(parts * rows * columns * static_cast<int64_t>(sizeof(float)));
  return {multiplying, multiplying + sums};
}

}  // namespace

int64_t exact_splits(DType type, int64_t k) {
  return (activation_groups(type, k) + kSegmentGroups - 1) / kSegmentGroups;
}

int64_t fast_splits(int64_t k) {
  const int64_t parts = k / kShortestPart;
  return parts < 1 ? 1 : parts < kMostParts ? parts : kMostParts;
}

SplitKScratch split_k_exact_scratch(DType type, int64_t rows, int64_t n, int64_t k) {
  return with_sums(panel_matmul_scratch(type, rows, k), exact_splits(type, k), rows, n);
}

SplitKScratch split_k_fast_scratch(int64_t rows, int64_t n, int64_t k, int threads) {
  return with_sums(fast_matmul_scratch(rows, n, k, threads).total, fast_splits(k), rows, n);
}

}  // namespace reckon::kernels::cpu
