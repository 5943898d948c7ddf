// How a block of gemv_mma.cuh brings its slice of x into shared memory, as operands of the mma.
#pragma once

#include "kernels/cuda/gemv_args.cuh"
#include "kernels/cuda/gemv_tile.cuh"
#include "kernels/cuda/operand_rounding.cuh"
#include "kernels/cuda/row_chunks.cuh"

namespace reckon::kernels::cuda {

// Item i of a slice: its rows of a tile follow each other, so that the 8 items of a warp lie in
// different banks.
struct StageItems {
  int rows, count;
  uint32_t inverse;  // of rows, times 2^32

  __device__ __forceinline__ StageItems(int rows_in, int slice_tiles) {
    rows = rows_in;
    count = rows * slice_tiles;
    inverse = 0xffffffffu / static_cast<uint32_t>(rows) + 1;
  }
  __device__ __forceinline__ int tile(int item) const {
    return rows == 1 ? item : static_cast<int>(__umulhi(static_cast<uint32_t>(item), inverse));
  }
};

// The first kThreads threads convert the slab's rows of tiles slice_begin ... + slice_tiles - 1.
template <TileType kType, int kColumns, int kThreads>
__device__ __forceinline__ void stage_x(const GemvKernelArgs& args, const float* x, int rows,
                                        uint32_t shared, int slice_begin, int slice_tiles) {
  constexpr int kUnroll = kColumns == 16 ? 4 : 2;
  constexpr int kGroups = kThreads / 4;
  constexpr int kNTiles = n_tiles_for<kColumns>;
  const int lane4 = static_cast<int>(threadIdx.x % 4);
  const StageItems items(kColumns == 1 ? 1 : rows, slice_tiles);
  const int first = static_cast<int>(threadIdx.x / 4);
  // All lanes of a warp go round together: the shuffles want them.
  for (int base = 0; base < items.count; base += kUnroll * kGroups) {
    LaneColumns v[kUnroll];
    int row[kUnroll], tile[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int item = base + u * kGroups + first;
      tile[u] = items.tile(item);
      row[u] = item - tile[u] * items.rows;
      const int column = (slice_begin + tile[u]) * 64 + lane4 * 4;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        v[u].of16[i] = make_float4(0, 0, 0, 0);
        if (item < items.count) {
          v[u].of16[i] =
              load_four(x + row[u] * args.x_stride, column + i * 16, args.k, args.x_aligned);
        }
      }
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (base + u * kGroups >= items.count) break;
      const int at = row[u] * args.shared.x_row + tile[u] * 128 + lane4 * 8;
      stage_columns<kType>(v[u], base + u * kGroups + first < items.count,
                           shared + args.shared.x + at, args.shared.x_plane,
                           shared + args.shared.meta + (tile[u] * 8 * kNTiles + row[u]) * 8,
                           static_cast<uint32_t>(lane4));
    }
  }
}

}  // namespace reckon::kernels::cuda
