// The fast matmul by codes of 8 bits with AVX2 (matmul_fast.h).
//
// Of Zen 2, a core multiplies 32 pairs of bytes a cycle by vpmaddubsw, on one port, and 16 pairs of
// float32. Codes of 4 bits times those of 8 are summed over 8 instructions before they leave 16
// bits, so that a group of 32 costs 9 of them for 8 outputs: 28 multiply-adds a cycle at most. With
// activations of 8 bits alone the mean KL on real text is 2.8e-3, over the bar (canonical_order.h);
// most of it comes from groups that hold an activation far beyond the others, and those get a
// second step of 8 bits.
//
// A task takes a band of panels. For each part of K it unpacks the band's codes to bytes, and
// passes blocks of activation tiles over it: a block stays in the second-level cache while the
// panels of the band pass, a panel in the first-level one while the tiles of a block do.
#include "kernels/cpu/matmul_bands_avx2.h"
#include "kernels/cpu/matmul_codes_avx2.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_fast_bytes_avx2.hash.h"
#include "kernels/cpu/panel_formats_avx2.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kBlockTiles = 32;                     // that pass a panel one after another
constexpr int64_t kTile = kByteTileRows * kPanelLanes;  // sums
constexpr int64_t kPartGroups = kBytePart / kGroup;

struct ByteJob {
  const MatmulArgs* args;
  ByteTile* activations;  // [row tiles][groups of K, twice]
  int32_t* counts;        // [row tiles][parts]: tiles that each part has
  char* threads;          // each: weights [band][groups of a part], sums [band][row tiles][kTile]
  uint64_t thread_bytes, outputs;
  int64_t band;  // panels
  int64_t row_tiles, groups, parts;
};

inline int64_t part_groups(const ByteJob& job, int64_t part) {
  return smaller(kPartGroups, job.groups - part * kPartGroups);
}

// ---- activations ----

// 32 values as codes of 8 bits: value = scale * code, but for rounding.
struct ByteCodes {
  __m256i codes;
  float scale, sum;
};

inline ByteCodes round_to_bytes(const __m256 (&values)[4], float scale, __m256 (&rests)[4]) {
  const __m256 step = _mm256_set1_ps(scale);
  const __m256 inverse = _mm256_set1_ps(1.0F / scale);
  __m256i codes[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    codes[i] = _mm256_cvtps_epi32(_mm256_mul_ps(values[i], inverse));
    rests[i] = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(codes[i]), step, values[i]);
  }
  const __m256i sums =
      _mm256_add_epi32(_mm256_add_epi32(codes[0], codes[1]), _mm256_add_epi32(codes[2], codes[3]));
  // Packing interleaves halves of 128 bits: words of 4 codes come out as 0 2 4 6, 1 3 5 7.
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(codes[0], codes[1]),
                                            _mm256_packs_epi32(codes[2], codes[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return {_mm256_permutevar8x32_epi32(packed, order), scale,
          scale * static_cast<float>(sum_lanes(sums))};
}

inline __m256 magnitude(__m256 value) {
  return _mm256_and_ps(value, _mm256_castsi256_ps(_mm256_set1_epi32(kMagnitudeMask)));
}

// Codes of a group of one row; `rest` those of what they leave, zeros where the largest value is at
// most `limit`. Gives whether it is more.
bool round_group(const float* x, float limit, ByteCodes& first, ByteCodes& rest) {
  __m256 values[4];
  for (int i = 0; i < 4; ++i) values[i] = _mm256_loadu_ps(x + 8 * i);
  const __m256i most =
      _mm256_max_epi32(_mm256_max_epi32(_mm256_castps_si256(magnitude(values[0])),
                                        _mm256_castps_si256(magnitude(values[1]))),
                       _mm256_max_epi32(_mm256_castps_si256(magnitude(values[2])),
                                        _mm256_castps_si256(magnitude(values[3]))));
  const int32_t bits = largest_lane(most);
  first = rest = {_mm256_setzero_si256(), 0, 0};
  if (bits >= kInfinityBits) first.scale = first.sum = __builtin_nanf("");
  if (bits >= kInfinityBits || bits < kSmallestMagnitude) return false;
  float largest;
  __builtin_memcpy(&largest, &bits, sizeof largest);
  __m256 rests[4];
  __m256 nothing[4];
  first = round_to_bytes(values, largest / kLargestByte, rests);
  if (!(largest > limit)) return false;
  rest = round_to_bytes(rests, largest / (2 * kLargestByte * kLargestByte), nothing);
  return true;
}

// Beyond this a group of the row takes two steps of 8 bits.
float group_limit(const float* x, int64_t k) {
  __m256 sums = _mm256_setzero_ps();
  for (int64_t c = 0; c < k; c += 8) {
    const __m256 value = _mm256_loadu_ps(x + c);
    sums = _mm256_fmadd_ps(value, value, sums);
  }
  float lanes[8];
  _mm256_storeu_ps(lanes, sums);
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  return kByteLimit * __builtin_sqrtf(sum / static_cast<float>(k));
}

void put(ByteTile& tile, int64_t group, const ByteCodes (&rows)[kByteTileRows]) {
  const __m256i a = _mm256_unpacklo_epi32(rows[0].codes, rows[1].codes);
  const __m256i b = _mm256_unpackhi_epi32(rows[0].codes, rows[1].codes);
  const __m256i c = _mm256_unpacklo_epi32(rows[2].codes, rows[3].codes);
  const __m256i d = _mm256_unpackhi_epi32(rows[2].codes, rows[3].codes);
  const __m256i words[4] = {_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c),
                            _mm256_unpacklo_epi64(b, d), _mm256_unpackhi_epi64(b, d)};
  for (int i = 0; i < 4; ++i) {
    _mm_store_si128(reinterpret_cast<__m128i*>(tile.codes[i]), _mm256_castsi256_si128(words[i]));
    _mm_store_si128(reinterpret_cast<__m128i*>(tile.codes[i + 4]),
                    _mm256_extracti128_si256(words[i], 1));
  }
  for (int r = 0; r < kByteTileRows; ++r) {
    tile.scales[r] = rows[r].scale;
    tile.sums[r] = rows[r].sum;
  }
  tile.group = static_cast<int32_t>(group);
}

