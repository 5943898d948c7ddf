// hashed with "kernels/cpu/expert_fast.cpp"
// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
// The fast matmuls of experts with AMX tiles (expert_fast.h), packed weights in rows.
//
// Codes of up to 8 bits are numbers of bfloat16, so that tiles hold them as they are, without a
// rounding, and activations are the sums of two bfloat16: results are as close to the reference as
// those of the exact kernels, which models need whose other matmuls are exact. The products of a
// block of 64 columns are summed in a tile, then scaled and added up in float32, together with the
// minimum times the sum of the activations. To unpack 4 bits is a shift and a look-up for 32 of
// them, where a rounded weight takes some 18 instructions.
//
// A task takes a slot tile and a band of panels of 16 weight rows, a part of K at a time
// (kPartTiles): two tiles of rows by two panels, or one by four, fill 4 tiles with a block's
// products.
//
// Activations lie as [parts of K][tiles of rows][tiles of the part][two parts of a value][rows of
// the tile][32 values], then, of weights with minima, the sums of each slot [blocks].
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/dequantise_amx.h"
#include "kernels/cpu/expert_fast.h"
#include "kernels/cpu/expert_fast_rows_amx.hash.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/expert_slots_amx.h"
#include "kernels/cpu/matmul_formats_avx512.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/tiles_amx.h"

namespace reckon::kernels::cpu {
namespace {

constexpr int64_t kBlockTiles = 2;  // of a block of 64 columns
constexpr int64_t kParts = kActivationParts;
constexpr int64_t kPartBlocks = kPartTiles / kBlockTiles;
constexpr int64_t kHeadFloats = 2 * kTileSide;  // scales and minima of a block

char* activations_at(const Job& job, int64_t first, int64_t tiles, int64_t slot) {
  return job.activations + (first * job.slots + slot * tiles) * kParts * kRowBytes;
}

float* sums_at(const Job& job, int64_t slot) {
  const int64_t blocks = job.groups / kBlockTiles;
  auto* sums = job.activations + job.slots * job.groups * kParts * kRowBytes;
  return reinterpret_cast<float*>(sums) + slot * blocks;
}

// 16 values of a row from `column` on, zeros beyond its end.
__m512 load_values(const float* row, int64_t column, int64_t k) {
  return _mm512_maskz_loadu_ps(first_lanes(k - column), row + column);
}

// The value of each bfloat16 of 16.
__m512 to_floats(__m256i bfloats) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bfloats), 16));
}

// 32 values as the sums of two bfloat16.
void put_values(__m512 a, __m512 b, char* high, char* low) {
  const __m512i rounded = to_bfloat16(a, b);
  const __m512 rest_a = _mm512_sub_ps(a, to_floats(_mm512_castsi512_si256(rounded)));
  const __m512 rest_b = _mm512_sub_ps(b, to_floats(_mm512_extracti64x4_epi64(rounded, 1)));
  _mm512_storeu_si512(high, rounded);
  _mm512_storeu_si512(low, to_bfloat16(rest_a, rest_b));
}

// One block of a row, or zeros for a slot that no row fills (null); gives its sum.
float convert_block(const float* row, int64_t first_tile, int64_t k, int64_t height, char* out) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t t = 0; t < kBlockTiles; ++t) {
    const int64_t column = (first_tile + t) * kTileColumns;
    const __m512 a = row == nullptr ? _mm512_setzero_ps() : load_values(row, column, k);
    const __m512 b = row == nullptr ? _mm512_setzero_ps() : load_values(row, column + 16, k);
    char* high = out + t * height * kParts * kRowBytes;
    put_values(a, b, high, high + height * kRowBytes);
    sum = _mm512_add_ps(sum, _mm512_add_ps(a, b));
  }
  return _mm512_reduce_add_ps(sum);
}

// Task: a tile of rows.
void convert_slots(void* argument, int64_t task, int /*thread*/) {
  const auto& job = *static_cast<const Job*>(argument);
  const int64_t slot = task * kTileSide;
  const int64_t height = height_at(job, slot);
  for (int64_t r = 0; r < height; ++r) {
    const float* row = slot + r < job.args->rows ? activation_row(job, slot + r) : nullptr;
    for (int64_t t = 0; t < job.groups; t += kBlockTiles) {
      const int64_t first = t / kPartTiles * kPartTiles;
      const int64_t tiles = smaller(kPartTiles, job.groups - first);
      char* out =
          activations_at(job, first, tiles, slot) + ((t - first) * height * kParts + r) * kRowBytes;
      sums_at(job, slot + r)[t / kBlockTiles] = convert_block(row, t, job.args->k, height, out);
    }
  }
}

