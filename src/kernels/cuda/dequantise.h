// Weight tiles (weight_tiles.h) back to plain rows on the device, for a matrix library that knows
// no tiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/weight_tiles.h"

namespace reckon::kernels::cuda {

// out[j, i] = weight[j, i] for the 16 * strips rows from strip `first_strip` on and the
// 64 * tiles_of(k) columns of the padded matrix, row-major without gaps; p4 and p8 rounded once to
// half precision, f16 and bf16 as they are. Padding rows are written (zero). Padding columns hold
// zero, or for p4 their group's minimum: they only ever meet activations of zero.
//
// One launch; for the trace, its kernel and grid come back.
struct DequantiseLaunch {
  const void* kernel = nullptr;
  dim3 grid, block;
  cudaError_t error = cudaSuccess;
};
[[nodiscard]] DequantiseLaunch dequantise_strips(TileType type, const void* tiles, int64_t k,
                                                 int64_t first_strip, int64_t strips, void* out,
                                                 cudaStream_t stream);

}  // namespace reckon::kernels::cuda
