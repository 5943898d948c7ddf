// Element types and the block layouts of quantised ones.
//
// A row of K elements is K / block_elements(type) consecutive blocks of block_bytes(type) bytes;
// K must be a multiple of the block. Q4_1 and Q8_0 are the layouts of the GGUF file format
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and its type list), read in place.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace reckon {

enum class DType : uint8_t { kF32, kF16, kBF16, kI32, kQ8_0, kQ4_1 };
inline constexpr int kDTypeCount = 6;

// 32 weights: w = scale * code, code in -128...127.
struct BlockQ8_0 {
  uint16_t scale;    // IEEE half
  int8_t codes[32];  // element i
};
static_assert(sizeof(BlockQ8_0) == 34);

// 32 weights: w = scale * code + minimum, code in 0...15.
struct BlockQ4_1 {
  uint16_t scale;     // IEEE half
  uint16_t minimum;   // IEEE half
  uint8_t codes[16];  // low nibble: element i, high nibble: element i + 16
};
static_assert(sizeof(BlockQ4_1) == 20);

[[nodiscard]] std::string_view dtype_name(DType type);  // "f32", "q4_1", ...
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);
[[nodiscard]] int64_t block_elements(DType type);  // 1 for plain types
[[nodiscard]] int64_t block_bytes(DType type);
// Bytes of a row of k elements; k must be a multiple of the block.
[[nodiscard]] int64_t row_bytes(DType type, int64_t k);

// Exact conversions; float_to_half and float_to_bf16 round to nearest even.
[[nodiscard]] float half_to_float(uint16_t half);
[[nodiscard]] uint16_t float_to_half(float value);
[[nodiscard]] float bf16_to_float(uint16_t bits);
[[nodiscard]] uint16_t float_to_bf16(float value);

// Dequantises k elements (a multiple of the block) of one row to float32, exactly as the formats
// define it (bit for bit what PyPI gguf computes). kI32 is not a weight type: CHECK.
void dequantize_row(DType type, const void* row, int64_t k, float* out);

}  // namespace reckon
