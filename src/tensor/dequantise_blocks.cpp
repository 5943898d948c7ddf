// Blocks of 32 from GGUF, and Reckon's own blocks of 64.
#include <algorithm>
#include <bit>

#include "tensor/dequantise.h"
#include "tensor/dtype.h"

namespace reckon {
namespace {

// The code of element i where 32 elements share 16 bytes.
int nibble(const uint8_t (&codes)[16], int i) {
  return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4;
}

int five_bits(const uint8_t (&codes)[16], const uint8_t (&fifth)[4], int i) {
  return nibble(codes, i) | (fifth[i / 8] >> (i % 8) & 1) << 4;
}

// w = scale * code(block, i) for the 32 elements of each block.
template <typename Block, typename Code>
void scaled_codes(const void* row, int64_t blocks, float* out, const Code& code) {
  for (int64_t b = 0; b < blocks; ++b, out += 32) {
    const auto block = load_unaligned<Block>(row, b);
    const float scale = half_to_float(block.scale);
    for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(code(block, i));
  }
}

// As above for w = scale * code + minimum.
template <typename Block, typename Code>
void shifted_codes(const void* row, int64_t blocks, float* out, const Code& code) {
  for (int64_t b = 0; b < blocks; ++b, out += 32) {
    const auto block = load_unaligned<Block>(row, b);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(code(block, i)) + minimum;
  }
}

// 2^(exponent - 128): below 2^-126 it is a denormal number.
float half_power(uint8_t exponent) {
  const uint32_t bits =
      exponent < 2 ? uint32_t{1} << (21 + exponent) : static_cast<uint32_t>(exponent - 1) << 23;
  return std::bit_cast<float>(bits);
}

}  // namespace

void dequantise_q4_0(const void* row, int64_t blocks, float* out) {
  scaled_codes<BlockQ4_0>(row, blocks, out,
                          [](const BlockQ4_0& block, int i) { return nibble(block.codes, i) - 8; });
}

void dequantise_q4_1(const void* row, int64_t blocks, float* out) {
  shifted_codes<BlockQ4_1>(row, blocks, out,
                           [](const BlockQ4_1& block, int i) { return nibble(block.codes, i); });
}

void dequantise_q5_0(const void* row, int64_t blocks, float* out) {
  scaled_codes<BlockQ5_0>(row, blocks, out, [](const BlockQ5_0& block, int i) {
    return five_bits(block.codes, block.fifth, i) - 16;
  });
}

void dequantise_q5_1(const void* row, int64_t blocks, float* out) {
  shifted_codes<BlockQ5_1>(row, blocks, out, [](const BlockQ5_1& block, int i) {
    return five_bits(block.codes, block.fifth, i);
  });
}

void dequantise_q8_0(const void* row, int64_t blocks, float* out) {
  scaled_codes<BlockQ8_0>(row, blocks, out,
                          [](const BlockQ8_0& block, int i) { return block.codes[i]; });
}

void dequantise_iq4_nl(const void* row, int64_t blocks, float* out) {
  scaled_codes<BlockIQ4_NL>(row, blocks, out, [](const BlockIQ4_NL& block, int i) {
    return kIq4Steps[nibble(block.codes, i)];
  });
}

void dequantise_mxfp4(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 32) {
    const auto block = load_unaligned<BlockMXFP4>(row, b);
    const float scale = half_power(block.exponent);
    for (int i = 0; i < 32; ++i) {
      out[i] = scale * static_cast<float>(kFp4Doubled[nibble(block.codes, i)]);
    }
  }
}

void dequantise_p4(const void* row, int64_t k, float* out) {
  for (int64_t first = 0; first < k; first += 64, out += 64) {
    const auto block = load_unaligned<BlockP4>(row, first / 64);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    const int64_t count = std::min<int64_t>(64, k - first);
    for (int64_t i = 0; i < count; ++i) {
      const int code = i < 32 ? block.codes[i] & 15 : block.codes[i - 32] >> 4;
      out[i] = scale * static_cast<float>(code) + minimum;
    }
  }
}

void dequantise_p8(const void* row, int64_t k, float* out) {
  for (int64_t first = 0; first < k; first += 64, out += 64) {
    const auto block = load_unaligned<BlockP8>(row, first / 64);
    const float scale = half_to_float(block.scale);
    const int64_t count = std::min<int64_t>(64, k - first);
    for (int64_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(block.codes[i]);
  }
}

}  // namespace reckon
