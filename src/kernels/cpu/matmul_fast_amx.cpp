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
#include "kernels/cpu/matmul_common_avx512.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_fast_amx.hash.h"
#include "kernels/cpu/panel_formats_avx512.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

struct FastJob {
  const MatmulArgs* args;
  char* activations;  // tiles [parts of K][row tiles][tiles of the part]
  char* threads;      // each: weight tiles [band][tiles of the part], sums [row tiles][band]
  uint64_t thread_bytes, outputs;
  int64_t band;       // panels
  int64_t row_tiles;  // even
  int64_t k_tiles;
};

int64_t part_tiles(const FastJob& job, int64_t first) {
  return smaller(kPartTiles, job.k_tiles - first);
}

// Tiles of the part of K that begins with tile `first`, of row tile `row`.
char* activation_tiles(const FastJob& job, int64_t first, int64_t row) {
  return job.activations + (first * job.row_tiles + row * part_tiles(job, first)) * kTileBytes;
}

// Task: 16 activation rows to tiles; rows beyond the last are zeros.
void convert_rows(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const FastJob*>(argument);
  const int64_t k = job.args->k;
  for (int64_t r = 0; r < kTileSide; ++r) {
    const int64_t row = task * kTileSide + r;
    const bool real = row < job.args->rows;
    const float* x = job.args->x + (real ? row : 0) * k;
    for (int64_t first = 0; first < job.k_tiles; first += kPartTiles) {
      char* out = activation_tiles(job, first, task) + r * 64;
      const int64_t tiles = part_tiles(job, first);
      for (int64_t t = 0; t < tiles; ++t, out += kTileBytes) {
        const float* from = x + (first + t) * kTileColumns;
        _mm512_storeu_si512(out,
                            real ? to_bfloat16(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16))
                                 : _mm512_setzero_si512());
      }
    }
  }
}

// A byte of codes becomes a float32 without a conversion: put into the mantissa of 2^7 (or, where
// codes have 8 bits, of 2^15) it reads 128 + code (32768 + code), and the multiply-add that scales
// it takes the 128 away.
template <typename Format>
struct CodeFloats {
  static constexpr int kBit = Format::kNarrow ? 16 : 8;
  static constexpr int32_t kBias = Format::kNarrow ? 128 : 32768;
  static constexpr int32_t kExponent = Format::kNarrow ? 0x43000000 : 0x47000000;

  template <int kByte>
  static __m512 get(__m512i codes) {
    constexpr int kShift = kBit - 8 * kByte;
    __m512i at = codes;
    if (kShift > 0) at = _mm512_slli_epi32(codes, kShift > 0 ? kShift : 0);
    if (kShift < 0) at = _mm512_srli_epi32(codes, kShift < 0 ? -kShift : 0);
    constexpr int kMaskedOr = 0xea;  // (at & mask) | exponent
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(at, _mm512_set1_epi32(0xff << kBit),
                                                         _mm512_set1_epi32(kExponent), kMaskedOr));
  }
};

// Group kPart of a block of a panel as one tile: row 2i + h holds elements 4i + 2h and 4i + 2h + 1
// of each of the 16 weight rows.
template <typename Format, int kPart>
[[gnu::always_inline]] inline void dequantise_group(const typename Format::Block& block,
                                                    const PanelHead& head, int quad, char* tile) {
  using Floats = CodeFloats<Format>;
  const PanelScales scales = Format::template scales<kPart>(block, head, quad);
  const __m512 offset = _mm512_set1_ps(static_cast<float>(-(Floats::kBias + Format::kOffset)));
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const __m512 scale = Format::kHalves == 1
                             ? scales.scale
                             : _mm512_mul_ps(scales.scale, _mm512_cvtepi32_ps(scales.parts[half]));
    const __m512 shift = _mm512_fmadd_ps(scale, offset, scales.minimum);
#pragma GCC unroll 4
    for (int i = 4 * half; i < 4 * half + 4; ++i) {
      const __m512i codes = Format::template codes<kPart>(block, quad, i);
      const __m512 w0 = _mm512_fmadd_ps(Floats::template get<0>(codes), scale, shift);
      const __m512 w1 = _mm512_fmadd_ps(Floats::template get<1>(codes), scale, shift);
      const __m512 w2 = _mm512_fmadd_ps(Floats::template get<2>(codes), scale, shift);
      const __m512 w3 = _mm512_fmadd_ps(Floats::template get<3>(codes), scale, shift);
      _mm512_storeu_si512(tile + 128 * i, pairs_of_bfloat16(w0, w1));
      _mm512_storeu_si512(tile + 128 * i + 64, pairs_of_bfloat16(w2, w3));
    }
  }
}

