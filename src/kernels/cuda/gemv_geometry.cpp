#include "kernels/cuda/gemv_geometry.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace reckon::kernels::cuda {
namespace {

constexpr int kMinSlots = 2, kMaxSlots = 16, kMaxStageTiles = 8;
constexpr int64_t kReservedBytes = 1024;  // of shared memory, by the runtime, a block

int widest_cluster(const GemvDevice& device) {
  return device.compute_capability >= 90 ? 8 : 1;
}

// The most stages in flight that leave room for `rows` rows of x in `budget` bytes; 0: none do.
int slots_that_fit(TileType type, int rows, int slice, int stage_tiles, int64_t budget,
                   int wanted) {
  if (int64_t{slice} * 128 * rows > budget) return 0;  // before anything overflows
  for (int slots = wanted; slots >= kMinSlots; --slots) {
    if (gemv_shared(type, rows, slice, stage_tiles, slots).bytes <= budget) return slots;
  }
  return 0;
}

// What was asked for, or else a wider cluster, then fewer resident blocks, then fewer rows a pass.
// False: none fits. `geometry` has its stages and `tuning.stage_tiles` belongs to them.
bool place(const GemvDevice& device, TileType type, int64_t rows, int tiles, int64_t units,
           const GemvTuning& tuning, GemvGeometry* geometry) {
  const int stage_tiles = tuning.stage_tiles;
  int slab_rows = static_cast<int>(std::min<int64_t>(rows, kGemvSlabRows));
  for (; slab_rows >= 1; slab_rows = slab_rows > 1 ? (slab_rows + 1) / 2 : 0) {
    for (int blocks = std::clamp(tuning.blocks_per_sm, 1, GemvDevice::kMaxBlocks); blocks >= 1;
         --blocks) {
      for (int cluster = std::clamp(tuning.cluster, 1, widest_cluster(device));
           cluster <= widest_cluster(device); cluster *= 2) {
        const int slice = widest_slice(cluster, tiles);
        const int slots =
            slots_that_fit(type, slab_rows, slice, stage_tiles, block_share(device, blocks),
                           std::clamp(tuning.slots, kMinSlots, kMaxSlots));
        const int64_t clusters =
            device.resident_clusters[std::countr_zero(static_cast<unsigned>(cluster))][blocks - 1];
        if (slots == 0 || clusters == 0) continue;
        geometry->fits = true;
        geometry->tuning = {cluster, blocks, stage_tiles, slots,
                            std::clamp(tuning.early_slots, 1, slots)};
        geometry->slab_rows = slab_rows;
        geometry->shared = gemv_shared(type, slab_rows, slice, stage_tiles, slots);
        const int64_t batches = (units + cluster - 1) / cluster;
        geometry->blocks = static_cast<int>(std::min(batches, clusters)) * cluster;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

int64_t block_share(const GemvDevice& device, int blocks) {
  return std::min(device.block_shared_bytes, device.device_shared_bytes / blocks - kReservedBytes);
}

GemvGeometry gemv_geometry(const GemvDevice& device, TileType type, int64_t rows, int64_t k,
                           int64_t units, const GemvTuning& tuning) {
  GemvGeometry geometry;
  const int tiles = static_cast<int>(tiles_of(k));
  const int segment = widest_segment(tiles);
  // Smaller stages come last: only where K is so long that not even one row fits beside larger.
  for (int most = std::clamp(tuning.stage_tiles, 1, kMaxStageTiles); most >= 1; most /= 2) {
    GemvTuning wanted = tuning;
    geometry.stages = (segment + most - 1) / most;
    wanted.stage_tiles = (segment + geometry.stages - 1) / geometry.stages;
    if (place(device, type, rows, tiles, units, wanted, &geometry)) break;
  }
  return geometry;
}

namespace {

// Batches of strips that the busiest cluster computes; INT64_MAX where the tuning does not fit.
int64_t rounds(const GemvDevice& device, TileType type, int64_t rows, int64_t k, int64_t units,
               const GemvTuning& tuning) {
  const GemvGeometry geometry = gemv_geometry(device, type, rows, k, units, tuning);
  const bool alike = geometry.fits && geometry.tuning.cluster == tuning.cluster &&
                     geometry.tuning.blocks_per_sm == tuning.blocks_per_sm &&
                     geometry.tuning.slots + 1 >= tuning.slots;
  return alike ? (units + geometry.blocks - 1) / geometry.blocks : INT64_MAX;
}

// Of p4, a ring of one block a multiprocessor: 110 KB for all eight, so that attention, or a block
// of a matmul that has two a multiprocessor, fits beside it and starts while this one ends.
constexpr int kTilesInFlight = 24;
// Up to so many columns of x, a block reads all of it or shares it with one other; of more, with
// three.
constexpr int64_t kShortX = 4096;
// Up to so many rows, a warp of p4 takes one strip at a time, beyond two: one block a
// multiprocessor keeps it busy then.
constexpr int64_t kFewRows = 8;
// Where the strips are few, one block a multiprocessor always.
constexpr int64_t kFewRounds = 3;

// p4 with one block a multiprocessor: the tiles of a segment in equal stages.
GemvTuning one_block_p4(const GemvDevice& device, int64_t rows, int64_t k, int64_t units) {
  const bool clusters = device.compute_capability >= 90;
  const int most = rows == 1 ? 8 : 6;
  const int segment = widest_segment(static_cast<int>(tiles_of(k)));
  const int stages = (segment + most - 1) / most;
  const int stage = std::clamp((segment + stages - 1) / stages, 4, most);
  if (rows == 1) {
    const bool alone = k <= kShortX && units <= 2 * device.multiprocessors;
    const int cluster = !clusters || alone ? 1 : k <= kShortX ? 2 : 4;
    return {cluster, 1, stage, kTilesInFlight / stage};
  }
  if (rows > kFewRows) {
    const GemvTuning long_stages{clusters ? 8 : 1, 1, 6, 3, 1};
    const int slab = gemv_geometry(device, TileType::kP4, rows, k, units, long_stages).slab_rows;
    if (slab == std::min<int64_t>(rows, kGemvSlabRows)) return long_stages;
    return {clusters ? 8 : 1, 1, 3, 3, 1};
  }
  return {clusters ? 8 : 1, 1, 6, kTilesInFlight / stage, 2};
}

}  // namespace

// Measured on an H200 (132 multiprocessors, CUDA 13.0, 2026-11-30): 34816x5120, 5120x17408,
// 16384x5120 and 5120x6144 at 1, 4, 8 and 16 rows, overlapped, clusters of 4 and 8 x {1, 2} blocks
// x 2 ... 7 tiles x 2 ... 6 slots (gemv_bench sweep); early slots for the best of those alone. At
// one row it is what whole decode steps of llama-8b are fastest with, which is not what each matrix
// alone is: docs/performance-gpu.md.
// - One row: clusters of 2 use every multiprocessor; 4 run on 120 of them, and read less of
//   a long x. Blocks by themselves need not wait until two neighbours have room: 4096x4096, which
//   comes behind attention.
// - More rows: clusters of 8, each block then reads and converts an eighth of x.
// - Two blocks a multiprocessor are faster by up to 20% where there are several rounds of strips,
//   but a round of theirs is twice as many strips.
// - Of p4, the last copies of the first fill wait for x where blocks come two a multiprocessor or
//   rows are several: up to 6% faster. At one row and one block it is up to 5% slower.
// - p4 with more than 8 rows, p8 with several, f16 and bf16: one block, whatever the shape.
GemvTuning gemv_tuning(const GemvDevice& device, TileType type, int64_t rows, int64_t k,
                       int64_t units) {
  const bool clusters = device.compute_capability >= 90;
  const int cluster = !clusters ? 1 : rows == 1 ? 2 : 8;
  if (type == TileType::kF16 || type == TileType::kBf16) return {cluster, 1, 2, 4};
  const bool p4 = type == TileType::kP4;
  if (!p4 && rows > 1) return {cluster, 1, 4, 4};
  const GemvTuning one = p4 ? one_block_p4(device, rows, k, units) : GemvTuning{cluster, 1, 4, 4};
  if (p4 && rows > kFewRows) return one;
  const GemvTuning two = p4 ? GemvTuning{cluster, 2, 4, 4, 3} : GemvTuning{cluster, 2, 2, 5};
  const int64_t rounds_of_one = rounds(device, type, rows, k, units, one);
  const int64_t rounds_of_two = rounds(device, type, rows, k, units, two);
  if (rounds_of_two == INT64_MAX) return one;
  if (rounds_of_one == INT64_MAX) return two;
  const bool few = p4 && rows == 1 && rounds_of_one <= kFewRounds;
  return few || rounds_of_one * 10 <= rounds_of_two * 17 ? one : two;
}

bool gemv_supports(const GemvDevice& device, TileType type, int64_t k) {
  if (type == TileType::kF32 || k <= 0) return false;
  const GemvTuning tuning = gemv_tuning(device, type, 1, k, 1);
  return gemv_geometry(device, type, 1, k, 1, tuning).fits;
}

}  // namespace reckon::kernels::cuda
