// The exact expert matmuls on matrix instructions: 16 weight rows are the A operand of
// mma.m16n8k16, 8 pairs of a row and an expert its columns, which do not depend on each other.
//
// Few rows: a block is one strip of one expert and one pair, its 8 warps the 8 segments of K, since
// there are too few strips to fill the chip otherwise; each warp rounds the columns of x that it
// needs into shared memory. Many rows: x is rounded once, a warp takes a whole strip and up to 32
// pairs of its expert, segment after segment, and the 8 warps of a block find the same operands in
// the cache; nothing is shared and nobody waits. Both perform the same operations in the same order
// for a pair, and they are those of the plain matmul (gemv_mma.cuh).
//
// Prefill of 2,048 tokens of synth:qwen3.6-35b-a3b (4 layers, p4, H200, 2026-11-30): 113,900
// tokens/s; 90,900 with 186 registers, no spills and one block a multiprocessor.
#include "kernels/cuda/expert_input.cuh"
#include "kernels/cuda/expert_matmul_mma.hash.h"
#include "kernels/cuda/expert_products.cuh"
#include "kernels/cuda/expert_tile.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/gemv_geometry.h"
#include "kernels/cuda/operand_rounding.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

constexpr int kThreads = kGemvSegments * 32;
constexpr int kWarps = kThreads / 32;
constexpr int kGroups = 4;  // of 8 pairs, of one tile

template <TileType kType>
inline constexpr int kPlanes = kType == TileType::kBf16 ? 2 : 1;

// A lane's columns of tile `index` of a row of x, zeros beyond k.
__device__ __forceinline__ LaneColumns load_columns(const Products& call, const float* row,
                                                    int index) {
  const int column = index * static_cast<int>(kTileColumns) + static_cast<int>(threadIdx.x % 4) * 4;
  LaneColumns v;
#pragma unroll
  for (int i = 0; i < 4; ++i) v.of16[i] = load_four(row, column + 16 * i, call.k, call.vector);
  return v;
}

// What a warp of multiply_few() has of x: up to 8 tiles, one for each four lanes to round.
template <TileType kType>
struct StagedTiles {
  static constexpr int kTiles = 8;
  uint4 operands[kPlanes<kType>][kTiles][8];
  uint2 scales[kTiles];

  // All lanes of the warp call it; tiles index ... end - 1 are there, up to kTiles.
  __device__ __forceinline__ void stage(const Products& call, const float* x, int index, int end) {
    const auto lane = threadIdx.x % 32, four = lane / 4, lane4 = lane % 4;
    const int own = index + static_cast<int>(four);
    LaneColumns v{};
    if (own < end) v = load_columns(call, x, own);
    __syncwarp();  // the tiles before are read
    stage_columns<kType>(v, own < end, shared_address(&operands[0][four]) + lane4 * 8,
                         sizeof(operands[0]), shared_address(&scales[four]), lane4);
    __syncwarp();
  }

  __device__ __forceinline__ LaneOperands read(int tile) const {
    const int lane4 = static_cast<int>(threadIdx.x % 4);
    LaneOperands x;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      x.high[i] = operands[0][tile][2 * lane4 + i];
      if constexpr (kType == TileType::kBf16) x.low[i] = operands[1][tile][2 * lane4 + i];
    }
    return x;
  }
};

// A warp's segment of a strip of each matrix times one row of x, whose sums are those of all 8
// columns of the mma.
template <TileType kType>
__device__ __forceinline__ void multiply_segment(const Products& call, const float* x,
                                                 int64_t strip, int segment,
                                                 StagedTiles<kType>& staged, float (&total)[2][4]) {
  constexpr int64_t kTile = tile_bytes(kType);
  const auto lane = threadIdx.x % 32;
  const int begin = segment_begin(segment, call.k_tiles);
  const int end = segment_begin(segment + 1, call.k_tiles);
  int64_t at = (strip * call.k_tiles + begin) * kTile;
  LaneTile<kType> next[2];
  const auto load_next = [&] {
    next[0].load(call.weights[0] + at, lane);
    if (call.matrices == 2) next[1].load(call.weights[1] + at, lane);
    at += kTile;
  };
  if (begin < end) load_next();
  for (int index = begin; index < end; ++index) {
    const int tile = (index - begin) % StagedTiles<kType>::kTiles;
    if (tile == 0) staged.stage(call, x, index, end);
    const LaneTile<kType> weights[2] = {next[0], next[1]};
    if (index + 1 < end) load_next();
    const LaneOperands operands = staged.read(tile);
    float scale[2] = {}, sum[2] = {};
    if constexpr (kType != TileType::kBf16) {
      const uint2 bits = staged.scales[tile];
      scale[0] = scale[1] = __uint_as_float(bits.x);
      sum[0] = sum[1] = __uint_as_float(bits.y);
    }
    add_product<kType>(weights[0], operands, scale, sum, total[0]);
    if (call.matrices == 2) add_product<kType>(weights[1], operands, scale, sum, total[1]);
  }
}