// Tiles first ... first + count - 1 of one panel. A part of K is whole blocks (kPartTiles = 8).
template <typename Format>
void dequantise_panel(const typename Format::Block* blocks, int64_t first, int64_t count,
                      char* tile) {
  constexpr bool kFour = Format::kTogether == 4;
  for (int64_t t = 0; t < count;) {
    const typename Format::Block& block = blocks[(first + t) / Format::kGroups];
    prefetch(reinterpret_cast<const char*>(&block) + 2048, sizeof block);
    const PanelHead head = Format::head(block);
    for (int quad = 0; quad < Format::kGroups / Format::kTogether; ++quad) {
      dequantise_group<Format, 0>(block, head, quad, tile);
      if (kFour) {
        dequantise_group<Format, kFour ? 1 : 0>(block, head, quad, tile + kTileBytes);
        dequantise_group<Format, kFour ? 2 : 0>(block, head, quad, tile + 2 * kTileBytes);
        dequantise_group<Format, kFour ? 3 : 0>(block, head, quad, tile + 3 * kTileBytes);
      }
      tile += Format::kTogether * kTileBytes;
      t += Format::kTogether;
    }
  }
}

// sums (+)= 32 activation rows x 2 panels over `tiles` tiles of K. sums[0], [1]: the first 16 rows
// by each panel; `next_rows` bytes on: the second 16.
void multiply_tiles(const char* x, const char* weights, int64_t tiles, bool adds, char* sums,
                    int64_t next_rows) {
  if (adds) {
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, sums + kTileBytes, 64);
    _tile_loadd(2, sums + next_rows, 64);
    _tile_loadd(3, sums + next_rows + kTileBytes, 64);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const char* x_end = x + tiles * kTileBytes;
  const char* second_weights = weights + tiles * kTileBytes;
  for (int64_t t = 0; t < tiles; ++t) {
    _tile_loadd(4, x + t * kTileBytes, 64);
    _tile_loadd(6, weights + t * kTileBytes, 64);
    _tile_loadd(5, x_end + t * kTileBytes, 64);
    _tile_loadd(7, second_weights + t * kTileBytes, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileBytes, 64);
  _tile_stored(2, sums + next_rows, 64);
  _tile_stored(3, sums + next_rows + kTileBytes, 64);
}

// The sums of a band to the output's rows.
void store_band(const FastJob& job, const char* sums, int64_t first_panel, int64_t panels) {
  const MatmulArgs& args = *job.args;
  for (int64_t row = 0; row < args.rows; ++row) {
    const char* from = sums + row / kTileSide * job.band * kTileBytes + row % kTileSide * 64;
    float* out = args.out + row * args.n;
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t column = (first_panel + p) * kTileSide;
      _mm512_mask_storeu_ps(out + column, first_lanes(args.n - column),
                            _mm512_loadu_ps(from + p * kTileBytes));
    }
  }
}

// Task: a band of panels x all activation rows.
template <typename Format>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const FastJob*>(argument);
  const auto* blocks = static_cast<const typename Format::Block*>(job.args->panels);
  const int64_t panel_blocks = job.k_tiles / Format::kGroups;
  const int64_t first_panel = task * job.band;
  const int64_t panels = smaller(job.band, divide_up(job.args->n, kTileSide) - first_panel);
  char* weights = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  char* sums = weights + job.outputs;
  configure_tiles();
  for (int64_t first = 0; first < job.k_tiles; first += kPartTiles) {
    const int64_t tiles = part_tiles(job, first);
    for (int64_t p = 0; p < panels; ++p) {
      dequantise_panel<Format>(blocks + (first_panel + p) * panel_blocks, first, tiles,
                               weights + p * tiles * kTileBytes);
    }
    stores_before_tiles();
    for (int64_t row = 0; row < job.row_tiles; row += 2) {
      for (int64_t p = 0; p < panels; p += 2) {
        multiply_tiles(activation_tiles(job, first, row), weights + p * tiles * kTileBytes, tiles,
                       first > 0, sums + (row * job.band + p) * kTileBytes, job.band * kTileBytes);
      }
    }
  }
  release_tiles();
  store_band(job, sums, first_panel, panels);
}

}  // namespace

void matmul_fast_amx(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kFastAmx, kSourceHash, args);
  if (args.rows == 0) return;
  const FastMatmulScratch layout =
      fast_matmul_scratch(args.rows, args.n, args.k, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  FastJob job{};
  job.args = &args;
  job.activations = memory;
  job.threads = memory + layout.threads;
  job.thread_bytes = layout.thread_bytes;
  job.outputs = layout.outputs;
  job.band = layout.band_panels;
  job.row_tiles = divide_up(args.rows, 2 * kTileSide) * 2;
  job.k_tiles = args.k / kTileColumns;
  const int64_t bands = divide_up(divide_up(args.n, kTileSide), job.band);
  parallel_for(context, job.row_tiles, convert_rows, &job);
  switch (args.weight_type) {
    case DType::kQ4_0:
      return parallel_for(context, bands, multiply_band<PanelsQ4_0>, &job);
    case DType::kQ4_1:
      return parallel_for(context, bands, multiply_band<PanelsQ4_1>, &job);
    case DType::kQ8_0:
      return parallel_for(context, bands, multiply_band<PanelsQ8_0>, &job);
    case DType::kQ4_K:
      return parallel_for(context, bands, multiply_band<PanelsQ4_K>, &job);
    case DType::kQ6_K:
      return parallel_for(context, bands, multiply_band<PanelsQ6_K>, &job);
    default:
      return;  // the table does not support it
  }
}

const char* matmul_fast_amx_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
