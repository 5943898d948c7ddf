// Which element types are kept as tiles (weight_tiles.h), and under which name.
#pragma once

#include <optional>

#include "kernels/cuda/weight_tiles.h"
#include "tensor/dtype.h"

namespace reckon::kernels::cuda {

[[nodiscard]] inline std::optional<TileType> tile_type(DType type) {
  switch (type) {
    case DType::kP4:
      return TileType::kP4;
    case DType::kP8:
      return TileType::kP8;
    case DType::kF16:
      return TileType::kF16;
    case DType::kBF16:
      return TileType::kBf16;
    case DType::kF32:
      return TileType::kF32;
    default:
      return std::nullopt;
  }
}

}  // namespace reckon::kernels::cuda
