// What can be asked about element types and done with rows of them; the types and the layouts of
// their blocks are in tensor/blocks.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/blocks.h"

namespace reckon {

[[nodiscard]] std::string_view dtype_name(DType type);  // "f32", "q4_k", ...
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);
[[nodiscard]] int64_t block_elements(DType type);  // 1 for plain types
[[nodiscard]] int64_t block_bytes(DType type);
// True where the last block of a row may be padded, so that k can be any number (p4, p8).
[[nodiscard]] bool pads_rows(DType type);
// Bytes of a row of k elements; k must be a multiple of the block where rows are not padded.
[[nodiscard]] int64_t row_bytes(DType type, int64_t k);

// Exact conversions; float_to_half and float_to_bf16 round to nearest even.
[[nodiscard]] float half_to_float(uint16_t half);
[[nodiscard]] uint16_t float_to_half(float value);
[[nodiscard]] float bf16_to_float(uint16_t bits);
[[nodiscard]] uint16_t float_to_bf16(float value);

// Dequantises k elements (a multiple of the block where rows are not padded) of one row to float32,
// exactly as the formats define it (for those of GGUF bit for bit what PyPI gguf computes). Padding
// is not written. kI32 is not a weight type: CHECK.
void dequantize_row(DType type, const void* row, int64_t k, float* out);

}  // namespace reckon
