// The float32 exact kernel behind gemv_simt(), declared for the launch code.
#pragma once

#include "kernels/cuda/gemv_geometry.h"

namespace reckon::kernels::cuda {

inline constexpr int kSimtRows = 4;  // rows of x that one pass over the weights takes
inline constexpr unsigned kSimtThreads = kGemvSegments * 32;

// The kernel for 1 or kSimtRows rows a slab; takes GemvKernelArgs.
const void* gemv_simt_kernel_of(TileType type, int slab_rows);

}  // namespace reckon::kernels::cuda
