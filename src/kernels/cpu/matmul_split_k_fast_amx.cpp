// Split-K with AMX tiles (matmul_split_k.h): the fast matmul's task for a band of panels, over one
// part of K.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/matmul_fast_shapes_amx.h"
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
  const int64_t part = task % work.split.parts;
  const int64_t first_panel = task / work.split.parts * job.band;
  const int64_t panels = smaller(job.band, divide_up(job.args->n, kTileSide) - first_panel);
  char* weights = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  multiply_panels<SquareTile, Format>(job, first_panel, panels, part_begin(work, part),
                                      part_begin(work, part + 1), weights);
  store_part(work, weights + job.outputs, part, first_panel, panels);
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
  work.job = fast_job(args, layout, memory);
  work.split = {reinterpret_cast<float*>(memory + whole.sums), args.out, fast_splits(args.k),
                args.rows, args.n};
  parallel_for(context, work.job.row_tiles, convert_rows, &work.job);
  with_panel_format(args.weight_type, [&]<typename Format>(Format) {
    parallel_for(context, bands_of(work.job) * work.split.parts, multiply_band<Format>, &work);
  });
  parallel_for(context, sum_tasks(work.split), add_parts, &work.split);
}

const char* matmul_split_k_fast_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
