// What the fast matmuls share: which calls they can run, and their activations, rounded once a call
// to the tensor cores' 16 bits.
//
// Half precision with the row scaled by a power of two is the rule; its rounding is 2^-11 of a
// value, and results stay within 5e-3 of reference by a wide margin. bf16 (2^-8, within 2e-2) is
// used for bf16 weights only, because the tensor cores take both operands in one type.
//
// The scale is 1 where the row's largest magnitude lies between 2^-4 and 2^15, so nearly always;
// else it brings that magnitude to between 2^14 and 2^15. So no row overflows half precision, and
// what falls below the normal halves is under 2^-21 of the row's largest value.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>

#include "kernels/cuda/weight_tiles.h"
#include "kernels/op.h"

namespace reckon::kernels::cuda {

// The tiles that the fast matmuls read: p4, p8, f16, bf16; nothing for other types.
[[nodiscard]] std::optional<TileType> fast_tile_type(DType type);

enum class InputOrder : uint8_t {
  // [rows, k rounded up to 64], natural order.
  kRows,
  // [k / 64 rounded up][rows rounded up as given][64]: per block of 64 columns, a row of 128 bytes
  // a token, ready to be copied into shared memory as wgmma's and ldmatrix's operand: column
  // 16t + 4w + 2q + h stands at position 16w + 8q + 2t + h, as weight_tiles.h numbers the slots,
  // and the 16-byte piece i of row r stands at i ^ (r % 8), the 128-byte swizzle.
  kTiles,
};

// Fills `out` and, for half precision, `scales` [rows]: what a row of the product is multiplied
// with. Padding columns are zero; padding rows are not written. 16-byte aligned `out`.
// One launch; notes it in `kernel`, `grid` and `block` for the trace.
struct InputLaunch {
  const void* kernel = nullptr;
  dim3 grid, block;
  cudaError_t error = cudaSuccess;
};
[[nodiscard]] InputLaunch convert_input(const float* x, int64_t rows, int64_t k, bool bf16,
                                        InputOrder order, int64_t padded_rows, void* out,
                                        float* scales, cudaStream_t stream);

}  // namespace reckon::kernels::cuda
