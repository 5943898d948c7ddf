// Blocks of 32 from GGUF, and Reckon's own blocks of 64.
#include <algorithm>

#include "tensor/dequantise.h"
#include "tensor/dtype.h"
#include "tensor/small_blocks.h"

namespace reckon {
namespace {

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

}  // namespace

void dequantise_q4_0(const void* row, int64_t blocks, float* out) {
  scaled_codes<BlockQ4_0>(row, blocks, out, [](const BlockQ4_0& block, int i) {
    return nibble_of_32(block.codes, i) - 8;
  });
}

void dequantise_q4_1(const void* row, int64_t blocks, float* out) {
  shifted_codes<BlockQ4_1>(
      row, blocks, out, [](const BlockQ4_1& block, int i) { return nibble_of_32(block.codes, i); });
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
    return kIq4Steps[nibble_of_32(block.codes, i)];
  });
}

void dequantise_mxfp4(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 32) {
    const auto block = load_unaligned<BlockMXFP4>(row, b);
    const float scale = mxfp4_scale(block.exponent);
    for (int i = 0; i < 32; ++i) {
      out[i] = scale * static_cast<float>(kFp4Doubled[nibble_of_32(block.codes, i)]);
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
