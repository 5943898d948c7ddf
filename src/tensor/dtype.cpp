#include "tensor/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace reckon {
namespace {

struct TypeInfo {
  std::string_view name;
  int64_t elements;
  int64_t bytes;
};

// Indexed by DType.
constexpr std::array<TypeInfo, kDTypeCount> kTypes{{
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"i32", 1, 4},
    {"q8_0", 32, sizeof(BlockQ8_0)},
    {"q4_1", 32, sizeof(BlockQ4_1)},
    {"p4", 64, sizeof(BlockP4)},
    {"p8", 64, sizeof(BlockP8)},
}};

const TypeInfo& info(DType type) {
  const auto index = static_cast<size_t>(type);
  RECKON_CHECK(index < kTypes.size());
  return kTypes[index];
}

// Rows in a file are not necessarily aligned to the block's members.
template <typename T>
T load(const void* row, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(row) + index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

void dequantize_q8_0(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 32) {
    const auto block = load<BlockQ8_0>(row, b);
    const float scale = half_to_float(block.scale);
    for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(block.codes[i]);
  }
}

void dequantize_q4_1(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 32) {
    const auto block = load<BlockQ4_1>(row, b);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    for (int i = 0; i < 16; ++i) {
      out[i] = scale * static_cast<float>(block.codes[i] & 15) + minimum;
      out[i + 16] = scale * static_cast<float>(block.codes[i] >> 4) + minimum;
    }
  }
}

void dequantize_p4(const void* row, int64_t k, float* out) {
  for (int64_t first = 0; first < k; first += 64, out += 64) {
    const auto block = load<BlockP4>(row, first / 64);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    const int64_t count = std::min<int64_t>(64, k - first);
    for (int64_t i = 0; i < count; ++i) {
      const int code = i < 32 ? block.codes[i] & 15 : block.codes[i - 32] >> 4;
      out[i] = scale * static_cast<float>(code) + minimum;
    }
  }
}

void dequantize_p8(const void* row, int64_t k, float* out) {
  for (int64_t first = 0; first < k; first += 64, out += 64) {
    const auto block = load<BlockP8>(row, first / 64);
    const float scale = half_to_float(block.scale);
    const int64_t count = std::min<int64_t>(64, k - first);
    for (int64_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(block.codes[i]);
  }
}

}  // namespace

std::string_view dtype_name(DType type) {
  return info(type).name;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t block_elements(DType type) {
  return info(type).elements;
}

int64_t block_bytes(DType type) {
  return info(type).bytes;
}

bool pads_rows(DType type) {
  return type == DType::kP4 || type == DType::kP8;
}

int64_t row_bytes(DType type, int64_t k) {
  const int64_t elements = info(type).elements;
  RECKON_CHECK(k >= 0 && (pads_rows(type) || k % elements == 0));
  return (k + elements - 1) / elements * info(type).bytes;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 31U;
  const uint32_t mantissa = half & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13);
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24, exact in float32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {  // NaN: its upper payload bits, kept quiet
    return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  }
  // 65520 and above round to infinity.
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);
  if (magnitude < 0x38800000U) {
    // Below 2^-14: adding 0.5 leaves the value's multiple of 2^-24, rounded to nearest even, in
    // the low bits of the sum.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
  }
  const uint32_t odd = (magnitude >> 13) & 1U;
  const uint32_t rounded = magnitude - (112U << 23) + 0xfffU + odd;
  return static_cast<uint16_t>(sign | rounded >> 13);
}

float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>(bits >> 16 | 0x40U);
  const uint32_t odd = (bits >> 16) & 1U;
  return static_cast<uint16_t>((bits + 0x7fffU + odd) >> 16);
}

void dequantize_row(DType type, const void* row, int64_t k, float* out) {
  const int64_t blocks = k / block_elements(type);
  RECKON_CHECK(k >= 0 && (pads_rows(type) || blocks * block_elements(type) == k));
  switch (type) {
    case DType::kF32:
      if (k > 0) std::memcpy(out, row, static_cast<size_t>(k) * sizeof(float));
      return;
    case DType::kF16:
      for (int64_t i = 0; i < k; ++i) out[i] = half_to_float(load<uint16_t>(row, i));
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < k; ++i) out[i] = bf16_to_float(load<uint16_t>(row, i));
      return;
    case DType::kQ8_0:
      return dequantize_q8_0(row, blocks, out);
    case DType::kQ4_1:
      return dequantize_q4_1(row, blocks, out);
    case DType::kP4:
      return dequantize_p4(row, k, out);
    case DType::kP8:
      return dequantize_p8(row, k, out);
    case DType::kI32:
      break;
  }
  RECKON_CHECK(type != DType::kI32);
}

}  // namespace reckon
