// hashed with "kernels/cpu/expert_fast.cpp"
// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
// The fast matmuls of experts with AMX tiles (expert_fast.h), weights in panels.
//
// A task takes a slot tile and a band of panels of an expert's matrix. For each part of K
// (kPartTiles) it unpacks the band's weights to tiles of bfloat16, then passes the slots over them,
// 32 at a time: two tiles of rows by two panels, so that 4 loads of tiles feed 4 multiplications,
// or one tile of rows by four panels where no more are filled.
//
// Activations lie as [parts of K][tiles of rows][tiles of the part][rows of the tile][32 values].
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/dequantise_amx.h"
#include "kernels/cpu/expert_fast.h"
#include "kernels/cpu/expert_fast_amx.hash.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/expert_slots_amx.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

char* activations_at(const Job& job, int64_t first, int64_t tiles, int64_t slot) {
  return job.activations + (first * job.slots + slot * tiles) * kRowBytes;
}

// 32 values of an activation row from `column` on as bfloat16, zeros beyond its end.
__m512i load_values(const float* row, int64_t column, int64_t k) {
  return to_bfloat16(_mm512_maskz_loadu_ps(first_lanes(k - column), row + column),
                     _mm512_maskz_loadu_ps(first_lanes(k - column - 16), row + column + 16));
}

// Task: a tile of rows; slots that no row fills are zeros.
void convert_slots(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t slot = task * kTileSide;
  const int64_t height = height_at(job, slot);
  for (int64_t r = 0; r < height; ++r) {
    const bool filled = slot + r < job.args->rows;
    const float* x = filled ? activation_row(job, slot + r) : nullptr;
    for (int64_t first = 0; first < job.groups; first += kPartTiles) {
      const int64_t tiles = smaller(kPartTiles, job.groups - first);
      char* out = activations_at(job, first, tiles, slot) + r * kRowBytes;
      for (int64_t t = 0; t < tiles; ++t, out += height * kRowBytes) {
        _mm512_storeu_si512(out, filled ? load_values(x, (first + t) * kTileColumns, job.args->k)
                                        : _mm512_setzero_si512());
      }
    }
  }
}

template <typename Format>
struct PanelWeights {
  static void unpack(const Job& job, const Task& task, const Part& part) {
    const auto* blocks = static_cast<const typename Format::Block*>(job.args->panels);
    const int64_t of_panel = job.groups / Format::kGroups;
    for (int64_t p = 0; p < task.panels; ++p) {
      dequantise_panel<Format>(blocks + (task.panel + p) * of_panel, part.first, part.tiles,
                               task.weights + p * part.tiles * kTileBytes);
    }
  }
};

// The tiles of rows of a pass.
struct RowTiles {
  const char* x;
  int64_t heights[2];  // the second one is 0 where there is one alone
};

RowTiles row_tiles_at(const Job& job, const Task& task, const Part& part, int64_t slot) {
  const int64_t left = task.slots - slot;
  RowTiles rows{};
  rows.x = activations_at(job, part.first, part.tiles, task.slot + slot);
  rows.heights[0] = smaller(kTileSide, left);
  rows.heights[1] = smaller(kTileSide, left - rows.heights[0]);
  return rows;
}

// Registers of sums 0 ... 3, activations 4 and 5, weights 6 and 7 for a pair of tiles of rows;
// sums, activations 4, weights 5 ... 7 for one.
void configure_for(const RowTiles& rows) {
  const auto a = static_cast<uint8_t>(rows.heights[0]);
  const auto b = static_cast<uint8_t>(rows.heights[1]);
  if (b > 0) {
    configure_tiles({a, a, b, b, a, b, 16, 16});
  } else {
    configure_tiles({a, a, a, a, a, 16, 16, 16});
  }
}

