// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
// Exact matmuls with AVX2, FMA and F16C, in the canonical order (canonical_order.h).
//
// Shaped for one stream over the weights, whatever the number of rows:
//  - up to kDirectRows activation rows: 8 weight rows at a time are unpacked from the file's blocks
//    into registers and multiplied with every activation row. Two weight rows share a register, one
//    in each half, so that two rounds of horizontal adds leave the 8 dots of a block in the 8 lanes
//    of one register: one conversion and one fma for 8 outputs.
//  - more rows: activations are interleaved by 8 rows, a tile of weights is unpacked once, and each
//    multiply-add of a broadcast pair of weight codes serves 8 rows in 8 lanes, without any
//    horizontal add. Rows are padded with zeros to 8; a padded row is never stored.
// The block's dot is an exact integer either way, so both give the same bits.
//
// Only intrinsics and plain types in here: an inline function of the standard library would be
// compiled for AVX2 and could be the copy that a slower machine runs.
#include "kernels/cpu/canonical_order.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_exact_avx2.hash.h"
#include "kernels/cpu/matmul_float_avx2.h"
#include "kernels/cpu/matmul_integer_avx2.h"
#include "kernels/cpu/matmul_layout.h"

namespace reckon::kernels::cpu {
namespace {

// Tiles. Task: a band of weight tiles (a single one for TileOrder::kRow): unpack them, then take
// every token tile across the band.
template <typename Tiles, int64_t kTiles>
void multiply_band(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const MatmulArgs& args = *job.args;
  char* memory = job.weights + static_cast<uint64_t>(thread) * job.weights_stride;
  const int64_t tile_bytes = Tiles::tile_bytes(job);
  const int64_t first = task * kTiles * kWeightTile;
  const int64_t end = smaller(first + kTiles * kWeightTile, args.n);
  for (int64_t j = first; j < end; j += kWeightTile) {
    Tiles::unpack(job, j, smaller(kWeightTile, end - j),
                  memory + (j - first) / kWeightTile * tile_bytes);
  }
  for (int64_t r = 0; r < args.rows; r += kTokenTile) {
    for (int64_t j = first; j < end; j += kWeightTile) {
      Tiles::multiply(job, memory + (j - first) / kWeightTile * tile_bytes, j,
                      smaller(kWeightTile, end - j), r, smaller(kTokenTile, args.rows - r));
    }
  }
}

template <typename Tiles>
void plan_tiles(const Job& job, MatmulWork& work) {
  const bool bands = job.args->params.tile_order == TileOrder::kBand8;
  work.multiply = bands ? multiply_band<Tiles, kBandTiles> : multiply_band<Tiles, 1>;
  work.multiply_tasks = divide_up(job.args->n, kWeightTile * (bands ? kBandTiles : 1));
}

template <typename Format>
MatmulWork plan_integer(Job& job) {
  const int64_t rows = job.args->rows;
  job.groups = activation_groups(job.args->weight_type, job.args->k);
  MatmulWork work;
  if (rows > kDirectRows) {
    work.prepare = quantise_tile<Format>;
    work.prepare_tasks = divide_up(rows, kTileRows);
    plan_tiles<IntegerTiles<Format>>(job, work);
    return work;
  }
  static constexpr MatmulTask kTasks[kDirectRows] = {
      multiply_direct<Format, 1>, multiply_direct<Format, 2>, multiply_direct<Format, 3>,
      multiply_direct<Format, 4>, multiply_direct<Format, 5>, multiply_direct<Format, 6>,
      multiply_direct<Format, 7>, multiply_direct<Format, 8>};
  return {quantise_row<Format>, rows, kTasks[rows - 1], divide_up(job.args->n, kDirectWeightRows)};
}

template <typename Format>
MatmulWork plan_float(Job& job) {
  const MatmulArgs& args = *job.args;
  MatmulWork work;
  job.columns = padded_columns(args.k);
  job.x = args.x;
  if (job.columns != args.k || job.sources != nullptr) {
    work.prepare = pad_row;
    work.prepare_tasks = args.rows;
    job.x = reinterpret_cast<const float*>(job.activations);
  }
  if (args.rows > kDirectRows) {
    plan_tiles<FloatTiles<Format>>(job, work);
  } else {
    work.multiply = multiply_float_direct<Format>;
    work.multiply_tasks = divide_up(args.n, kDirectWeightRows);
  }
  return work;
}

MatmulWork plan(Job& job, int /*threads*/) {
  job.row_stride = weight_row_bytes(job.args->weight_type, job.args->k);
  switch (job.args->weight_type) {
    case DType::kQ4_1:
      return plan_integer<Q4>(job);
    case DType::kQ8_0:
      return plan_integer<Q8>(job);
    case DType::kP4:
      return plan_integer<P4>(job);
    case DType::kP8:
      return plan_integer<P8>(job);
    case DType::kF32:
      return plan_float<F32>(job);
    case DType::kF16:
      return plan_float<F16>(job);
    case DType::kBF16:
      return plan_float<BF16>(job);
    default:
      return {};  // the table does not support it
  }
}

constexpr ExpertKernel kExperts{ActivationLayout::kTiles, plan, swiglu_columns_avx2};

}  // namespace

void matmul_exact_avx2(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactAvx2, kSourceHash, args);
  if (args.rows == 0) return;
  const MatmulScratch layout = tiled_matmul_scratch(args.weight_type, args.rows, args.k,
                                                    args.params.tile_order, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  Job job{};
  job.args = &args;
  job.weights = memory + layout.weights;
  job.weights_stride = layout.weights_stride;
  job.activations = memory;
  run(context, job, plan);
}

void expert_swiglu_exact_avx2(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExactAvx2, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_exact_avx2(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kExactAvx2, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* matmul_exact_avx2_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
