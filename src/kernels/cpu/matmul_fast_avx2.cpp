// The fast matmul with AVX2 and FMA (matmul_fast.h): everything in float32.
//
// Why float32 and not integers: here vpmaddubsw and vpmaddwd run on one port (of Zen 2, one a
// cycle), fused multiply-adds on two. Activations of 16 bits by vpmaddwd are 16 multiply-adds a
// cycle, as many as float32, before anything is widened or scaled; those of 8 bits by vpmaddubsw
// are up to 28, but miss the bar on real text (canonical_order.h).
//
// A task takes a band of panels. For each part of K it dequantises the band's weights to [columns]
// [16 outputs], 16 KB a panel, and passes blocks of activation rows over it: a block, 120 KB, stays
// in the second-level cache while all panels of the band pass, a panel in the first-level one while
// the rows of the block do. 6 rows x 16 outputs are 12 registers of sums, which take 12 multiply-
// adds, 2 loads and 6 broadcasts a column.
#include "kernels/cpu/matmul_bands_avx2.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_fast_avx2.hash.h"
#include "kernels/cpu/panel_floats_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kRun = 8;          // columns of a row that lie side by side
constexpr int64_t kBlockTiles = 20;  // tiles of rows that pass a panel one after another
constexpr int64_t kTile = kFloatTileRows * kPanelLanes;  // sums

struct FloatJob {
  const MatmulArgs* args;
  float* activations;  // [parts of K][row tiles][runs of the part][kFloatTileRows][kRun]
  char* threads;       // each: weights [band][columns of a part][16], sums [band][row tiles][kTile]
  uint64_t thread_bytes, outputs;
  int64_t band;  // panels
  int64_t row_tiles;
  int64_t panel_floats;  // of a panel's weights
};

inline int64_t part_columns(const FloatJob& job, int64_t first) {
  return smaller(kFloatPart, job.args->k - first);
}

// A row tile's columns of the part that begins with column `first`.
inline float* activation_tile(const FloatJob& job, int64_t first, int64_t tile) {
  return job.activations +
         (first * job.row_tiles + tile * part_columns(job, first)) * kFloatTileRows;
}

// Task: one tile of activation rows; those beyond the last are zeros.
void arrange_rows(void* argument, int64_t tile, int /*thread*/) {
  const auto& job = *static_cast<const FloatJob*>(argument);
  const int64_t k = job.args->k;
  for (int64_t r = 0; r < kFloatTileRows; ++r) {
    const int64_t row = tile * kFloatTileRows + r;
    const bool real = row < job.args->rows;
    const float* x = job.args->x + (real ? row : 0) * k;
    for (int64_t first = 0; first < k; first += kFloatPart) {
      float* out = activation_tile(job, first, tile) + r * kRun;
      const int64_t end = first + part_columns(job, first);
      for (int64_t c = first; c < end; c += kRun, out += kFloatTileRows * kRun) {
        _mm256_storeu_ps(out, real ? _mm256_loadu_ps(x + c) : _mm256_setzero_ps());
      }
    }
  }
}

// sums (+)= a tile of rows x 16 outputs over `columns` columns.
[[gnu::noinline]] void multiply_tile(const float* x, const float* weights, int64_t columns,
                                     bool adds, float* sums) {
  __m256 low[kFloatTileRows];
  __m256 high[kFloatTileRows];
#pragma GCC unroll 6
  for (int64_t r = 0; r < kFloatTileRows; ++r) {
    low[r] = adds ? _mm256_loadu_ps(sums + r * kPanelLanes) : _mm256_setzero_ps();
    high[r] = adds ? _mm256_loadu_ps(sums + r * kPanelLanes + 8) : _mm256_setzero_ps();
  }
  const float* end = x + columns * kFloatTileRows;
  for (; x < end; x += kFloatTileRows * kRun, weights += kRun * kPanelLanes) {
#pragma GCC unroll 8
    for (int64_t c = 0; c < kRun; ++c) {
      const __m256 w0 = _mm256_loadu_ps(weights + c * kPanelLanes);
      const __m256 w1 = _mm256_loadu_ps(weights + c * kPanelLanes + 8);
#pragma GCC unroll 6
      for (int64_t r = 0; r < kFloatTileRows; ++r) {
        const __m256 value = _mm256_broadcast_ss(x + r * kRun + c);
        low[r] = _mm256_fmadd_ps(value, w0, low[r]);
        high[r] = _mm256_fmadd_ps(value, w1, high[r]);
      }
    }
  }
#pragma GCC unroll 6
  for (int64_t r = 0; r < kFloatTileRows; ++r) {
    _mm256_storeu_ps(sums + r * kPanelLanes, low[r]);
    _mm256_storeu_ps(sums + r * kPanelLanes + 8, high[r]);
  }
}

// Task: a band of panels x all activation rows.
template <typename Format>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const FloatJob*>(argument);
  const MatmulArgs& args = *job.args;
  const int64_t first_panel = task * job.band;
  const int64_t panels = smaller(job.band, divide_up(args.n, kPanelLanes) - first_panel);
  char* memory = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  auto* weights = reinterpret_cast<float*>(memory);
  auto* sums = reinterpret_cast<float*>(memory + job.outputs);
  const auto* blocks = static_cast<const typename Format::Block*>(args.panels);
  const int64_t panel_blocks = args.k / (Format::kGroups * kGroup);
  for (int64_t first = 0; first < args.k; first += kFloatPart) {
    const int64_t columns = part_columns(job, first);
    for (int64_t p = 0; p < panels; ++p) {
      dequantise_floats<Format>(blocks + (first_panel + p) * panel_blocks, first, columns,
                                weights + p * job.panel_floats);
    }
    for (int64_t block = 0; block < job.row_tiles; block += kBlockTiles) {
      const int64_t end = smaller(block + kBlockTiles, job.row_tiles);
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t tile = block; tile < end; ++tile) {
          multiply_tile(activation_tile(job, first, tile), weights + p * job.panel_floats, columns,
                        first > 0, sums + (p * job.row_tiles + tile) * kTile);
        }
      }
    }
  }
  for (int64_t p = 0; p < panels; ++p) {
    store_panel(args, sums + p * job.row_tiles * kTile, first_panel + p);
  }
}

BandTask band_task(DType weight_type) {
  switch (weight_type) {
    case DType::kQ4_0:
      return multiply_band<PanelsQ4_0>;
    case DType::kQ4_1:
      return multiply_band<PanelsQ4_1>;
    case DType::kP4:
      return multiply_band<PanelsP4>;
    case DType::kQ4_K:
      return multiply_band<PanelsQ4_K>;
    case DType::kQ6_K:
      return multiply_band<PanelsQ6_K>;
    default:
      return nullptr;  // the table does not support it
  }
}

}  // namespace

void matmul_fast_avx2(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kFastAvx2, kSourceHash, args);
  if (args.rows == 0) return;
  const FloatMatmulScratch layout =
      float_matmul_scratch(args.rows, args.n, args.k, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  FloatJob job{};
  job.args = &args;
  job.activations = reinterpret_cast<float*>(memory);
  job.threads = memory + layout.threads;
  job.thread_bytes = layout.thread_bytes;
  job.outputs = layout.outputs;
  job.band = layout.band_panels;
  job.row_tiles = layout.row_tiles;
  job.panel_floats = smaller(kFloatPart, args.k) * kPanelLanes;
  parallel_for(context, job.row_tiles, arrange_rows, &job);
  parallel_for(context, divide_up(divide_up(args.n, kPanelLanes), job.band),
               band_task(args.weight_type), &job);
}

const char* matmul_fast_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
