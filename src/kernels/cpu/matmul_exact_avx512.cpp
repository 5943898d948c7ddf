// Exact matmuls with AVX-512 (F, BW, VL, VNNI), in the canonical order (canonical_order.h): the
// bits of the scalar and the AVX2 kernel.
//
// Shaped around vpdpbusd with a weight row in each of 16 lanes:
//  - the blocks of 16 weight rows are unpacked to bytes and transposed as words, so that lane j
//    holds 4 codes of row j. The activations of the same 4 columns are broadcast from memory, which
//    takes no vector port, and dots, scales, sums and outputs all stay in the row's own lane.
//  - an int16 activation code is cut into a signed high and an unsigned low byte: two vpdpbusd for
//    64 products, the same as vpdpwssd on 16-bit weights, but weights take half of the registers
//    and of the instructions that unpack them.
//    Counted, not measured: the nibbles of 16 rows of a q4_1 group take 24 instructions as 16-bit
//    words, 12 as bytes.
//  - up to kDirectRows activation rows go with weights straight from the file. More rows: a tile of
//    32 weight rows is unpacked once to the same layout in memory.
//
// On one core of a busy virtual Sapphire Rapids Xeon, against the AVX2 kernel, processor time of
// alternating runs: about the same for 1 row, 1.2 to 1.6 times as fast for
// 4 rows of 4-bit weights, 1.6 to 2.2 for 8, 1.3 to 1.9 for 16 to 512. Tiles reach 105
// multiply-adds a nanosecond, about half of what vpdpbusd alone gives there (223, two for each).
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX-512 and could be the copy that a slower machine runs.
#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_avx512.hash.h"
#include "kernels/cpu/matmul_float_avx512.h"
#include "kernels/cpu/matmul_integer_avx512.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

// Tiles. Task: a band of weight tiles (a single one for TileOrder::kRow): unpack them, then take
// every token tile across the band.
template <typename Tiles, int64_t kTiles>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  constexpr int64_t kWeights = Tiles::kWeights;
  char* memory = job.weights + static_cast<uint64_t>(thread) * job.weights_stride;
  const int64_t tile_bytes = Tiles::tile_bytes(job);
  const int64_t first = task * kTiles * kWeights;
  const int64_t end = smaller(first + kTiles * kWeights, args.n);
  for (int64_t j = first; j < end; j += kWeights) {
    Tiles::unpack(job, j, smaller(kWeights, end - j), memory + (j - first) / kWeights * tile_bytes);
  }
  for (int64_t r = 0; r < args.rows; r += kTokenTile) {
    for (int64_t j = first; j < end; j += kWeights) {
      Tiles::multiply(job, memory + (j - first) / kWeights * tile_bytes, j,
                      smaller(kWeights, end - j), r, smaller(kTokenTile, args.rows - r));
    }
  }
}

template <typename Tiles>
void multiply_tiled(KernelContext& context, Job& job) {
  const int64_t n = job.args->n;
  if (job.args->params.tile_order == TileOrder::kBand8) {
    parallel_for(context, divide_up(n, kBandTiles * Tiles::kWeights),
                 multiply_band<Tiles, kBandTiles>, &job);
  } else {
    parallel_for(context, divide_up(n, Tiles::kWeights), multiply_band<Tiles, 1>, &job);
  }
}

template <typename Format>
void multiply_integer(KernelContext& context, Job& job) {
  const MatmulArgs& args = *job.args;
  parallel_for(context, args.rows, quantise_row<Format>, &job);
  if (args.n < kPanelLanes) {
    parallel_for(context, args.n, multiply_narrow<Format>, &job);
  } else if (args.rows <= kDirectRows) {
    parallel_for(context, divide_up(args.n, kPanelLanes), multiply_direct<Format>, &job);
  } else {
    multiply_tiled<IntegerTiles<Format>>(context, job);
  }
}

template <typename Format>
void multiply_float(KernelContext& context, Job& job) {
  const MatmulArgs& args = *job.args;
  if (job.columns != args.k) {
    parallel_for(context, args.rows, pad_row, &job);
    job.x = reinterpret_cast<const float*>(job.activations);
  }
  if (args.rows > kDirectRows) return multiply_tiled<FloatTiles<Format>>(context, job);
  parallel_for(context, divide_up(args.n, kFloatWeightRows), multiply_float_direct<Format>, &job);
}

}  // namespace

void matmul_exact_avx512(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactAvx512, kSourceHash, args);
  if (args.rows == 0) return;
  const MatmulScratch layout = plane_matmul_scratch(args.weight_type, args.rows, args.k,
                                                    args.params.tile_order, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  Job job{};
  job.args = &args;
  job.activations = memory;
  job.weights = memory + layout.weights;
  job.weights_stride = layout.weights_stride;
  job.groups =
      has_integer_codes(args.weight_type) ? activation_groups(args.weight_type, args.k) : 0;
  job.columns = padded_columns(args.k);
  job.x = args.x;
  job.row_stride = weight_row_bytes(args.weight_type, args.k);
  switch (args.weight_type) {
    case DType::kQ4_1:
      return multiply_integer<Q4>(context, job);
    case DType::kQ8_0:
      return multiply_integer<Q8>(context, job);
    case DType::kP4:
      return multiply_integer<P4>(context, job);
    case DType::kP8:
      return multiply_integer<P8>(context, job);
    case DType::kF32:
      return multiply_float<F32>(context, job);
    case DType::kF16:
      return multiply_float<F16>(context, job);
    case DType::kBF16:
      return multiply_float<BF16>(context, job);
    default:
      return;  // the table does not support it
  }
}

const char* matmul_exact_avx512_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
