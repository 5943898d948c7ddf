// One block a token: neighbouring threads take neighbouring columns, so that stores coalesce; the
// reads of a tile's 64 columns fall into a few sectors whatever the type. A few kilobytes a token.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/embedding_tiles.h"
#include "kernels/cuda/embedding_tiles.hash.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tile_type.h"
#include "kernels/cuda/weight_tiles.h"

namespace reckon::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// Where a weight stands in its tile; names as in weight_tiles.h.
struct Place {
  int lane, w, r, h, g, upper;
};

__device__ Place place_of(int row, int column) {
  const int g = row % 8;
  const int upper = row / 8;
  const int c = column % 16;
  return {4 * g + column / 16, c / 4, (c % 4) / 2 * 2 + upper, c % 2, g, upper};
}

template <TileType kType>
__device__ float weight_at(const uint8_t* tile, const Place& p) {
  if constexpr (kType == TileType::kP4) {
    const uint32_t word = reinterpret_cast<const uint32_t*>(tile)[p.lane * 4 + p.w];
    const int nibble = 2 * (p.r & 1) + (p.r >> 1) + 4 * p.h;
    const auto* scales = reinterpret_cast<const __half*>(tile + 512) + p.g * 4 + p.upper * 2;
    const float product =
        __fmul_rn(__half2float(scales[0]), static_cast<float>((word >> (4 * nibble)) & 15));
    return __fadd_rn(product, __half2float(scales[1]));
  } else if constexpr (kType == TileType::kP8) {
    const int at = ((p.w / 2 * 32 + p.lane) * 2 + p.w % 2) * 2 + (p.r >> 1);
    const int code = tile[at * 4 + (p.r & 1) + 2 * p.h] - 128;
    const __half scale = reinterpret_cast<const __half*>(tile + 1024)[p.g * 2 + p.upper];
    return __fmul_rn(__half2float(scale), static_cast<float>(code));
  } else if constexpr (kType == TileType::kF32) {
    const int at = ((p.w * 2 + (p.r >> 1)) * 32 + p.lane) * 4 + (p.r & 1) * 2 + p.h;
    return reinterpret_cast<const float*>(tile)[at];
  } else {
    const int at = ((p.w * 32 + p.lane) * 4 + p.r) * 2 + p.h;
    if constexpr (kType == TileType::kF16) {
      return __half2float(reinterpret_cast<const __half*>(tile)[at]);
    } else {
      return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(tile)[at]);
    }
  }
}

template <TileType kType>
__global__ void __launch_bounds__(kThreads)
    embed(const uint8_t* table, const int32_t* tokens, float* out, int64_t k, int64_t strip_bytes) {
  constexpr int64_t kTileBytes = tile_bytes(kType);
  release_next();
  wait_for_previous();
  const int64_t token = tokens[blockIdx.x];
  const uint8_t* strip = table + token / kTileRows * strip_bytes;
  for (int64_t column = threadIdx.x; column < k; column += kThreads) {
    const Place place =
        place_of(static_cast<int>(token % kTileRows), static_cast<int>(column % kTileColumns));
    out[blockIdx.x * k + column] =
        weight_at<kType>(strip + column / kTileColumns * kTileBytes, place);
  }
}

template <TileType kType>
void start(const EmbeddingArgs& args, KernelContext& context) {
  launch(context, embed<kType>, dim3(static_cast<uint32_t>(args.rows)), dim3(kThreads), 0,
         static_cast<const uint8_t*>(args.table), queue(context).tokens, args.out, args.k,
         tiles_of(args.k) * tile_bytes(kType));
}

void run(const EmbeddingArgs& args, KernelContext& context) {
  switch (*tile_type(args.weight_type)) {
    case TileType::kP4:
      return start<TileType::kP4>(args, context);
    case TileType::kP8:
      return start<TileType::kP8>(args, context);
    case TileType::kF16:
      return start<TileType::kF16>(args, context);
    case TileType::kBf16:
      return start<TileType::kBf16>(args, context);
    case TileType::kF32:
      return start<TileType::kF32>(args, context);
  }
}

}  // namespace

void embedding_tiles(const EmbeddingArgs& args, KernelContext& context) {
  stamp(context, "exact_tiles", kSourceHash, args);
  run(args, context);
}

void embedding_tiles_reference(const EmbeddingArgs& args, KernelContext& context) {
  stamp(context, "reference", kSourceHash, args);
  run(args, context);
}

const char* embedding_tiles_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
