#include "models/weight_rows.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/quantise.h"

namespace reckon::models {
namespace {

bool write_row(DType type, const float* row, int64_t k, char* out) {
  switch (type) {
    case DType::kF32:
      std::memcpy(out, row, static_cast<size_t>(k) * sizeof(float));
      return true;
    case DType::kF16:
      for (int64_t i = 0; i < k; ++i) {
        const uint16_t half = float_to_half(row[i]);
        if (!std::isfinite(half_to_float(half))) return false;
        std::memcpy(out + i * 2, &half, sizeof half);
      }
      return true;
    default:
      return quantise_row(type, row, k, out);
  }
}

}  // namespace

int64_t convert_rows(const Weight& stored, DType type, int64_t first, int64_t count, char* out) {
  const int64_t from_stride = row_bytes(stored.type, stored.k);
  const char* from = static_cast<const char*>(stored.data) + first * from_stride;
  if (type == stored.type) {
    std::memcpy(out, from, static_cast<size_t>(count * from_stride));
    return -1;
  }
  const int64_t to_stride = row_bytes(type, stored.k);
  std::vector<float> row(static_cast<size_t>(stored.k));
  for (int64_t j = 0; j < count; ++j) {
    dequantize_row(stored.type, from + j * from_stride, stored.k, row.data());
    if (!write_row(type, row.data(), stored.k, out + j * to_stride)) return first + j;
  }
  return -1;
}

}  // namespace reckon::models
