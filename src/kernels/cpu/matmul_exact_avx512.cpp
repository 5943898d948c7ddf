// hashed with "kernels/cpu/expert_matmul.cpp"
// hashed with "kernels/cpu/expert_swiglu_avx2.cpp"
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
#include "kernels/cpu/expert_matmul.h"
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
void plan_tiles(const Job& job, MatmulWork& work) {
  const bool bands = job.args->params.tile_order == TileOrder::kBand8;
  work.multiply = bands ? multiply_band<Tiles, kBandTiles> : multiply_band<Tiles, 1>;
  work.multiply_tasks = divide_up(job.args->n, Tiles::kWeights * (bands ? kBandTiles : 1));
}

template <typename Format>
MatmulWork plan_integer(Job& job) {
  const MatmulArgs& args = *job.args;
  job.groups = activation_groups(args.weight_type, args.k);
  MatmulWork work{quantise_row<Format>, args.rows, nullptr, 0};
  if (args.n < kPanelLanes) {
    work.multiply = multiply_narrow<Format>;
    work.multiply_tasks = args.n;
  } else if (args.rows <= kDirectRows) {
    work.multiply = multiply_direct<Format>;
    work.multiply_tasks = divide_up(args.n, kPanelLanes);
  } else {
    plan_tiles<IntegerTiles<Format>>(job, work);
  }
  return work;
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
    work.multiply_tasks = divide_up(args.n, kFloatWeightRows);
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

constexpr ExpertKernel kExperts{ActivationLayout::kPlanes, plan, swiglu_columns_avx2};

}  // namespace

void matmul_exact_avx512(const MatmulArgs& args, KernelContext& context) {
  stamp(context, kExactAvx512, kSourceHash, args);
  if (args.rows == 0) return;
  const MatmulScratch layout = plane_matmul_scratch(args.weight_type, args.rows, args.k,
                                                    args.params.tile_order, thread_count(context));
  auto* memory = static_cast<char*>(scratch(context, layout.total));
  Job job{};
  job.args = &args;
  job.weights = memory + layout.weights;
  job.weights_stride = layout.weights_stride;
  job.activations = memory;
  run(context, job, plan);
}

void expert_swiglu_exact_avx512(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExactAvx512, kSourceHash, args);
  run_expert_swiglu(args, context, kExperts);
}

void expert_combine_exact_avx512(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kExactAvx512, kSourceHash, args);
  run_expert_combine(args, context, kExperts);
}

const char* matmul_exact_avx512_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cpu
