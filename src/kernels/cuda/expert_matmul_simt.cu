// The exact expert matmuls with float32 activations: a block is one strip of one expert and up to 8
// pairs of a row and that expert, its 8 warps the 8 segments of K, as in gemv_simt.cu. Kept simple,
// as that one: it serves f32 weights and checks the matrix kernels.
#include "kernels/cuda/expert_matmul_simt.hash.h"
#include "kernels/cuda/expert_products.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/gemv_simt_tile.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr int kThreads = kGemvSegments * 32;

// Grid: (expert_strips(), pairs or tiles of kPairs pairs).
template <TileType kType, int kPairs>
__global__ void __launch_bounds__(kThreads) multiply_pairs(const __grid_constant__ Products call) {
  __shared__ float partials[2][kGemvSegments][kPairs][kTileRows];
  constexpr int kTile = static_cast<int>(tile_bytes(kType));
  release_next();
  wait_for_previous();
  const PairTile pairs = tile_of<kPairs == 1>(call);
  if (pairs.count == 0) return;
  const int64_t first_row = int64_t{pairs.expert} * call.n;
  const int64_t strip = first_row / kTileRows + blockIdx.x;
  if (strip * kTileRows >= first_row + call.n) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto pair_at = [&](int i) {
    return kPairs == 1 ? pairs.first : call.groups.order[pairs.first + i];
  };
  const float* x[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    const int pair = pair_at(i < pairs.count ? i : 0);
    x[i] = call.x + int64_t{pair / call.pairs_of_x} * call.k;
  }
  const int begin = segment_begin(warp, call.k_tiles), end = segment_begin(warp + 1, call.k_tiles);
  for (int matrix = 0; matrix < call.matrices; ++matrix) {
    const uint8_t* tile = call.weights[matrix] + (strip * call.k_tiles + begin) * kTile;
    float sum[2][kPairs] = {};
    for (int index = begin; index < end; ++index, tile += kTile) {
      multiply_tile<kType>(tile, lane, pairs.count, sum, [&](int i, int column) {
        return load_four(x[i], index * 64 + column, call.k, call.vector);
      });
    }
    store_partials(sum, lane, partials[matrix][warp]);
  }
  __syncthreads();
  const int i = static_cast<int>(threadIdx.x) / static_cast<int>(kTileRows);
  const int in_strip = static_cast<int>(threadIdx.x) % static_cast<int>(kTileRows);
  const int64_t column = strip * kTileRows + in_strip - first_row;
  if (i >= pairs.count || column < 0 || column >= call.n) return;
  const float first = combined_segments(partials[0], i, in_strip);
  call.out[int64_t{pair_at(i)} * call.n + column] =
      call.matrices == 1 ? first
                         : swiglu_element(first, combined_segments(partials[1], i, in_strip));
}

template <int kPairs>
auto kernel_of(TileType type) -> void (*)(Products) {
  switch (type) {
    case TileType::kP4:
      return multiply_pairs<TileType::kP4, kPairs>;
    case TileType::kP8:
      return multiply_pairs<TileType::kP8, kPairs>;
    case TileType::kF16:
      return multiply_pairs<TileType::kF16, kPairs>;
    case TileType::kBf16:
      return multiply_pairs<TileType::kBf16, kPairs>;
    case TileType::kF32:
      return multiply_pairs<TileType::kF32, kPairs>;
  }
  return nullptr;
}

struct Simt {
  static constexpr int kTilePairs = 8;
  static uint64_t input_bytes(TileType /*type*/, int64_t /*x_rows*/, int64_t /*k*/) { return 0; }

  static void run_few(const Products& products, TileType type, int64_t pairs,
                      KernelContext& context) {
    run(kernel_of<1>(type), products, pairs, context);
  }
  static void run_many(const Products& products, TileType type, int64_t /*x_rows*/, int64_t tiles,
                       void* /*input*/, KernelContext& context) {
    run(kernel_of<kTilePairs>(type), products, tiles, context);
  }

 private:
  static void run(void (*kernel)(Products), const Products& products, int64_t y,
                  KernelContext& context) {
    const dim3 grid(static_cast<uint32_t>(expert_strips(products)), static_cast<uint32_t>(y));
    launch(context, kernel, grid, dim3(kThreads), 0, products);
  }
};

}  // namespace

void expert_matmul_swiglu_exact_simt(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExpertsSimt, kSourceHash, args);
  run_experts<Simt>(args, context);
}

void expert_matmul_combine_exact_simt(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kExpertsSimt, kSourceHash, args);
  run_experts<Simt>(args, context);
}

void expert_matmul_swiglu_reference(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, "reference", kSourceHash, args);
  run_experts<Simt>(args, context);
}

void expert_matmul_combine_reference(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, "reference", kSourceHash, args);
  run_experts<Simt>(args, context);
}

std::string supports_experts_simt(const OpCall& call) {
  if (!tile_type(call.weight_type)) {
    return "weights of type " + std::string(dtype_name(call.weight_type)) + " have no tiles";
  }
  if (call.groups <= kMostExperts) return "";
  return std::to_string(call.groups) + " experts; it takes up to " + std::to_string(kMostExperts);
}

uint64_t experts_simt_scratch_bytes(const OpCall& call, const KernelParams& /*params*/,
                                    int /*threads*/) {
  return expert_scratch<Simt>(call).bytes;
}

const char* experts_simt_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
