#include "kernels/cuda/matmul_fast_tile_launch.cuh"

namespace reckon::kernels::cuda {

TileLaunch launch_tiles_f16(const TileForm& form, const TileProblem& problem) {
  return launch_tiles<TileType::kF16>(form, problem);
}

}  // namespace reckon::kernels::cuda
