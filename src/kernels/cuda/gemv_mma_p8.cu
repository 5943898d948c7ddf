// The p8 instances of gemv_mma.cuh.
#include "kernels/cuda/gemv_mma.cuh"

namespace reckon::kernels::cuda {

const void* gemv_mma_p8(int columns) {
  return gemv_mma_instance<TileType::kP8>(columns);
}

}  // namespace reckon::kernels::cuda