// The rows of a panel; those of the last one, with rows of zeros to fill it up, in `filled`.
inline const char* rows_at(const Job& job, const Task& task, const Part& part, int64_t panel) {
  const int64_t row = panel * kTileSide;
  const int64_t there = job.args->n - row;
  if (there >= kTileSide) return weight_row(job, row);
  if (part.first == 0) {
    const int64_t bytes = there * job.row_stride;
    __builtin_memcpy(task.filled, weight_row(job, row), static_cast<size_t>(bytes));
    __builtin_memset(task.filled + bytes, 0,
                     static_cast<size_t>(kTileSide * job.row_stride - bytes));
  }
  return task.filled;
}

// The codes of a block of 16 rows as two tiles.
template <typename Format>
struct Codes;

template <>
struct Codes<P4> {
  // Nibbles become numbers by a table of 32 entries, twice the 16. Bytes 1 and 2 of each word
  // change places, so that those of a lane of 16 bits, and of the next one by a shift, are
  // neighbours in the row.
  static void unpack(const char* blocks, int64_t stride, char* tile) {
    const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i table = to_bfloat16(numbers, numbers);
    const __m512i order = _mm512_set4_epi32(0x0f0d0e0c, 0x0b090a08, 0x07050604, 0x03010200);
    __m512i raw[kWords];
    P4::load_block<0>(blocks, stride, raw);
#pragma GCC unroll 8
    for (int i = 0; i < kWords; ++i) {
      const __m512i bytes = _mm512_shuffle_epi8(raw[i], order);
      put(bytes, table, tile + 128 * i);
      put(_mm512_srli_epi16(bytes, 8), table, tile + 128 * i + 64);
      put(_mm512_srli_epi16(bytes, 4), table, tile + kTileBytes + 128 * i);
      put(_mm512_srli_epi16(bytes, 12), table, tile + kTileBytes + 128 * i + 64);
    }
  }
  static void put(__m512i nibbles, __m512i table, char* row) {
    _mm512_storeu_si512(row, _mm512_permutexvar_epi16(nibbles, table));
  }
};

template <>
struct Codes<P8> {
  static void unpack(const char* blocks, int64_t stride, char* tile) {
    __m512i raw[kWords];
    __m512i words[kWords];
    P8::load_block<0>(blocks, stride, raw);
    P8::codes<0>(raw, words);
    for (int i = 0; i < kWords; ++i) put(words[i], tile + 128 * i);
    P8::load_block<1>(blocks, stride, raw);
    P8::codes<1>(raw, words);
    for (int i = 0; i < kWords; ++i) put(words[i], tile + kTileBytes + 128 * i);
  }
  static void put(__m512i codes, char* rows) {
    put_codes<P8>(codes, _mm512_set1_ps(1), code_offset<P8>(), rows);
  }
};

// Unpacks a panel's part of K; the next part of its rows is fetched meanwhile, and with the first
// one that of the next panel.
template <typename Format>
void unpack_panel(const char* rows, int64_t stride, const Part& part, char* tile, float* heads) {
  const char* blocks = rows + part.first / kBlockTiles * Format::kBytes;
  const int64_t bytes = part.tiles / kBlockTiles * Format::kBytes;
  for (int64_t r = 0; r < kTileSide; ++r) {
    prefetch(blocks + r * stride + bytes, bytes);
    if (part.first == 0) prefetch(blocks + (kTileSide + r) * stride, bytes);
  }
  for (int64_t b = 0; b < part.tiles / kBlockTiles; ++b) {
    __m512 scale;
    __m512 minimum;
    Format::load_heads(blocks + b * Format::kBytes, stride, scale, minimum);
    _mm512_storeu_ps(heads + b * kHeadFloats, scale);
    _mm512_storeu_ps(heads + b * kHeadFloats + kTileSide, minimum);
    Codes<Format>::unpack(blocks + b * Format::kBytes, stride, tile + b * kBlockTiles * kTileBytes);
  }
}

