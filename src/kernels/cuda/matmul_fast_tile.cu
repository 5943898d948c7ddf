#include "kernels/cuda/matmul_fast_tile.h"

// hashed with "kernels/cuda/matmul_fast_input.cu"
// hashed with "kernels/cuda/matmul_fast_plan.cpp"
// hashed with "kernels/cuda/matmul_fast_tile_bf16.cu"
// hashed with "kernels/cuda/matmul_fast_tile_f16.cu"
// hashed with "kernels/cuda/matmul_fast_tile_p4.cu"
// hashed with "kernels/cuda/matmul_fast_tile_p8.cu"

#include <type_traits>

#include "kernels/cuda/matmul_fast_input.h"
#include "kernels/cuda/matmul_fast_plan.h"
#include "kernels/cuda/matmul_fast_tile.hash.h"
#include "kernels/cuda/matmul_fast_tile_launch.cuh"
#include "kernels/cuda/queue.h"

namespace reckon::kernels::cuda {
namespace {

constexpr int64_t rounded_up(int64_t value, int64_t step) {
  return (value + step - 1) / step * step;
}

// The call's scratch: converted activations (matmul_fast_input.h), then scales [rows].
int64_t input_bytes(int64_t rows, int64_t k) {
  return rounded_up((tiles_of(k) * padded_tokens(rows) + kTokenSlack) * kTileColumns * 2, 256);
}

struct Gpu {
  int multiprocessors = 0;
  TileUnit unit = TileUnit::kMma;
};

Gpu current_device(KernelContext& context) {
  Gpu device;
  int index = 0, major = 0;
  check(context, cudaGetDevice(&index));
  check(context,
        cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, index));
  check(context, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
  if (major == 9) device.unit = TileUnit::kWgmma;
  return device;
}

// Tokens of the mma kernel's tile; it knows no slices and no split.
TileCut mma_cut(int64_t rows) {
  return {1, rows <= 16 ? 16 : rows <= 32 ? 32 : rows <= 64 ? 64 : 128, 1};
}

// Converts x and multiplies it with the parts that `problem` names; sizes not set yet are set here.
void run(KernelContext& context, const float* x, DType weight_type, int64_t rows, int64_t k,
         bool swiglu, TileShape shape, TileProblem problem, const TileCut* forced,
         const TileUnit* unit) {
  Queue& q = queue(context);
  const TileType type = *fast_tile_type(weight_type);
  const bool bf16 = type == TileType::kBf16;
  const int64_t padded = padded_tokens(rows);
  const auto x_bytes = static_cast<uint64_t>(input_bytes(rows, k));
  auto* base = static_cast<uint8_t*>(scratch(context, x_bytes + static_cast<uint64_t>(rows) * 4));
  auto* scales = reinterpret_cast<float*>(base + x_bytes);
  const InputLaunch input =
      convert_input(x, rows, k, bf16, InputOrder::kTiles, padded, base, scales, q.stream);
  note_launch(context, input.kernel, input.grid, input.block, 0);
  check(context, input.error);

  const Gpu device = current_device(context);
  int64_t n = 0;
  for (int i = 0; i < (swiglu ? 1 : problem.parts); ++i) n += problem.n[i];
  TileForm form;
  form.unit = unit != nullptr ? *unit : device.unit;
  form.cut = forced != nullptr ? *forced
             : form.unit == TileUnit::kMma
                 ? mma_cut(rows)
                 : tile_cut(shape, swiglu, rows, n, k, device.multiprocessors);
  form.swiglu = swiglu;
  form.overlap = q.overlap;
  form.multiprocessors = device.multiprocessors;
  form.stream = q.stream;
  const int tile_rows = form.unit == TileUnit::kMma ? (swiglu ? 64 : 128)
                        : swiglu                    ? 128
                                                    : 128 * form.cut.slices;
  if (swiglu) problem.parts = 1;
  for (int i = 0; i < problem.parts; ++i) {
    problem.first_tile[i + 1] = problem.first_tile[i] + (problem.n[i] + tile_rows - 1) / tile_rows;
  }
  problem.x = base;
  problem.scales = bf16 ? nullptr : scales;
  problem.rows = static_cast<int32_t>(rows);
  problem.padded_rows = static_cast<int32_t>(padded);
  problem.k_blocks = static_cast<int32_t>(tiles_of(k));
  problem.token_tiles = static_cast<int32_t>((rows + form.cut.tokens - 1) / form.cut.tokens);
  problem.tiles = problem.first_tile[problem.parts] * problem.token_tiles;
  problem.split = form.cut.split;
  const TileLaunch launch = type == TileType::kP4    ? launch_tiles_p4(form, problem)
                            : type == TileType::kP8  ? launch_tiles_p8(form, problem)
                            : type == TileType::kF16 ? launch_tiles_f16(form, problem)
                                                     : launch_tiles_bf16(form, problem);
  note_launch(context, launch.kernel, launch.grid, launch.block, launch.shared_bytes);
  check(context, launch.error);
}

TileProblem problem_of(const MatmulArgs& args) {
  TileProblem problem;
  problem.weight[0] = static_cast<const uint8_t*>(args.weight);
  problem.out[0] = args.out;
  problem.n[0] = static_cast<int32_t>(args.n);
  return problem;
}

TileProblem problem_of(const MatmulGroupArgs& args) {
  TileProblem problem;
  problem.parts = args.count;
  for (int i = 0; i < args.count; ++i) {
    problem.weight[i] = static_cast<const uint8_t*>(args.parts[i].weight);
    problem.out[i] = args.parts[i].out;
    problem.n[i] = static_cast<int32_t>(args.parts[i].n);
  }
  return problem;
}

TileProblem problem_of(const MatmulSwigluArgs& args) {
  TileProblem problem;
  problem.weight[0] = static_cast<const uint8_t*>(args.gate);
  problem.weight[1] = static_cast<const uint8_t*>(args.up);
  problem.out[0] = args.out;
  problem.n[0] = problem.n[1] = static_cast<int32_t>(args.n);
  return problem;
}

template <typename Args>
void multiply(const Args& args, KernelContext& context, const TileCut* cut = nullptr,
              const TileUnit* unit = nullptr) {
  stamp(context, kFastTile, kSourceHash, args);
  run(context, args.x, args.weight_type, args.rows, args.k, std::is_same_v<Args, MatmulSwigluArgs>,
      args.params.tile, problem_of(args), cut, unit);
}

constexpr TileUnit kPortable = TileUnit::kMma;

}  // namespace

void matmul_fast_tile(const MatmulArgs& args, KernelContext& context) {
  multiply(args, context);
}

void matmul_group_fast_tile(const MatmulGroupArgs& args, KernelContext& context) {
  multiply(args, context);
}

void matmul_swiglu_fast_tile(const MatmulSwigluArgs& args, KernelContext& context) {
  multiply(args, context);
}

void matmul_fast_tile_cut(const MatmulArgs& args, const TileCut& cut, KernelContext& context) {
  multiply(args, context, &cut);
}

void matmul_fast_tile_mma(const MatmulArgs& args, KernelContext& context) {
  multiply(args, context, nullptr, &kPortable);
}

void matmul_group_fast_tile_mma(const MatmulGroupArgs& args, KernelContext& context) {
  multiply(args, context, nullptr, &kPortable);
}

void matmul_swiglu_fast_tile_mma(const MatmulSwigluArgs& args, KernelContext& context) {
  multiply(args, context, nullptr, &kPortable);
}

KernelParams fast_tile_effective(const OpCall& call, const KernelParams& wanted,
                                 const Device& device) {
  KernelParams params;
  if (device.features != "sm_90") return params;
  const auto cut = [&](TileShape shape) {
    return tile_cut(shape, call.op == Op::kMatmulSwiglu, call.rows, call.n, call.k, device.cores);
  };
  if (!(cut(wanted.tile) == cut(TileShape::kAuto))) params.tile = wanted.tile;
  return params;
}

const char* matmul_fast_tile_hash() {
  return kSourceHash;
}

std::string supports_fast_tile(const OpCall& call) {
  if (fast_tile_type(call.weight_type)) return "";
  return "it multiplies p4, p8, f16 and bf16 weights";
}

uint64_t fast_tile_scratch_bytes(const OpCall& call, const KernelParams& /*params*/,
                                 int /*threads*/) {
  return static_cast<uint64_t>(input_bytes(call.rows, call.k) + call.rows * 4);
}

int fast_tile_preference(const OpCall& call) {
  // fast_cublas has 10. On an H200, 32 to 2,048 rows: p4 and p8 are faster here, by up to 3 times,
  // or come within 9 % (weights of 1536 × 576). f16 and bf16 have nothing to unpack: small ones are
  // up to 27 % faster there once the prompt is long.
  const TileType type = fast_tile_type(call.weight_type).value_or(TileType::kP4);
  const bool plain = type == TileType::kF16 || type == TileType::kBf16;
  return plain && call.rows > 256 && call.n * call.k <= int64_t{1} << 22 ? 5 : 20;
}

}  // namespace reckon::kernels::cuda
