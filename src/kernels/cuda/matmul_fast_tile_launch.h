// The launches of fast_tile, one file a weight type so that they compile in parallel.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/matmul_fast_plan.h"

namespace reckon::kernels::cuda {

struct TileLaunch {
  const void* kernel = nullptr;
  dim3 grid, block;
  uint32_t shared_bytes = 0;
  cudaError_t error = cudaSuccess;
};

enum class TileUnit : uint8_t { kWgmma, kMma };  // compute capability 9.0; any from 8.0 up

// Enqueues `problem`, whose tiles are those of `cut`. `overlap`: the kernel may start while its
// predecessor on the stream, which makes x, still runs.
struct TileForm {
  TileCut cut;
  TileUnit unit = TileUnit::kWgmma;
  bool swiglu = false;
  bool overlap = true;
  int multiprocessors = 0;
  cudaStream_t stream = nullptr;
};
[[nodiscard]] TileLaunch launch_tiles_p4(const TileForm& form, const TileProblem& problem);
[[nodiscard]] TileLaunch launch_tiles_p8(const TileForm& form, const TileProblem& problem);
[[nodiscard]] TileLaunch launch_tiles_f16(const TileForm& form, const TileProblem& problem);
[[nodiscard]] TileLaunch launch_tiles_bf16(const TileForm& form, const TileProblem& problem);

}  // namespace reckon::kernels::cuda