// Task: one tile of activation rows; those beyond the last are zeros.
void round_rows(void* argument, int64_t tile, int /*thread*/) {
  const auto& job = *static_cast<const ByteJob*>(argument);
  const int64_t k = job.args->k;
  const float* rows[kByteTileRows];
  float limits[kByteTileRows];
  for (int64_t r = 0; r < kByteTileRows; ++r) {
    const int64_t row = tile * kByteTileRows + r;
    rows[r] = row < job.args->rows ? job.args->x + row * k : nullptr;
    limits[r] = rows[r] == nullptr ? 0 : group_limit(rows[r], k);
  }
  for (int64_t part = 0; part < job.parts; ++part) {
    ByteTile* out = job.activations + 2 * (tile * job.groups + part * kPartGroups);
    const ByteTile* begin = out;
    for (int64_t g = 0; g < part_groups(job, part); ++g) {
      ByteCodes first[kByteTileRows];
      ByteCodes rest[kByteTileRows];
      bool rests = false;
      for (int64_t r = 0; r < kByteTileRows; ++r) {
        first[r] = rest[r] = {_mm256_setzero_si256(), 0, 0};
        if (rows[r] == nullptr) continue;
        const float* x = rows[r] + (part * kPartGroups + g) * kGroup;
        rests = round_group(x, limits[r], first[r], rest[r]) || rests;
      }
      put(*out++, g, first);
      if (rests) put(*out++, g, rest);
    }
    job.counts[tile * job.parts + part] = static_cast<int32_t>(out - begin);
  }
}

// ---- weights ----

template <typename Format, int kPart>
[[gnu::always_inline]] inline void unpack_group(const typename Format::Block& block, int quad,
                                                PlanePanel& out) {
  const __m256 offset = _mm256_set1_ps(static_cast<float>(-Format::kOffset));
  for (int lane = 0; lane < kPanelLanes; lane += 8) {
    const PanelScales scales = Format::template scales<kPart>(block, quad, lane);
    _mm256_store_ps(out.scales + lane, scales.scale);
    _mm256_store_ps(out.minima + lane, _mm256_fmadd_ps(scales.scale, offset, scales.minimum));
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      store(out.codes[i][lane], Format::template codes<kPart>(block, quad, lane, i));
    }
  }
}

// Groups first ... first + count - 1 of one panel, whole blocks.
template <typename Format>
void unpack_panel(const typename Format::Block* blocks, int64_t first, int64_t count,
                  PlanePanel* out) {
  constexpr bool kTwo = Format::kTogether >= 2;
  constexpr bool kFour = Format::kTogether == 4;
  for (int64_t g = first; g < first + count; g += Format::kTogether, out += Format::kTogether) {
    const typename Format::Block& block = blocks[g / Format::kGroups];
    const int quad = static_cast<int>(g % Format::kGroups) / Format::kTogether;
    if (quad == 0) prefetch(reinterpret_cast<const char*>(&block) + 2048, sizeof block);
    unpack_group<Format, 0>(block, quad, out[0]);
    if (kTwo) unpack_group<Format, kTwo ? 1 : 0>(block, quad, out[1]);
    if (kFour) {
      unpack_group<Format, kFour ? 2 : 0>(block, quad, out[2]);
      unpack_group<Format, kFour ? 3 : 0>(block, quad, out[3]);
    }
  }
}

// ---- products ----

