// Dequantising rows of blocks, one function a type, for tensor/dtype.h. `row` may stand at any
// address. In super-blocks the scale of a part is rounded to float32 before it meets the codes, as
// the type's definition has it (tensor/blocks.h shows the parentheses).
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/blocks.h"

namespace reckon {

// Element `index` of a row of T.
template <typename T>
[[nodiscard]] T load_unaligned(const void* row, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(row) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

void dequantise_q4_0(const void* row, int64_t blocks, float* out);
void dequantise_q4_1(const void* row, int64_t blocks, float* out);
void dequantise_q5_0(const void* row, int64_t blocks, float* out);
void dequantise_q5_1(const void* row, int64_t blocks, float* out);
void dequantise_q8_0(const void* row, int64_t blocks, float* out);
void dequantise_iq4_nl(const void* row, int64_t blocks, float* out);
void dequantise_mxfp4(const void* row, int64_t blocks, float* out);

void dequantise_q2_k(const void* row, int64_t blocks, float* out);
void dequantise_q3_k(const void* row, int64_t blocks, float* out);
void dequantise_q4_k(const void* row, int64_t blocks, float* out);
void dequantise_q5_k(const void* row, int64_t blocks, float* out);
void dequantise_q6_k(const void* row, int64_t blocks, float* out);
void dequantise_iq4_xs(const void* row, int64_t blocks, float* out);

// k elements; the padding of the last block is not written.
void dequantise_p4(const void* row, int64_t k, float* out);
void dequantise_p8(const void* row, int64_t k, float* out);

}  // namespace reckon
