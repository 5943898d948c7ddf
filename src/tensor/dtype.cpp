#include "tensor/dtype.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/dequantise.h"

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
    {"q4_0", 32, sizeof(BlockQ4_0)},
    {"q4_1", 32, sizeof(BlockQ4_1)},
    {"q5_0", 32, sizeof(BlockQ5_0)},
    {"q5_1", 32, sizeof(BlockQ5_1)},
    {"q8_0", 32, sizeof(BlockQ8_0)},
    {"iq4_nl", 32, sizeof(BlockIQ4_NL)},
    {"mxfp4", 32, sizeof(BlockMXFP4)},
    {"q2_k", 256, sizeof(BlockQ2_K)},
    {"q3_k", 256, sizeof(BlockQ3_K)},
    {"q4_k", 256, sizeof(BlockQ4_K)},
    {"q5_k", 256, sizeof(BlockQ5_K)},
    {"q6_k", 256, sizeof(BlockQ6_K)},
    {"iq4_xs", 256, sizeof(BlockIQ4_XS)},
    {"p4", 64, sizeof(BlockP4)},
    {"p8", 64, sizeof(BlockP8)},
}};

const TypeInfo& info(DType type) {
  const auto index = static_cast<size_t>(type);
  RECKON_CHECK(index < kTypes.size());
  return kTypes[index];
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
      for (int64_t i = 0; i < k; ++i) out[i] = half_to_float(load_unaligned<uint16_t>(row, i));
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < k; ++i) out[i] = bf16_to_float(load_unaligned<uint16_t>(row, i));
      return;
    case DType::kQ4_0:
      return dequantise_q4_0(row, blocks, out);
    case DType::kQ4_1:
      return dequantise_q4_1(row, blocks, out);
    case DType::kQ5_0:
      return dequantise_q5_0(row, blocks, out);
    case DType::kQ5_1:
      return dequantise_q5_1(row, blocks, out);
    case DType::kQ8_0:
      return dequantise_q8_0(row, blocks, out);
    case DType::kIQ4_NL:
      return dequantise_iq4_nl(row, blocks, out);
    case DType::kMXFP4:
      return dequantise_mxfp4(row, blocks, out);
    case DType::kQ2_K:
      return dequantise_q2_k(row, blocks, out);
    case DType::kQ3_K:
      return dequantise_q3_k(row, blocks, out);
    case DType::kQ4_K:
      return dequantise_q4_k(row, blocks, out);
    case DType::kQ5_K:
      return dequantise_q5_k(row, blocks, out);
    case DType::kQ6_K:
      return dequantise_q6_k(row, blocks, out);
    case DType::kIQ4_XS:
      return dequantise_iq4_xs(row, blocks, out);
    case DType::kP4:
      return dequantise_p4(row, k, out);
    case DType::kP8:
      return dequantise_p8(row, k, out);
    case DType::kI32:
      break;
  }
  RECKON_CHECK(type != DType::kI32);
}

}  // namespace reckon
