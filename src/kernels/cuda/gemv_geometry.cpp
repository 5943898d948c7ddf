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

}  // namespace

int64_t block_share(const GemvDevice& device, int blocks) {
  return std::min(device.block_shared_bytes, device.device_shared_bytes / blocks - kReservedBytes);
}

GemvGeometry gemv_geometry(const GemvDevice& device, TileType type, int64_t rows, int64_t k,
                           int64_t units, const GemvTuning& tuning) {
  GemvGeometry geometry;
  const int tiles = static_cast<int>(tiles_of(k));
  const int segment = widest_segment(tiles);
  const int wanted_tiles = std::clamp(tuning.stage_tiles, 1, kMaxStageTiles);
  geometry.stages = (segment + wanted_tiles - 1) / wanted_tiles;
  const int stage_tiles = (segment + geometry.stages - 1) / geometry.stages;
  int slab_rows = static_cast<int>(std::min<int64_t>(rows, kGemvSlabRows));
  // What was asked for, then a wider cluster, then fewer resident blocks, then fewer rows a pass.
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
        geometry.fits = true;
        geometry.tuning = {cluster, blocks, stage_tiles, slots};
        geometry.slab_rows = slab_rows;
        geometry.shared = gemv_shared(type, slab_rows, slice, stage_tiles, slots);
        const int64_t batches = (units + cluster - 1) / cluster;
        geometry.blocks = static_cast<int>(std::min(batches, clusters)) * cluster;
        return geometry;
      }
    }
  }
  return geometry;
}

bool gemv_supports(const GemvDevice& device, TileType type, int64_t k) {
  return type != TileType::kF32 && k > 0 && gemv_geometry(device, type, 1, k, 1, GemvTuning{}).fits;
}

// Measured on an H200 (132 multiprocessors, CUDA 13.0, 2026-11-29), p4, 34816x5120, 5120x17408,
// 16384x5120 and 5120x6144 at 1, 4, 8 and 16 rows, every cluster x {1, 2} blocks x 2 ... 8 tiles x
// 2 ... 8 slots, serial and overlapped. With one row of x and K up to about 8192 every block holds
// all of x; otherwise the widest cluster wins, since each block then reads and converts an eighth.
// Within 10% of the best geometry on each of those points. Other types: same bytes a stage.
GemvTuning gemv_tuning(const GemvDevice& device, TileType type, GemvForm form, int64_t rows,
                       int64_t k, int64_t units) {
  (void)form;  // a SwiGLU pair only doubles the work of each unit
  constexpr int64_t kLongK = 8192;
  constexpr int64_t kBytesOfTile = tile_bytes(TileType::kP4);
  GemvTuning wanted;
  wanted.cluster = device.compute_capability < 90 || (rows == 1 && k <= kLongK) ? 1 : 8;
  if (rows > 4 && k > kLongK) {
    wanted.blocks_per_sm = 1, wanted.stage_tiles = 8, wanted.slots = 4;
  } else if (rows > 1 && k <= kLongK) {
    wanted.blocks_per_sm = 2, wanted.stage_tiles = 5, wanted.slots = 2;
  } else {
    wanted.blocks_per_sm = 2, wanted.stage_tiles = 4, wanted.slots = 3;
  }
  if (type != TileType::kP4) {
    const int64_t stage_bytes = wanted.stage_tiles * kBytesOfTile;
    wanted.stage_tiles = static_cast<int>(std::max<int64_t>(stage_bytes / tile_bytes(type), 1));
    wanted.slots += 1;  // a stage is rounded down
  }
  if (rows > 1) return wanted;  // converting more of x costs more than a round does
  // Few strips: a wide cluster may need a round more than a narrower one (4096x14336: 32 clusters
  // of 8 do not fit an H200 at once, 128 of 2 do). Compared here: strips that the busiest
  // multiprocessor computes. Unmeasured.
  const auto strips_deep = [&](const GemvTuning& tuning) -> int64_t {
    const GemvGeometry geometry = gemv_geometry(device, type, rows, k, units, tuning);
    if (!geometry.fits || geometry.tuning.cluster != tuning.cluster) return INT64_MAX / 4;
    return (units + geometry.blocks - 1) / geometry.blocks * geometry.tuning.blocks_per_sm;
  };
  const int64_t depth = strips_deep(wanted);
  for (GemvTuning other = wanted; other.cluster > 1;) {
    other.cluster /= 2;
    if (strips_deep(other) * 4 <= depth * 3) return other;
  }
  return wanted;
}

}  // namespace reckon::kernels::cuda
