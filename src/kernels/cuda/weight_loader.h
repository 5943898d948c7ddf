// Weights on a CUDA device: every matrix as tiles (weight_tiles.h), sent through two pinned stages.
#pragma once

#include "kernels/weight_loader.h"

namespace reckon::kernels::cuda {

class CudaWeightLoader final : public WeightLoader {
 public:
  [[nodiscard]] std::optional<DType> kept_as(DType type) const override;
  [[nodiscard]] int64_t strip_rows() const override;
  [[nodiscard]] uint64_t strip_bytes(DType type, int64_t k) const override;
  void lay_out(DType type, const void* rows, int64_t count, int64_t k, void* out) const override;
  [[nodiscard]] Result<std::unique_ptr<WeightUpload>> begin(uint64_t stage_bytes) override;
};

}  // namespace reckon::kernels::cuda
