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
        geometry->tuning = {cluster, blocks, stage_tiles, slots};
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

// Measured on an H200 (132 multiprocessors, CUDA 13.0, 2026-11-29), p4, 34816x5120, 5120x17408,
// 16384x5120 and 5120x6144 at 1, 4, 8 and 16 rows, overlapped: every cluster x {1, 2} blocks x 2
// ... 7 tiles x 2 ... 6 slots.
// - One row: clusters of 2, which use every multiprocessor; 8 run on 120 of them only.
// - More rows: clusters of 8, each block then reads and converts an eighth of x.
// - Two blocks a multiprocessor are 10 to 15% faster than one at the same number of rounds of
//   strips, but a round of theirs is twice as many strips: one block where that saves more.
// - More than 4 slots do not help: what is in flight delays what the launch waits for, x.
GemvTuning gemv_tuning(const GemvDevice& device, TileType type, GemvForm form, int64_t rows,
                       int64_t k, int64_t units) {
  (void)form;  // a SwiGLU pair only doubles the work of each unit
  const int cluster = device.compute_capability < 90 ? 1 : rows == 1 ? 2 : 8;
  const auto of_type = [&](GemvTuning tuning) {
    if (type == TileType::kP4) return tuning;
    const int64_t bytes = tuning.stage_tiles * tile_bytes(TileType::kP4);
    tuning.stage_tiles = static_cast<int>(std::max<int64_t>(bytes / tile_bytes(type), 1));
    tuning.slots += 1;  // a stage is rounded down
    return tuning;
  };
  const auto rounds = [&](const GemvTuning& tuning) -> int64_t {
    const GemvGeometry geometry = gemv_geometry(device, type, rows, k, units, tuning);
    const bool alike = geometry.fits && geometry.tuning.cluster == tuning.cluster &&
                       geometry.tuning.blocks_per_sm == tuning.blocks_per_sm &&
                       geometry.tuning.slots + 1 >= tuning.slots;
    return alike ? (units + geometry.blocks - 1) / geometry.blocks : INT32_MAX;
  };
  const GemvTuning one = of_type({cluster, 1, 6, rows == 1 ? 6 : 4});
  const GemvTuning two = of_type({cluster, 2, 4, rows == 1 ? 4 : 3});
  return rounds(one) * 10 <= rounds(two) * 17 ? one : two;
}

bool gemv_supports(const GemvDevice& device, TileType type, int64_t k) {
  if (type == TileType::kF32 || k <= 0) return false;
  const GemvTuning tuning = gemv_tuning(device, type, GemvForm::kStore, 1, k, 1);
  return gemv_geometry(device, type, 1, k, 1, tuning).fits;
}

}  // namespace reckon::kernels::cuda
