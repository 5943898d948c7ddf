// Activations of the expert matmuls on matrix instructions where rows are many: rounded once, to
// planes of [rows, tiles, 64] 16-bit operands (two for bf16) and [rows, tiles] {scale, sum}
// (operand_rounding.cuh).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/weight_tiles.h"

namespace reckon::kernels::cuda {

struct RoundedInput {
  uint4* high = nullptr;
  uint4* low = nullptr;
  float2* scales = nullptr;
};

constexpr uint64_t rounded_plane_bytes(int64_t rows, int64_t tiles) {
  return static_cast<uint64_t>(rows * tiles) * kTileColumns * 2;
}

constexpr uint64_t rounded_bytes(TileType type, int64_t rows, int64_t tiles) {
  return rounded_plane_bytes(rows, tiles) * (type == TileType::kBf16 ? 2 : 1) +
         static_cast<uint64_t>(rows * tiles) * sizeof(float2);
}

[[nodiscard]] inline RoundedInput rounded_at(void* memory, TileType type, int64_t rows,
                                             int64_t tiles) {
  auto* bytes = static_cast<char*>(memory);
  const uint64_t plane = rounded_plane_bytes(rows, tiles);
  const bool split = type == TileType::kBf16;
  RoundedInput input;
  input.high = reinterpret_cast<uint4*>(bytes);
  input.low = reinterpret_cast<uint4*>(bytes + (split ? plane : 0));
  input.scales = reinterpret_cast<float2*>(bytes + plane * (split ? 2 : 1));
  return input;
}

}  // namespace reckon::kernels::cuda
