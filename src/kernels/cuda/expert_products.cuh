// What the expert matmuls of either arithmetic have in common: both ops as products of pairs of a
// row and an expert, which rows make a slab, what lies where in scratch, and the sum of a combine.
//
// With few rows (decode, verify) a pair has blocks of its own, and nothing has to be sorted; with
// many, pairs are grouped by expert first (expert_groups.cuh). A combine keeps the products of its
// pairs in scratch and adds them up in the order of the selection. Rows go in slabs, which bounds
// the scratch.
#pragma once

#include <algorithm>

#include "kernels/cuda/expert_groups.cuh"
#include "kernels/cuda/row_chunks.cuh"
#include "kernels/cuda/tile_type.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda {

inline constexpr int64_t kFewRows = 16;  // up to these, a pair has blocks of its own
inline constexpr int64_t kSlabRows = 1024;

// out[pair, :] = the expert's matrix times x, or swiglu of two matrices.
struct Products {
  const float* x;          // [pairs / pairs_of_x, k]
  const float* selection;  // [pairs / top_k, 2 * top_k]
  const uint8_t* weights[2];
  float* out;         // [pairs, n]
  PairGroups groups;  // null pointers: block y is pair y
  int pairs_of_x;     // that read the same row of x: top_k, or 1
  int matrices;       // 2 for swiglu
  int top_k, n, k, k_tiles;
  bool vector;  // rows of x may be read 16 bytes at a time
};

// The pairs of a block.
template <bool kFew>
__device__ __forceinline__ PairTile tile_of(const Products& call) {
  const auto y = static_cast<int>(blockIdx.y);
  if constexpr (kFew) {
    return {selected_expert(call.selection, y / call.top_k, call.top_k, y % call.top_k), y, 1};
  }
  if (y >= *call.groups.tile_count) return {0, 0, 0};
  return call.groups.tiles[y];
}

// Strips that an expert's rows can touch: where n is no multiple of one, an expert may begin
// within.
[[nodiscard]] inline int64_t expert_strips(const Products& call) {
  return strips_of(call.n) + (call.n % kTileRows == 0 ? 0 : 1);
}

inline constexpr int kAddThreads = 256;

// One thread an output: the weighted sum over a row's pairs in the order of the selection.
static __global__ void __launch_bounds__(kAddThreads)
    add_pairs(const float* products, const float* selection, float* out, int64_t rows,
              int64_t top_k, int64_t n) {
  release_next();
  wait_for_previous();
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kAddThreads + threadIdx.x;
  const int64_t row = at / n;
  if (row >= rows) return;
  const float* own = products + row * top_k * n + at % n;
  float sum = 0;
  for (int64_t j = 0; j < top_k; ++j) {
    sum = __fadd_rn(sum, __fmul_rn(selected_weight(selection, row, top_k, j), own[j * n]));
  }
  out[at] = sum;
}

// What lies where in a call's scratch, in bytes. Method: kTilePairs, the pairs of a tile, and
// input_bytes(type, x rows, k), what it keeps of x where rows are many.
struct ExpertScratch {
  uint64_t tiles = 0;       // after the order of pairs
  uint64_t tile_count = 0;  // after the tiles
  uint64_t input = 0;
  uint64_t products = 0;  // of a combine
  uint64_t bytes = 0;
};

template <typename Method>
ExpertScratch expert_scratch(const OpCall& call) {
  constexpr uint64_t kAlignment = 128;
  const auto aligned = [](uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; };
  const bool combines = call.op == Op::kExpertMatmulCombine;
  const int64_t rows = std::min(call.rows, kSlabRows);
  const int64_t pairs = rows * call.m;
  ExpertScratch scratch;
  if (call.rows > kFewRows) {
    const int64_t tiles = most_tiles(pairs, call.groups, Method::kTilePairs);
    scratch.tiles = aligned(static_cast<uint64_t>(pairs) * sizeof(int));
    scratch.tile_count = scratch.tiles + static_cast<uint64_t>(tiles) * sizeof(PairTile);
    scratch.input = aligned(scratch.tile_count + sizeof(int));
    scratch.products =
        aligned(scratch.input +
                Method::input_bytes(*tile_type(call.weight_type), combines ? pairs : rows, call.k));
  }
  scratch.bytes = scratch.products;
  if (combines) scratch.bytes += static_cast<uint64_t>(pairs * call.n) * sizeof(float);
  return scratch;
}

