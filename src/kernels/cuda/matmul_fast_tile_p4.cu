#include "kernels/cuda/matmul_fast_tile_launch.cuh"

namespace reckon::kernels::cuda {

TileLaunch launch_tiles_p4(const TileForm& form, const TileProblem& problem) {
  return launch_tiles<TileType::kP4>(form, problem);
}

}  // namespace reckon::kernels::cuda
