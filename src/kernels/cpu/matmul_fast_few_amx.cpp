// The fast matmul of up to 16 activation rows (matmul_few.h). A task takes a band of panels; each
// panel's weights are dequantised once, 8 tiles at a time, and multiplied while the next 8 are
// dequantised: tile loads wait for stores to the same lines. Tiles of activations and sums have as
// many rows as the call, since an instruction takes as long as its operands have rows. Four sums
// take turns, because one multiplication takes 52 cycles from sum to sum, and are added at the end.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/dequantise_amx.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_fast_few_amx.hash.h"
#include "kernels/cpu/matmul_few.h"
#include "kernels/cpu/panel_formats_avx512.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

struct FewJob {
  const MatmulArgs* args;
  char* activations;  // tiles [k_tiles]
  char* threads;      // each: two parts of weight tiles, sums
  uint64_t thread_bytes;
  int64_t band;  // panels
  int64_t k_tiles;
};

// Sums in tiles 0 ... 3 and activations in 4 and 5 have `rows` rows, weights in 6 and 7 have 16.
void configure_rows(int64_t rows) {
  const auto r = static_cast<uint8_t>(rows);
  configure_tiles({r, r, r, r, r, r, 16, 16});
}

// Task: one activation row to tiles.
void convert_row(void* argument, int64_t row, int /*thread*/) {
  const auto& job = *static_cast<const FewJob*>(argument);
  const float* x = job.args->x + row * job.args->k;
  for (int64_t t = 0; t < job.k_tiles; ++t) {
    const float* from = x + t * kTileColumns;
    _mm512_storeu_si512(job.activations + t * kTileBytes + row * 64,
                        to_bfloat16(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16)));
  }
}

// Sums += `tiles` tiles of K.
void multiply_part(const char* x, const char* weights, int64_t tiles) {
  int64_t t = 0;
  for (; t + 4 <= tiles; t += 4) {
    _tile_loadd(4, x + t * kTileBytes, 64);
    _tile_loadd(6, weights + t * kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, x + (t + 1) * kTileBytes, 64);
    _tile_loadd(7, weights + (t + 1) * kTileBytes, 64);
    _tile_dpbf16ps(1, 5, 7);
    _tile_loadd(4, x + (t + 2) * kTileBytes, 64);
    _tile_loadd(6, weights + (t + 2) * kTileBytes, 64);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(5, x + (t + 3) * kTileBytes, 64);
    _tile_loadd(7, weights + (t + 3) * kTileBytes, 64);
    _tile_dpbf16ps(3, 5, 7);
  }
  for (; t < tiles; ++t) {
    _tile_loadd(4, x + t * kTileBytes, 64);
    _tile_loadd(6, weights + t * kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
  }
}

// The four sums to the output's rows.
void store_panel(const MatmulArgs& args, char* sums, int64_t panel) {
  store_sums(sums, kTileBytes, 2 * kTileBytes);
  const int64_t column = panel * kTileSide;
  for (int64_t r = 0; r < args.rows; ++r) {
    const char* from = sums + r * 64;
    const __m512 low = _mm512_add_ps(_mm512_loadu_ps(from), _mm512_loadu_ps(from + kTileBytes));
    const __m512 high = _mm512_add_ps(_mm512_loadu_ps(from + 2 * kTileBytes),
                                      _mm512_loadu_ps(from + 3 * kTileBytes));
    _mm512_mask_storeu_ps(args.out + r * args.n + column, first_lanes(args.n - column),
                          _mm512_add_ps(low, high));
  }
}

// 8 tiles of K (or what is left) of one panel, dequantised.
struct Part {
  int64_t panel, first;
  const char* weights;
};

// Multiplies a part; the last one of a panel also stores what the panel comes to.
void finish_part(const FewJob& job, const Part& part, char* sums) {
  if (part.first == 0) zero_sums();
  const int64_t tiles = smaller(kPartTiles, job.k_tiles - part.first);
  multiply_part(job.activations + part.first * kTileBytes, part.weights, tiles);
  if (part.first + tiles == job.k_tiles) store_panel(*job.args, sums, part.panel);
}

// Task: a band of panels x all activation rows.
template <typename Format>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const FewJob*>(argument);
  const auto* blocks = static_cast<const typename Format::Block*>(job.args->panels);
  const int64_t panel_blocks = job.k_tiles / Format::kGroups;
  const int64_t end = smaller((task + 1) * job.band, divide_up(job.args->n, kTileSide));
  char* weights = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  char* sums = weights + 2 * kPartTiles * kTileBytes;
  configure_rows(job.args->rows);
  Part waiting{};
  char* next = weights;
  for (int64_t panel = task * job.band; panel < end; ++panel) {
    for (int64_t first = 0; first < job.k_tiles; first += kPartTiles) {
      dequantise_panel<Format>(blocks + panel * panel_blocks, first,
                               smaller(kPartTiles, job.k_tiles - first), next);
      stores_before_tiles();
      if (waiting.weights != nullptr) finish_part(job, waiting, sums);
      waiting = {panel, first, next};
      next = next == weights ? weights + kPartTiles * kTileBytes : weights;
    }
  }
  finish_part(job, waiting, sums);
  release_tiles();
}

}  // namespace

void matmul_fast_few(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kFastFewAmx, kSourceHash, args);
  if (args.rows == 0) return;
  const int threads = thread_count(context);
  const FewMatmulScratch layout = few_matmul_scratch(args.k, threads);
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  const int64_t panels = divide_up(args.n, kTileSide);
  FewJob job{};
  job.args = &args;
  job.activations = memory;
  job.threads = memory + layout.threads;
  job.thread_bytes = layout.thread_bytes;
  job.band = streamed_band(panels, 1, threads);
  job.k_tiles = args.k / kTileColumns;
  parallel_for(context, args.rows, convert_row, &job);
  with_panel_format(args.weight_type, [&]<typename Format>(Format) {
    parallel_for(context, divide_up(panels, job.band), multiply_band<Format>, &job);
  });
}

const char* matmul_fast_few_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