// One tile of rows, or two, and their products with a block of 4 panels, or 2 panels.
struct Pass {
  const char* x[2];     // the part of K, of each tile of rows
  int64_t heights[2];   // the second one is 0 where there is one alone
  const float* x_sums;  // of the first row, from the part's first block on
  int64_t x_stride;     // of x_sums, from row to row
  const char* weights;  // of the first panel
  int64_t panel_bytes;  // from panel to panel
  const float* heads;   // of the first panel
  float* sums;          // tile of the first tile of rows and the first panel
};

// Registers of sums 0 ... 3, activations 4 and 5, weights 6 and 7.
void configure_for(const Pass& pass) {
  const auto a = static_cast<uint8_t>(pass.heights[0]);
  const auto b = static_cast<uint8_t>(pass.heights[1]);
  if (b > 0) {
    configure_tiles({a, a, b, b, a, b, 16, 16});
  } else {
    configure_tiles({a, a, a, a, a, a, 16, 16});
  }
}

const char* x_tile(const Pass& pass, int rows, int64_t block, int64_t tile, int64_t part) {
  const int64_t index = (block * kBlockTiles + tile) * kParts + part;
  return pass.x[rows] + index * pass.heights[rows] * kRowBytes;
}

// Two tiles of rows x 2 panels.
void multiply_pair(const Pass& pass, int64_t block, char* products) {
  zero_sums();
  for (int64_t t = 0; t < kBlockTiles; ++t) {
    const char* weights = pass.weights + (block * kBlockTiles + t) * kTileBytes;
    _tile_loadd(6, weights, 64);
    _tile_loadd(7, weights + pass.panel_bytes, 64);
    for (int64_t part = 0; part < kParts; ++part) {
      _tile_loadd(4, x_tile(pass, 0, block, t, part), 64);
      _tile_loadd(5, x_tile(pass, 1, block, t, part), 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  store_sums(products, kTileBytes, 2 * kTileBytes);
}

// One tile of rows x 4 panels.
void multiply_one(const Pass& pass, int64_t block, char* products) {
  zero_sums();
  for (int64_t t = 0; t < kBlockTiles; ++t) {
    const char* weights = pass.weights + (block * kBlockTiles + t) * kTileBytes;
    for (int64_t part = 0; part < kParts; ++part) {
      _tile_loadd(4, x_tile(pass, 0, block, t, part), 64);
      _tile_loadd(6, weights, 64);
      _tile_loadd(7, weights + pass.panel_bytes, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(6, weights + 2 * pass.panel_bytes, 64);
      _tile_loadd(7, weights + 3 * pass.panel_bytes, 64);
      _tile_dpbf16ps(2, 4, 6);
      _tile_dpbf16ps(3, 4, 7);
    }
  }
  store_sums(products, kTileBytes, 2 * kTileBytes);
}

// sums (+)= a tile of products, scaled, and minima times the sums of activations.
template <typename Format>
void add_tile(const float* products, int64_t height, const float* head, const float* x_sums,
              int64_t x_stride, bool adds, float* sums) {
  const __m512 scale = _mm512_loadu_ps(head);
  const __m512 minimum = _mm512_loadu_ps(head + kTileSide);
  for (int64_t r = 0; r < height; ++r) {
    __m512 sum = adds ? _mm512_loadu_ps(sums + r * kTileSide) : _mm512_setzero_ps();
    sum = _mm512_fmadd_ps(_mm512_loadu_ps(products + r * kTileSide), scale, sum);
    if (Format::kHasMinimum) {
      sum = _mm512_fmadd_ps(minimum, _mm512_set1_ps(x_sums[r * x_stride]), sum);
    }
    _mm512_storeu_ps(sums + r * kTileSide, sum);
  }
}

// All four tiles of a block's products.
template <typename Format>
void add_block(const Pass& pass, int64_t block, bool adds, const char* products) {
  const bool pair = pass.heights[1] > 0;
  for (int i = 0; i < 4; ++i) {
    const int rows = pair ? i / 2 : 0;
    const int panel = pair ? i % 2 : i;
    add_tile<Format>(reinterpret_cast<const float*>(products + i * kTileBytes), pass.heights[rows],
                     pass.heads + (panel * kPartBlocks + block) * kHeadFloats,
                     pass.x_sums + rows * kTileSide * pass.x_stride + block, pass.x_stride, adds,
                     pass.sums + (rows * kExpertBand + panel) * kTileSide * kTileSide);
  }
}

// A part of K. A block's products are added while the next one's are multiplied.
template <typename Format>
void multiply_pass(const Pass& pass, int64_t blocks, bool adds, char* products) {
  const auto multiply = pass.heights[1] > 0 ? multiply_pair : multiply_one;
  const auto products_of = [&](int64_t block) { return products + block % 2 * 4 * kTileBytes; };
  for (int64_t block = 0; block <= blocks; ++block) {
    if (block < blocks) multiply(pass, block, products_of(block));
    stores_before_tiles();
    if (block > 0) {
      add_block<Format>(pass, block - 1, adds || block > 1, products_of(block - 1));
    }
  }
}

// The slots of a task over one part of K. Panels beyond the last one, of what the memory holds,
// fill registers up; nobody reads their sums.
template <typename Format>
void multiply_part(const Job& job, const Task& task, const Part& part) {
  int64_t configured = 0;
  for (int64_t slot = 0; slot < task.slots; slot += 2 * kTileSide) {
    const int64_t left = task.slots - slot;
    Pass pass{};
    pass.heights[0] = smaller(kTileSide, left);
    pass.heights[1] = smaller(kTileSide, left - pass.heights[0]);
    pass.x[0] = activations_at(job, part.first, part.tiles, task.slot + slot);
    pass.x[1] = activations_at(job, part.first, part.tiles, task.slot + slot + kTileSide);
    pass.x_stride = job.groups / kBlockTiles;
    pass.x_sums = sums_at(job, task.slot + slot) + part.first / kBlockTiles;
    pass.panel_bytes = part.tiles * kTileBytes;
    const int64_t filled = pass.heights[0] + pass.heights[1];
    if (filled != configured) configure_for(pass);
    configured = filled;
    const int64_t step = pass.heights[1] > 0 ? 2 : 4;
    for (int64_t p = 0; p < task.panels; p += step) {
      pass.weights = task.weights + p * pass.panel_bytes;
      pass.heads = reinterpret_cast<const float*>(task.heads) + p * kPartBlocks * kHeadFloats;
      pass.sums =
          reinterpret_cast<float*>(task.sums + (slot / kTileSide * kExpertBand + p) * kTileBytes);
      multiply_pass<Format>(pass, part.tiles / kBlockTiles, part.first > 0, task.products);
    }
  }
}

// Task: a slot tile x a band of panels; the slot tiles of a band come one after another.
template <typename Format>
void multiply_slots(void* argument, int64_t index, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const Task task = task_of(job, index, thread);
  for (Part part{}; part.first < job.groups; part.first += kPartTiles) {
    part.tiles = smaller(kPartTiles, job.groups - part.first);
    for (int64_t p = 0; p < task.panels; ++p) {
      unpack_panel<Format>(rows_at(job, task, part, task.panel + p), job.row_stride, part,
                           task.weights + p * part.tiles * kTileBytes,
                           reinterpret_cast<float*>(task.heads) + p * kPartBlocks * kHeadFloats);
    }
    stores_before_tiles();
    multiply_part<Format>(job, task, part);
  }
  release_tiles();
  store_rows(job, task);
}

MatmulWork plan(Job& job, int /*threads*/) {
  job.groups = activation_groups(job.args->weight_type, job.args->k);
  job.slots = slots_of(job.args->rows, job.args->params);
  job.row_stride = weight_row_bytes(job.args->weight_type, job.args->k);
  const int64_t bands = divide_up(divide_up(job.args->n, kTileSide), kExpertBand);
  const int64_t tasks = bands * divide_up(job.args->rows, job.args->params.expert_tile);
  const MatmulTask multiply =
      job.args->weight_type == DType::kP4 ? multiply_slots<P4> : multiply_slots<P8>;
  return {convert_slots, divide_up(job.slots, kTileSide), multiply, tasks};
}

constexpr ExpertKernel kExperts{ActivationLayout::kSlots, plan, swiglu_columns_avx2};

}  // namespace

void expert_swiglu_fast_rows_amx(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kFastRowsAmx, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_fast_rows_amx(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kFastRowsAmx, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* expert_fast_rows_amx_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
