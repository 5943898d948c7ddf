// The p4 instances of gemv_mma.cuh.
#include "kernels/cuda/gemv_mma.cuh"

namespace reckon::kernels::cuda {

const void* gemv_mma_p4(int columns) {
  return gemv_mma_instance<TileType::kP4>(columns);
}

}  // namespace reckon::kernels::cuda