// sums += a tile of one group x 16 outputs.
[[gnu::always_inline]] inline void add_tile(const ByteTile& x, const PlanePanel& weights,
                                            float* sums) {
  __m256i low[kByteTileRows];
  __m256i high[kByteTileRows];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m256i w0 = load(weights.codes[i][0]);
    const __m256i w1 = load(weights.codes[i][8]);
#pragma GCC unroll 4
    for (int r = 0; r < kByteTileRows; ++r) {
      int32_t word;
      __builtin_memcpy(&word, x.codes[i][r], sizeof word);
      const __m256i codes = _mm256_set1_epi32(word);
      const __m256i p0 = _mm256_maddubs_epi16(w0, codes);
      const __m256i p1 = _mm256_maddubs_epi16(w1, codes);
      if (i == 0) {
        low[r] = p0;
        high[r] = p1;
      } else {
        add_words(low[r], p0);
        add_words(high[r], p1);
      }
    }
  }
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m256 scale = _mm256_load_ps(weights.scales + 8 * h);
    const __m256 minimum = _mm256_load_ps(weights.minima + 8 * h);
#pragma GCC unroll 4
    for (int r = 0; r < kByteTileRows; ++r) {
      float* at = sums + r * kPanelLanes + 8 * h;
      const __m256i dots = _mm256_madd_epi16(h == 0 ? low[r] : high[r], ones);
      const __m256 products =
          _mm256_mul_ps(_mm256_cvtepi32_ps(dots), _mm256_broadcast_ss(x.scales + r));
      const __m256 sum = _mm256_fmadd_ps(products, scale, _mm256_load_ps(at));
      _mm256_store_ps(at, _mm256_fmadd_ps(_mm256_broadcast_ss(x.sums + r), minimum, sum));
    }
  }
}

void multiply_tiles(const ByteTile* x, int64_t count, const PlanePanel* weights, float* sums) {
  for (const ByteTile* end = x + count; x < end; ++x) add_tile(*x, weights[x->group], sums);
}

// Task: a band of panels x all activation rows.
template <typename Format>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const ByteJob*>(argument);
  const int64_t first_panel = task * job.band;
  const int64_t panels = smaller(job.band, divide_up(job.args->n, kPanelLanes) - first_panel);
  char* memory = job.threads + static_cast<uint64_t>(thread) * job.thread_bytes;
  auto* weights = reinterpret_cast<PlanePanel*>(memory);
  auto* sums = reinterpret_cast<float*>(memory + job.outputs);
  const auto* blocks = static_cast<const typename Format::Block*>(job.args->panels);
  const int64_t panel_blocks = job.groups / Format::kGroups;
  for (int64_t i = 0; i < panels * job.row_tiles * kTile; i += 8) {
    _mm256_store_ps(sums + i, _mm256_setzero_ps());
  }
  for (int64_t part = 0; part < job.parts; ++part) {
    for (int64_t p = 0; p < panels; ++p) {
      unpack_panel<Format>(blocks + (first_panel + p) * panel_blocks, part * kPartGroups,
                           part_groups(job, part), weights + p * kPartGroups);
    }
    for (int64_t block = 0; block < job.row_tiles; block += kBlockTiles) {
      const int64_t end = smaller(block + kBlockTiles, job.row_tiles);
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t tile = block; tile < end; ++tile) {
          multiply_tiles(job.activations + 2 * (tile * job.groups + part * kPartGroups),
                         job.counts[tile * job.parts + part], weights + p * kPartGroups,
                         sums + (p * job.row_tiles + tile) * kTile);
        }
      }
    }
  }
  for (int64_t p = 0; p < panels; ++p) {
    store_panel(*job.args, sums + p * job.row_tiles * kTile, first_panel + p);
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
    default:
      return nullptr;  // the table does not support it
  }
}

}  // namespace

void matmul_fast_bytes_avx2(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kFastBytesAvx2, kSourceHash, args);
  if (args.rows == 0) return;
  const ByteMatmulScratch layout =
      byte_matmul_scratch(args.rows, args.n, args.k, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  ByteJob job{};
  job.args = &args;
  job.activations = reinterpret_cast<ByteTile*>(memory);
  job.counts = reinterpret_cast<int32_t*>(memory + layout.counts);
  job.threads = memory + layout.threads;
  job.thread_bytes = layout.thread_bytes;
  job.outputs = layout.outputs;
  job.band = layout.band_panels;
  job.row_tiles = layout.row_tiles;
  job.groups = args.k / kGroup;
  job.parts = divide_up(job.groups, kPartGroups);
  parallel_for(context, job.row_tiles, round_rows, &job);
  parallel_for(context, divide_up(divide_up(args.n, kPanelLanes), job.band),
               band_task(args.weight_type), &job);
}

const char* matmul_fast_bytes_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
