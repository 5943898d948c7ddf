// The fast matmul with AMX tiles (matmul_fast.h).
//
// Why bfloat16 and not int8: with int8 every group of 32 weights needs its 16 x 16 dots stored,
// scaled and added by vectors, about 80 instructions for 8 tile rows of work, and codes of int8 in
// groups of 32 miss the bar on real text (canonical_order.h). In bfloat16 scales are inside the
// weights, sums stay in tiles over 256 elements of K, and the rounding of 8 bits costs less than
// int8 codes do.
//
// A task takes a band of panels. For each part of K it dequantises the band's weights to tiles (32
// elements of K by 16 outputs, pairs of K side by side), then passes every 32 activation rows over
// it: two by two tiles, so that 4 loads of tiles feed 4 multiplications. Sums of a part are added
// to those before it in tiles that lie one after another; rows of tiles at a distance of a power of
// two would fall on the same cache lines.
//
// On one core of a virtual Sapphire Rapids Xeon, 512 rows: tiles alone reach 1.8 multiply-adds a
// picosecond from registers; this loop without dequantisation 0.6 (K = 8192) to 1.0 (K = 576).
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/dequantise_amx.h"
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_fast_amx.hash.h"
#include "kernels/cpu/matmul_fast_job_amx.h"
#include "kernels/cpu/matmul_fast_shapes_amx.h"
#include "kernels/cpu/panel_formats_avx512.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

// Task: a band of panels x all activation rows.
template <typename Tile, typename Format>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const FastJob*>(argument);
  const int64_t first_panel = task * job.band;
  const int64_t panels = smaller(job.band, divide_up(job.args->n, kTileSide) - first_panel);
  char* weights = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  multiply_panels<Tile, Format>(job, first_panel, panels, 0, job.k_tiles, weights);
  store_band(job, weights + job.outputs, first_panel, panels);
}

using BandTask = void (*)(void* job, int64_t task, int thread);

template <typename Tile>
BandTask band_task(DType weight_type) {
  BandTask task = nullptr;
  with_panel_format(weight_type,
                    [&]<typename Format>(Format) { task = multiply_band<Tile, Format>; });
  return task;
}

BandTask band_task(TileShape shape, DType weight_type) {
  if (shape == TileShape::kTall) return band_task<TallTile>(weight_type);
  if (shape == TileShape::kWide) return band_task<WideTile>(weight_type);
  return band_task<SquareTile>(weight_type);
}

}  // namespace

void matmul_fast_amx(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kFastAmx, kSourceHash, args);
  if (args.rows == 0) return;
  const FastMatmulScratch layout =
      fast_matmul_scratch(args.rows, args.n, args.k, thread_count(context), args.params.tile);
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  FastJob job = fast_job(args, layout, memory);
  parallel_for(context, job.row_tiles, convert_rows, &job);
  parallel_for(context, bands_of(job), band_task(args.params.tile, args.weight_type), &job);
}

const char* matmul_fast_amx_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