// Grid: (expert_strips(), pairs).
template <TileType kType>
__global__ void __launch_bounds__(kThreads) multiply_few(const __grid_constant__ Products call) {
  __shared__ StagedTiles<kType> staged[kWarps];
  __shared__ float partials[2][kGemvSegments][kTileRows];
  release_next();
  wait_for_previous();
  const PairTile pair = tile_of<true>(call);
  const int64_t first_row = int64_t{pair.expert} * call.n;
  const int64_t strip = first_row / kTileRows + blockIdx.x;
  if (strip * kTileRows >= first_row + call.n) return;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* x = call.x + int64_t{pair.first / call.pairs_of_x} * call.k;
  float total[2][4] = {};
  multiply_segment<kType>(call, x, strip, warp, staged[warp], total);
  if (lane % 4 == 0) {
#pragma unroll
    for (int matrix = 0; matrix < 2; ++matrix) {
      partials[matrix][warp][lane / 4] = total[matrix][0];
      partials[matrix][warp][lane / 4 + 8] = total[matrix][2];
    }
  }
  __syncthreads();
  const auto in_strip = static_cast<int>(threadIdx.x);
  const int64_t column = strip * kTileRows + in_strip - first_row;
  if (in_strip >= kTileRows || column < 0 || column >= call.n) return;
  float result[2];
#pragma unroll
  for (int matrix = 0; matrix < 2; ++matrix) {
    SegmentTree<1> tree;
#pragma unroll
    for (int s = 0; s < kGemvSegments; ++s) tree.add(s, {{partials[matrix][s][in_strip], 0, 0, 0}});
    result[matrix] = tree.all[0][0];
  }
  call.out[int64_t{pair.first} * call.n + column] =
      call.matrices == 1 ? result[0] : swiglu_element(result[0], result[1]);
}

// Four lanes a tile of a row.
template <TileType kType>
__global__ void __launch_bounds__(kThreads)
    round_rows(const __grid_constant__ Products call, int64_t rows, uint2* high, uint2* low,
               float2* scales) {
  release_next();
  wait_for_previous();
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t item = thread / 4;
  const bool is_there = item < rows * call.k_tiles;
  const int64_t row = is_there ? item / call.k_tiles : 0;
  const auto index = static_cast<int>(is_there ? item % call.k_tiles : 0);
  const LaneColumns columns = load_columns(call, call.x + row * call.k, index);
  const int64_t first = item * 16 + threadIdx.x % 4;  // of 4 columns each
  const auto put = [&](int i, uint2 operands, uint2 rest) {
    if (!is_there) return;
    high[first + 4 * i] = operands;
    if constexpr (kType == TileType::kBf16) low[first + 4 * i] = rest;
  };
  const auto put_scale = [&](float2 scale) {
    if (is_there) scales[item] = scale;
  };
  round_columns<kType>(columns, threadIdx.x % 4, put, put_scale);
}

// A strip of one matrix times the pairs of a tile, of which a lane has results of `groups` groups.
// x_rows: the row of x of pair lane / 4 of each group.
template <TileType kType>
__device__ __forceinline__ void multiply_strip(const Products& call, const RoundedInput& input,
                                               const uint8_t* tile, int groups,
                                               const int (&x_rows)[kGroups],
                                               SegmentTree<kGroups>& tree) {
  constexpr int64_t kTile = tile_bytes(kType);
  const int lane = threadIdx.x % 32;
  LaneTile<kType> next;
  next.load(tile, lane);
  int index = 0;
#pragma unroll 1
  for (int segment = 0; segment < kGemvSegments; ++segment) {
    float sum[kGroups][4] = {};
    const int end = segment_begin(segment + 1, call.k_tiles);
#pragma unroll 1
    for (; index < end; ++index) {
      const LaneTile<kType> weights = next;
      tile += kTile;
      if (index + 1 < call.k_tiles) next.load(tile, lane);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (group >= groups) break;
        const int64_t item = int64_t{x_rows[group]} * call.k_tiles + index;
        LaneOperands x;
        float x_scale[2] = {}, x_sum[2] = {};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          x.high[i] = input.high[8 * item + lane % 4 * 2 + i];
          if constexpr (kType == TileType::kBf16) x.low[i] = input.low[8 * item + lane % 4 * 2 + i];
        }
        if constexpr (kType != TileType::kBf16) {
          const float2 own = input.scales[item];
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const int from = (lane % 4 * 2 + i) * 4;  // a lane of pair 2t + i
            x_scale[i] = __shfl_sync(0xffffffffU, own.x, from);
            x_sum[i] = __shfl_sync(0xffffffffU, own.y, from);
          }
        }
        add_product<kType>(weights, x, x_scale, x_sum, sum[group]);
      }
    }
    tree.add(segment, sum);
  }
}

