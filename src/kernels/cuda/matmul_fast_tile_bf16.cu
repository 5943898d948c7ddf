#include "kernels/cuda/matmul_fast_tile_launch.cuh"

namespace reckon::kernels::cuda {

TileLaunch launch_tiles_bf16(const TileForm& form, const TileProblem& problem) {
  return launch_tiles<TileType::kBf16>(form, problem);
}

}  // namespace reckon::kernels::cuda
