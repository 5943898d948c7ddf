// Picks the instance of a fast_tile kernel for a cut and launches it.
#pragma once

#include <algorithm>

#include "kernels/cuda/matmul_fast_mma.cuh"
#include "kernels/cuda/matmul_fast_tile_launch.h"
#include "kernels/cuda/matmul_fast_wgmma.cuh"

namespace reckon::kernels::cuda {

template <TileType kType, int kSlices, int kTokens, bool kSwiglu>
TileLaunch launch_wgmma(const TileForm& form, const TileProblem& problem) {
  using Shape = WgmmaShape<kType, kSlices, kTokens>;
  auto* kernel = fast_tile_wgmma<kType, kSlices, kTokens, kSwiglu>;
  // Persistent: as many blocks as run at once; a split tile has a cluster of its own.
  const int blocks = form.cut.split > 1
                         ? problem.tiles * form.cut.split
                         : std::min(problem.tiles, form.multiprocessors * Shape::kBlocks);
  TileLaunch launch{reinterpret_cast<const void*>(kernel), dim3(static_cast<unsigned>(blocks)),
                    dim3(Shape::kThreads), Shape::kSharedBytes, cudaSuccess};
  launch.error = cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Shape::kSharedBytes);
  if (launch.error != cudaSuccess) return launch;
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = launch.grid;
  config.blockDim = launch.block;
  config.dynamicSmemBytes = launch.shared_bytes;
  config.stream = form.stream;
  config.attrs = attributes;
  if (form.overlap) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (form.cut.split > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = static_cast<unsigned>(form.cut.split);
    attributes[config.numAttrs].val.clusterDim.y = 1;
    attributes[config.numAttrs++].val.clusterDim.z = 1;
  }
  launch.error = cudaLaunchKernelEx(&config, kernel, problem);
  return launch;
}

template <TileType kType, int kTokens, bool kSwiglu>
TileLaunch launch_mma(const TileForm& form, const TileProblem& problem) {
  using Shape = MmaShape<kType, kTokens>;
  auto* kernel = fast_tile_mma<kType, kTokens, kSwiglu>;
  TileLaunch launch{reinterpret_cast<const void*>(kernel),
                    dim3(static_cast<unsigned>(problem.tiles)), dim3(Shape::kThreads),
                    Shape::kSharedBytes, cudaSuccess};
  launch.error = cudaFuncSetAttribute(launch.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Shape::kSharedBytes);
  if (launch.error != cudaSuccess) return launch;
  kernel<<<launch.grid, launch.block, launch.shared_bytes, form.stream>>>(problem);
  launch.error = cudaGetLastError();
  return launch;
}

template <TileType kType, bool kSwiglu>
TileLaunch launch_mma(const TileForm& form, const TileProblem& problem) {
  const int tokens = form.cut.tokens;
  return tokens == 16   ? launch_mma<kType, 16, kSwiglu>(form, problem)
         : tokens == 32 ? launch_mma<kType, 32, kSwiglu>(form, problem)
         : tokens == 64 ? launch_mma<kType, 64, kSwiglu>(form, problem)
                        : launch_mma<kType, 128, kSwiglu>(form, problem);
}

template <TileType kType>
TileLaunch launch_tiles(const TileForm& form, const TileProblem& problem) {
  if (form.unit == TileUnit::kMma) {
    return form.swiglu ? launch_mma<kType, true>(form, problem)
                       : launch_mma<kType, false>(form, problem);
  }
  const int tokens = form.cut.tokens;
  if (form.swiglu) {
    return tokens == 16   ? launch_wgmma<kType, 2, 16, true>(form, problem)
           : tokens == 32 ? launch_wgmma<kType, 2, 32, true>(form, problem)
           : tokens == 64 ? launch_wgmma<kType, 2, 64, true>(form, problem)
                          : launch_wgmma<kType, 2, 128, true>(form, problem);
  }
  if (form.cut.slices == 2) {
    return tokens == 16   ? launch_wgmma<kType, 2, 16, false>(form, problem)
           : tokens == 32 ? launch_wgmma<kType, 2, 32, false>(form, problem)
           : tokens == 64 ? launch_wgmma<kType, 2, 64, false>(form, problem)
                          : launch_wgmma<kType, 2, 128, false>(form, problem);
  }
  return tokens == 16    ? launch_wgmma<kType, 1, 16, false>(form, problem)
         : tokens == 32  ? launch_wgmma<kType, 1, 32, false>(form, problem)
         : tokens == 64  ? launch_wgmma<kType, 1, 64, false>(form, problem)
         : tokens == 128 ? launch_wgmma<kType, 1, 128, false>(form, problem)
         : tokens == 160 ? launch_wgmma<kType, 1, 160, false>(form, problem)
         : tokens == 192 ? launch_wgmma<kType, 1, 192, false>(form, problem)
                         : launch_wgmma<kType, 1, 256, false>(form, problem);
}

}  // namespace reckon::kernels::cuda