// sums (+)= two tiles of rows x 2 panels; those of the second one are `next_rows` bytes on.
void multiply_pair(const RowTiles& rows, const char* weights, const Part& part, char* sums) {
  constexpr int64_t kNextRows = kExpertBand * kTileBytes;
  start_sums(part.first > 0, sums, kTileBytes, kNextRows);
  const char* second = rows.x + part.tiles * kTileBytes;
  const char* second_weights = weights + part.tiles * kTileBytes;
  for (int64_t t = 0; t < part.tiles; ++t) {
    _tile_loadd(4, rows.x + t * kTileBytes, 64);
    _tile_loadd(6, weights + t * kTileBytes, 64);
    _tile_loadd(5, second + t * rows.heights[1] * kRowBytes, 64);
    _tile_loadd(7, second_weights + t * kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  store_sums(sums, kTileBytes, kNextRows);
}

// sums (+)= one tile of rows x 4 panels.
void multiply_one(const RowTiles& rows, const char* weights, const Part& part, char* sums) {
  constexpr int64_t kNextPanels = 2 * kTileBytes;
  const int64_t panel = part.tiles * kTileBytes;
  start_sums(part.first > 0, sums, kTileBytes, kNextPanels);
  for (int64_t t = 0; t < part.tiles; ++t) {
    const char* w = weights + t * kTileBytes;
    _tile_loadd(4, rows.x + t * rows.heights[0] * kRowBytes, 64);
    _tile_loadd(5, w, 64);
    _tile_loadd(6, w + panel, 64);
    _tile_loadd(7, w + 2 * panel, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(5, w + 3 * panel, 64);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 4, 5);
  }
  store_sums(sums, kTileBytes, kNextPanels);
}

// All slots of the task over its band. Panels beyond the last one, of what the memory holds, fill
// registers up; nobody reads their sums.
void multiply_part(const Job& job, const Task& task, const Part& part) {
  int64_t configured = 0;
  for (int64_t slot = 0; slot < task.slots; slot += 2 * kTileSide) {
    const RowTiles rows = row_tiles_at(job, task, part, slot);
    const int64_t filled = rows.heights[0] + rows.heights[1];
    if (filled != configured) configure_for(rows);
    configured = filled;
    char* sums = task.sums + slot / kTileSide * kExpertBand * kTileBytes;
    const int64_t step = rows.heights[1] > 0 ? 2 : 4;
    for (int64_t p = 0; p < task.panels; p += step) {
      const char* weights = task.weights + p * part.tiles * kTileBytes;
      (step == 2 ? multiply_pair : multiply_one)(rows, weights, part, sums + p * kTileBytes);
    }
  }
}

// Task: a slot tile x a band of panels; the slot tiles of a band come one after another.
template <typename Weights>
void multiply_slots(void* argument, int64_t index, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const Task task = task_of(job, index, thread);
  for (Part part{}; part.first < job.groups; part.first += kPartTiles) {
    part.tiles = smaller(kPartTiles, job.groups - part.first);
    Weights::unpack(job, task, part);
    stores_before_tiles();
    multiply_part(job, task, part);
  }
  release_tiles();
  store_rows(job, task);
}

template <typename Weights>
MatmulWork work_of(const Job& job) {
  const int64_t bands = divide_up(divide_up(job.args->n, kTileSide), kExpertBand);
  return {convert_slots, divide_up(job.slots, kTileSide), multiply_slots<Weights>,
          bands * divide_up(job.args->rows, job.args->params.expert_tile)};
}

MatmulWork plan(Job& job, int /*threads*/) {
  job.groups = activation_groups(job.args->weight_type, job.args->k);
  job.slots = slots_of(job.args->rows, job.args->params);
  MatmulWork work;
  with_panel_format(job.args->weight_type,
                    [&]<typename Format>(Format) { work = work_of<PanelWeights<Format>>(job); });
  return work;
}

constexpr ExpertKernel kExperts{ActivationLayout::kSlots, plan, swiglu_columns_avx2};

}  // namespace

void expert_swiglu_fast_amx(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kFastAmx, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_fast_amx(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kFastAmx, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* expert_fast_amx_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
