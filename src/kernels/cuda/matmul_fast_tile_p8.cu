#include "kernels/cuda/matmul_fast_tile_launch.cuh"

namespace reckon::kernels::cuda {

TileLaunch launch_tiles_p8(const TileForm& form, const TileProblem& problem) {
  return launch_tiles<TileType::kP8>(form, problem);
}

}  // namespace reckon::kernels::cuda
