// One thread an element: a pass reads rows x k of the table, a few hundred KB at most, and the
// tiles scatter a row's elements anyway.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/embedding_tiles.h"
#include "kernels/cuda/embedding_tiles.hash.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/weight_tiles.h"
#include "tensor/blocks.h"

namespace reckon::kernels::cuda {
namespace {

constexpr const char* kExactName = "exact_cuda";
constexpr const char* kReferenceName = "reference";
constexpr int kThreads = 256;

__device__ __forceinline__ float half_at(const uint8_t* p) {
  return __half2float(*reinterpret_cast<const __half*>(p));
}

// The element of a tile at a row of its strip and a column of the tile.
template <TileType kType>
__device__ __forceinline__ float element(const uint8_t* tile, int row, int column) {
  const int lane = row % 8 * 4 + column / 16;
  const int w = column % 16 / 4;
  const int h = column % 2;
  const int r = row / 8 + 2 * (column % 4 / 2);
  const int scale = row % 8 * 2 + row / 8;
  if constexpr (kType == TileType::kP4) {
    const uint32_t word = *reinterpret_cast<const uint32_t*>(tile + (lane * 4 + w) * 4);
    const auto code = static_cast<float>((word >> (4 * (2 * (r & 1) + (r >> 1) + 4 * h))) & 15U);
    return __fadd_rn(__fmul_rn(half_at(tile + 512 + scale * 4), code),
                     half_at(tile + 512 + scale * 4 + 2));
  } else if constexpr (kType == TileType::kP8) {
    const int byte = (w / 2) * 512 + lane * 16 + (w % 2) * 8 + (r >> 1) * 4 + (r & 1) + 2 * h;
    return __fmul_rn(half_at(tile + 1024 + scale * 2), static_cast<float>(tile[byte] - 128));
  } else if constexpr (kType == TileType::kF32) {
    const int byte = (w * 2 + (r >> 1)) * 512 + lane * 16 + (r & 1) * 8 + h * 4;
    return *reinterpret_cast<const float*>(tile + byte);
  } else {
    const uint8_t* at = tile + w * 512 + lane * 16 + r * 4 + h * 2;
    if constexpr (kType == TileType::kF16) return half_at(at);
    return __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(at));
  }
}

// kBytes is tile_bytes(kType).
template <TileType kType, int64_t kBytes>
__global__ void __launch_bounds__(kThreads)
    look_up(const uint8_t* tiles, const int32_t* tokens, float* out, int64_t rows, int64_t k) {
  release_next();
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t row = i / k;
  const int64_t column = i % k;
  wait_for_previous();
  if (row >= rows) return;
  const int64_t token = max(tokens[row], 0);  // a pick that failed is below 0, and reported later
  const int64_t strip = (k + kTileColumns - 1) / kTileColumns;  // in tiles
  const uint8_t* tile = tiles + (token / kTileRows * strip + column / kTileColumns) * kBytes;
  out[i] = element<kType>(tile, static_cast<int>(token % kTileRows),
                          static_cast<int>(column % kTileColumns));
}

template <TileType kType>
void launch_type(const EmbeddingArgs& args, KernelContext& context) {
  const int64_t count = args.rows * args.k;
  launch(context, look_up<kType, tile_bytes(kType)>,
         dim3(static_cast<uint32_t>((count + kThreads - 1) / kThreads)), dim3(kThreads), 0,
         static_cast<const uint8_t*>(args.table), queue(context).tokens, args.out, args.rows,
         args.k);
}

void run(const EmbeddingArgs& args, KernelContext& context) {
  if (args.rows == 0) return;
  switch (args.weight_type) {
    case DType::kF32:
      return launch_type<TileType::kF32>(args, context);
    case DType::kF16:
      return launch_type<TileType::kF16>(args, context);
    case DType::kBF16:
      return launch_type<TileType::kBf16>(args, context);
    case DType::kP4:
      return launch_type<TileType::kP4>(args, context);
    case DType::kP8:
      return launch_type<TileType::kP8>(args, context);
    default:
      return fail(context, "a table of this type");
  }
}

}  // namespace

void embedding_tiles_exact(const EmbeddingArgs& args, KernelContext& context) {
  stamp(context, kExactName, kSourceHash, args);
  run(args, context);
}

void embedding_tiles_reference(const EmbeddingArgs& args, KernelContext& context) {
  stamp(context, kReferenceName, kSourceHash, args);
  run(args, context);
}

const char* embedding_tiles_exact_hash() {
  return kSourceHash;
}

const char* embedding_tiles_reference_hash() {
  return kSourceHash;
}

}  // namespace reckon::kernels::cuda
