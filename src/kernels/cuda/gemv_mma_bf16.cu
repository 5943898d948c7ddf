// The bf16 instances of gemv_mma.cuh.
#include "kernels/cuda/gemv_mma.cuh"

namespace reckon::kernels::cuda {

const void* gemv_mma_bf16(int columns) {
  return gemv_mma_instance<TileType::kBf16>(columns);
}

}  // namespace reckon::kernels::cuda
