// The exact matmul with float32 activations: plain fused multiply-adds on the same tiles, segments
// and tree as gemv_mma.cuh. A block is one strip and its 8 warps the 8 segments; a lane multiplies
// the 32 weights of a tile that it owns. Kept simple: it serves f32 weights (norm-like projections,
// routers) and checks the matrix kernels; 4 rows a pass.
#include "kernels/cuda/gemv_simt.cuh"

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_async.cuh"
#include "kernels/cuda/gemv_simt_tile.cuh"
#include "kernels/cuda/row_chunks.cuh"
#include "kernels/cuda/silu.cuh"

namespace reckon::kernels::cuda {
namespace {

// Grid: (units, slabs of kRows rows). A unit is a strip; of both weights for SwiGLU.
template <TileType kType, int kRows>
__global__ void __launch_bounds__(kSimtThreads)
    gemv_simt_kernel(const __grid_constant__ GemvKernelArgs args) {
  __shared__ float partials[2][kGemvSegments][kRows][kTileRows];
  constexpr int kTile = kTileBytesOf<kType>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int unit = static_cast<int>(blockIdx.x);
  const int first_row = static_cast<int>(blockIdx.y) * kRows;
  const int rows = min(args.rows - first_row, kRows);
  const int begin = segment_begin(warp, args.k_tiles), end = segment_begin(warp + 1, args.k_tiles);
  const float* x = args.x + first_row * args.x_stride;
  let_dependents_start();
  wait_for_inputs();
  for (int part = 0; part < args.parts; ++part) {
    const GemvStrip strip = find_strip(args, unit, part);
    const uint8_t* tile =
        args.tiles[strip.weight] + (int64_t{strip.index} * args.k_tiles + begin) * kTile;
    float sum[2][kRows] = {};
    for (int index = begin; index < end; ++index, tile += kTile) {
      multiply_tile<kType>(tile, lane, rows, sum, [&](int r, int column) {
        return load_four(x + r * args.x_stride, index * 64 + column, args.k, args.x_aligned);
      });
    }
    store_partials(sum, lane, partials[part][warp]);
  }
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / static_cast<int>(kTileRows);
  const int in_strip = static_cast<int>(threadIdx.x) % static_cast<int>(kTileRows);
  if (row >= rows) return;
  float result[2] = {0, 0};
  for (int part = 0; part < args.parts; ++part) {
    result[part] = combined_segments(partials[part], row, in_strip);
  }
  const GemvStrip strip = find_strip(args, unit, 0);
  const int column = strip.index * static_cast<int>(kTileRows) + in_strip;
  if (column >= args.n[strip.weight]) return;
  args.out[strip.weight][(first_row + row) * args.out_stride[strip.weight] + column] =
      args.parts > 1 ? swiglu_element(result[0], result[1]) : result[0];
}

template <int kRows>
const void* kernel_of(TileType type) {
  switch (type) {
    case TileType::kP4:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kP4, kRows>);
    case TileType::kP8:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kP8, kRows>);
    case TileType::kF16:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kF16, kRows>);
    case TileType::kBf16:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kBf16, kRows>);
    case TileType::kF32:
      return reinterpret_cast<const void*>(&gemv_simt_kernel<TileType::kF32, kRows>);
  }
  return nullptr;
}

}  // namespace

const void* gemv_simt_kernel_of(TileType type, int slab_rows) {
  return slab_rows == 1 ? kernel_of<1>(type) : kernel_of<kSimtRows>(type);
}

}  // namespace reckon::kernels::cuda