// Grid: (groups of kWarps strips, tiles of pairs).
template <TileType kType>
__global__ void __launch_bounds__(kThreads, 2)
    multiply_many(const __grid_constant__ Products call,
                  const __grid_constant__ RoundedInput input) {
  release_next();
  wait_for_previous();
  const PairTile pairs = tile_of<false>(call);
  if (pairs.count == 0) return;
  const int64_t first_row = int64_t{pairs.expert} * call.n;
  const int64_t strip =
      first_row / kTileRows + static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (strip * kTileRows >= first_row + call.n) return;
  const int lane = threadIdx.x % 32;
  const int* order = call.groups.order + pairs.first;
  const int groups = (pairs.count + 7) / 8;
  int x_rows[kGroups];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    // Columns beyond the pairs repeat the last one; nobody stores their results.
    x_rows[group] = order[min(group * 8 + lane / 4, pairs.count - 1)] / call.pairs_of_x;
  }
  const int64_t at = strip * call.k_tiles * tile_bytes(kType);
  SegmentTree<kGroups> first, second;
  multiply_strip<kType>(call, input, call.weights[0] + at, groups, x_rows, first);
  if (call.matrices == 2) {
    multiply_strip<kType>(call, input, call.weights[1] + at, groups, x_rows, second);
  }
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int pair = group * 8 + lane % 4 * 2 + i % 2;
      const int64_t column = strip * kTileRows + lane / 4 + i / 2 * 8 - first_row;
      if (pair >= pairs.count || column < 0 || column >= call.n) continue;
      const float value = call.matrices == 1
                              ? first.all[group][i]
                              : swiglu_element(first.all[group][i], second.all[group][i]);
      call.out[int64_t{order[pair]} * call.n + column] = value;
    }
  }
}

template <TileType kType>
struct Kernels {
  static void few(const Products& products, dim3 grid, KernelContext& context) {
    launch(context, multiply_few<kType>, grid, dim3(kThreads), 0, products);
  }
  static void many(const Products& products, const RoundedInput& input, int64_t x_rows, dim3 grid,
                   KernelContext& context) {
    const int64_t blocks = (4 * x_rows * products.k_tiles + kThreads - 1) / kThreads;
    launch(context, round_rows<kType>, dim3(static_cast<uint32_t>(blocks)), dim3(kThreads), 0,
           products, x_rows, reinterpret_cast<uint2*>(input.high),
           reinterpret_cast<uint2*>(input.low), input.scales);
    launch(context, multiply_many<kType>, grid, dim3(kThreads), 0, products, input);
  }
};

// Calls run(Kernels<type>()).
template <typename Run>
void with_kernels(TileType type, const Run& run) {
  switch (type) {
    case TileType::kP4:
      return run(Kernels<TileType::kP4>());
    case TileType::kP8:
      return run(Kernels<TileType::kP8>());
    case TileType::kF16:
      return run(Kernels<TileType::kF16>());
    case TileType::kBf16:
      return run(Kernels<TileType::kBf16>());
    case TileType::kF32:
      return;
  }
}

struct Mma {
  static constexpr int kTilePairs = 8 * kGroups;
  static uint64_t input_bytes(TileType type, int64_t x_rows, int64_t k) {
    return rounded_bytes(type, x_rows, tiles_of(k));
  }

  static void run_few(const Products& products, TileType type, int64_t pairs,
                      KernelContext& context) {
    const dim3 grid(static_cast<uint32_t>(expert_strips(products)), static_cast<uint32_t>(pairs));
    with_kernels(type, [&](auto kernels) { kernels.few(products, grid, context); });
  }
  static void run_many(const Products& products, TileType type, int64_t x_rows, int64_t tiles,
                       void* memory, KernelContext& context) {
    const RoundedInput input = rounded_at(memory, type, x_rows, products.k_tiles);
    const dim3 grid(static_cast<uint32_t>((expert_strips(products) + kWarps - 1) / kWarps),
                    static_cast<uint32_t>(tiles));
    with_kernels(type, [&](auto kernels) { kernels.many(products, input, x_rows, grid, context); });
  }
};

}  // namespace

void expert_matmul_swiglu_exact_mma(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  stamp(context, kExpertsMma, kSourceHash, args);
  run_experts<Mma>(args, context);
}

void expert_matmul_combine_exact_mma(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  stamp(context, kExpertsMma, kSourceHash, args);
  run_experts<Mma>(args, context);
}

std::string supports_experts_mma(const OpCall& call) {
  if (call.weight_type == DType::kF32) return "f32 weights do not fit the half-precision units";
  return supports_experts_simt(call);
}

uint64_t experts_mma_scratch_bytes(const OpCall& call, const KernelParams& /*params*/,
                                   int /*threads*/) {
  return expert_scratch<Mma>(call).bytes;
}

const char* experts_mma_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
