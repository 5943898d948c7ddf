#include "tensor/row_source.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "tensor/quantise.h"
#include "tensor/recode.h"

namespace reckon {
namespace {

void put(void* out, int64_t index, uint16_t bits) {
  std::memcpy(static_cast<char*>(out) + index * int64_t{sizeof bits}, &bits, sizeof bits);
}

bool encode_f16(const float* row, int64_t k, void* out) {
  for (int64_t i = 0; i < k; ++i) {
    const uint16_t half = float_to_half(row[i]);
    if (!std::isfinite(half_to_float(half))) return false;
    put(out, i, half);
  }
  return true;
}

}  // namespace

bool encode_row(DType type, const float* row, int64_t k, void* out) {
  switch (type) {
    case DType::kF32:
      if (k > 0) std::memcpy(out, row, static_cast<size_t>(k) * sizeof(float));
      return true;
    case DType::kF16:
      return encode_f16(row, k, out);
    case DType::kBF16:
      for (int64_t i = 0; i < k; ++i) put(out, i, float_to_bf16(row[i]));
      return true;
    default:
      return quantise_row(type, row, k, out);
  }
}

Status StoredRows::rows(int64_t first, int64_t count, DType type, void* out) const {
  RECKON_CHECK(first >= 0 && count >= 0 && first + count <= weight_.n);
  const int64_t from_stride = row_bytes(weight_.type, weight_.k);
  const auto* from = static_cast<const char*>(weight_.data) + first * from_stride;
  if (type == weight_.type) {
    if (count > 0) std::memcpy(out, from, static_cast<size_t>(count * from_stride));
    return {};
  }
  const int64_t to_stride = row_bytes(type, weight_.k);
  const bool keeps_codes = can_recode(weight_.type, type);
  std::vector<float> values(static_cast<size_t>(keeps_codes ? 0 : weight_.k));
  const auto convert = [&](const char* row, char* to) {
    if (keeps_codes) return recode_row(weight_.type, row, weight_.k, type, to);
    dequantize_row(weight_.type, row, weight_.k, values.data());
    return encode_row(type, values.data(), weight_.k, to);
  };
  for (int64_t j = 0; j < count; ++j) {
    if (!convert(from + j * from_stride, static_cast<char*>(out) + j * to_stride)) {
      return failed(fmt::format("row {}: holds a weight that is not finite or too large for {}",
                                first + j, dtype_name(type)));
    }
  }
  return {};
}

}  // namespace reckon