// The products of a slab of `rows` rows. Method::run_few(products, type, context) or
// Method::run_many(products, type, x rows, tiles, memory for input, context).
template <typename Method>
void multiply_slab(Products products, TileType type, int64_t rows, const OpCall& call,
                   const ExpertScratch& at, char* memory, KernelContext& context) {
  const int64_t pairs = rows * products.top_k;
  if (call.rows <= kFewRows) return Method::run_few(products, type, pairs, context);
  products.groups = {reinterpret_cast<int*>(memory), reinterpret_cast<PairTile*>(memory + at.tiles),
                     reinterpret_cast<int*>(memory + at.tile_count)};
  launch(context, group_pairs, dim3(1), dim3(kGroupThreads),
         static_cast<uint32_t>(2 * call.groups * static_cast<int64_t>(sizeof(int))),
         products.selection, int64_t{products.top_k}, static_cast<int>(pairs),
         static_cast<int>(call.groups), Method::kTilePairs, products.groups);
  Method::run_many(products, type, pairs / products.pairs_of_x,
                   most_tiles(pairs, call.groups, Method::kTilePairs), memory + at.input, context);
}

// What both ops have in common.
template <typename Args>
Products products_of(const Args& args) {
  Products products{};
  products.top_k = static_cast<int>(args.top_k);
  products.n = static_cast<int>(args.n);
  products.k = static_cast<int>(args.k);
  products.k_tiles = static_cast<int>(tiles_of(args.k));
  products.vector = aligned_16(args.x) && args.k % 4 == 0;
  return products;
}

template <typename Args>
OpCall expert_call(Op op, const Args& args) {
  OpCall call{op, Phase::kPrefill, args.weight_type, args.rows, args.n, args.k, args.experts};
  call.m = args.top_k;
  return call;
}

template <typename Method>
void run_experts(const ExpertMatmulSwigluArgs& args, KernelContext& context) {
  const OpCall call = expert_call(Op::kExpertMatmulSwiglu, args);
  const ExpertScratch at = expert_scratch<Method>(call);
  auto* memory = static_cast<char*>(scratch(context, at.bytes));
  Products products = products_of(args);
  products.weights[0] = static_cast<const uint8_t*>(args.gate);
  products.weights[1] = static_cast<const uint8_t*>(args.up);
  products.matrices = 2;
  products.pairs_of_x = products.top_k;
  for (int64_t first = 0; first < args.rows; first += kSlabRows) {
    products.x = args.x + first * args.k;
    products.selection = args.selection + first * 2 * args.top_k;
    products.out = args.out + first * args.top_k * args.n;
    multiply_slab<Method>(products, *tile_type(args.weight_type),
                          std::min(kSlabRows, args.rows - first), call, at, memory, context);
  }
}

template <typename Method>
void run_experts(const ExpertMatmulCombineArgs& args, KernelContext& context) {
  const OpCall call = expert_call(Op::kExpertMatmulCombine, args);
  const ExpertScratch at = expert_scratch<Method>(call);
  auto* memory = static_cast<char*>(scratch(context, at.bytes));
  Products products = products_of(args);
  products.weights[0] = static_cast<const uint8_t*>(args.down);
  products.matrices = 1;
  products.pairs_of_x = 1;
  products.out = reinterpret_cast<float*>(memory + at.products);
  for (int64_t first = 0; first < args.rows; first += kSlabRows) {
    const int64_t rows = std::min(kSlabRows, args.rows - first);
    products.x = args.x + first * args.top_k * args.k;
    products.selection = args.selection + first * 2 * args.top_k;
    multiply_slab<Method>(products, *tile_type(args.weight_type), rows, call, at, memory, context);
    const dim3 grid(static_cast<uint32_t>((rows * args.n + kAddThreads - 1) / kAddThreads));
    launch(context, add_pairs, grid, dim3(kAddThreads), 0, products.out, products.selection,
           args.out + first * args.n, rows, args.top_k, args.n);
  }
}

}  // namespace reckon::kernels::cuda
