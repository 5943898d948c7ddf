// Split-K with AMX tiles (matmul_split_k.h): the fast matmul's task for a band of panels, over one
// part of K.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/matmul_fast_job_amx.h"
#include "kernels/cpu/matmul_split_k.h"
#include "kernels/cpu/matmul_split_k_fast_amx.hash.h"
#include "kernels/cpu/split_sums_avx512.h"

namespace reckon::kernels::cpu {
namespace {

struct SplitJob {
  FastJob job;
  SplitSums split;
};

// Where part `part` of K begins, in tiles.
int64_t part_begin(const SplitJob& work, int64_t part) {
  const int64_t passes = divide_up(work.job.k_tiles, kPartTiles);
  return smaller(part * passes / work.split.parts * kPartTiles, work.job.k_tiles);
}

// The sums of a band, tiles of 16 rows [row tiles][band], to those of the part.
void store_part(const SplitJob& work, const char* sums, int64_t part, int64_t first_panel,
                int64_t panels) {
  const int64_t rows = work.split.rows;
  for (int64_t p = 0; p < panels; ++p) {
    float* out = panel_sums(work.split, part, first_panel + p);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t tile = row / kTileSide * work.job.band + p;
      const char* from = sums + tile * kTileBytes + row % kTileSide * 64;
      _mm512_store_ps(out + row * kPanelLanes, _mm512_load_ps(from));
    }
  }
}

// Task: a band of panels x all activation rows, one part of K.
template <typename Format>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& work = *static_cast<const SplitJob*>(argument);
  const FastJob& job = work.job;
  const auto* blocks = static_cast<const typename Format::Block*>(job.args->panels);
  const int64_t panel_blocks = job.k_tiles / Format::kGroups;
  const int64_t part = task % work.split.parts;
  const int64_t first_panel = task / work.split.parts * job.band;
  const int64_t panels = smaller(job.band, divide_up(job.args->n, kTileSide) - first_panel);
  const int64_t begin = part_begin(work, part);
  char* weights = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  char* sums = weights + job.outputs;
  configure_tiles();
  for (int64_t first = begin; first < part_begin(work, part + 1); first += kPartTiles) {
    const int64_t tiles = part_tiles(job, first);
    for (int64_t p = 0; p < panels; ++p) {
      dequantise_panel<Format>(blocks + (first_panel + p) * panel_blocks, first, tiles,
                               weights + p * tiles * kTileBytes);
    }
    stores_before_tiles();
    for (int64_t row = 0; row < job.row_tiles; row += 2) {
      for (int64_t p = 0; p < panels; p += 2) {
        multiply_tiles(activation_tiles(job, first, row), weights + p * tiles * kTileBytes, tiles,
                       first > begin, sums + (row * job.band + p) * kTileBytes,
                       job.band * kTileBytes);
      }
    }
  }
  release_tiles();
  store_part(work, sums, part, first_panel, panels);
}

}  // namespace

void matmul_split_k_fast(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kSplitKFast, kSourceHash, args);
  if (args.rows == 0) return;
  const int threads = thread_count(context);
  const FastMatmulScratch layout = fast_matmul_scratch(args.rows, args.n, args.k, threads);
  const SplitKScratch whole = split_k_fast_scratch(args.rows, args.n, args.k, threads);
  auto* memory = static_cast<char*>(scratch(context, whole.total));
  SplitJob work{};
  work.job.args = &args;
  work.job.activations = memory;
  work.job.threads = memory + layout.threads;
  work.job.thread_bytes = layout.thread_bytes;
  work.job.outputs = layout.outputs;
  work.job.band = layout.band_panels;
  work.job.row_tiles = divide_up(args.rows, 2 * kTileSide) * 2;
  work.job.k_tiles = args.k / kTileColumns;
  work.split = {reinterpret_cast<float*>(memory + whole.sums), args.out, fast_splits(args.k),
                args.rows, args.n};
  const int64_t bands = divide_up(divide_up(args.n, kTileSide), work.job.band);
  parallel_for(context, work.job.row_tiles, convert_rows, &work.job);
  with_panel_format(args.weight_type, [&]<typename Format>(Format) {
    parallel_for(context, bands * work.split.parts, multiply_band<Format>, &work);
  });
  parallel_for(context, sum_tasks(work.split), add_parts, &work.split);
}

const char* matmul_split_k_fast_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
