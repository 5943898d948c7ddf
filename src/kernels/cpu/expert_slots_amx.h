// What the fast matmuls of experts share (expert_fast.h): how a task is cut, tiles of rows, and
// sums that become rows of products.
//
// A tile of rows is two blocks of 8 slots, or one: registers then have 8 rows, which halves the
// time of a multiplication.
//
// For files compiled for AMX and AVX-512 BF16 alone; the namespace has no name so that nothing in
// it can be shared with code for another instruction set. Plain types only.
#pragma once

#include "kernels/cpu/expert_fast.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_fast.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kRowBytes = 64;  // of a row of a tile

// Rows of the tile of rows that begins at a slot: 16, or 8 at the end.
inline int64_t height_at(const Job& job, int64_t slot) {
  return smaller(kTileSide, job.slots - slot);
}

// What a task works on.
struct Task {
  int64_t slot, slots;    // of the slot tile
  int64_t panel, panels;  // of the band
  char* weights;          // tiles [panel][tiles of the part]
  char* sums;             // tiles [tile of rows][kExpertBand]
  char* heads;            // of weights in rows: scales and minima [panel][blocks of the part]
  char* products;         // a few tiles
  char* filled;           // of weights in rows: the last panel of a matrix, filled up
};

// Of K.
struct Part {
  int64_t first, tiles;
};

inline Task task_of(const Job& job, int64_t index, int thread) {
  const KernelParams& params = job.args->params;
  const int64_t slot_tiles = divide_up(job.args->rows, params.expert_tile);
  Task task{};
  task.slot = index % slot_tiles * params.expert_tile;
  task.slots = smaller(params.expert_tile, job.slots - task.slot);
  task.panel = index / slot_tiles * kExpertBand;
  task.panels = smaller(kExpertBand, divide_up(job.args->n, kTileSide) - task.panel);
  const ExpertThreadScratch layout =
      expert_thread_scratch(job.args->weight_type, job.args->k, params);
  task.weights = job.weights + static_cast<uint64_t>(thread) * job.weights_stride;
  task.sums = task.weights + layout.sums;
  task.heads = task.weights + layout.heads;
  task.products = task.weights + layout.products;
  task.filled = task.weights + layout.filled;
  return task;
}

// The sums of the slots that rows fill to the rows of the product.
inline void store_rows(const Job& job, const Task& task) {
  const MatmulArgs& args = *job.args;
  const int64_t rows = smaller(task.slots, args.rows - task.slot);
  for (int64_t r = 0; r < rows; ++r) {
    const char* from =
        task.sums + r / kTileSide * kExpertBand * kTileBytes + r % kTileSide * kRowBytes;
    float* out = args.out + (task.slot + r) * args.n;
    for (int64_t p = 0; p < task.panels; ++p) {
      const int64_t column = (task.panel + p) * kTileSide;
      _mm512_mask_storeu_ps(out + column, first_lanes(args.n - column),
                            _mm512_loadu_ps(from + p * kTileBytes));
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cpu
