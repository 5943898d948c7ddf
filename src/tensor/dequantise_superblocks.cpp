// Super-blocks of 256 from GGUF: each part's scale (and minimum) first, then its codes.
#include "tensor/dequantise.h"
#include "tensor/dtype.h"
#include "tensor/superblocks.h"

namespace reckon {
void dequantise_q2_k(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 256) {
    const auto block = load_unaligned<BlockQ2_K>(row, b);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    for (int j = 0; j < 16; ++j) {
      const float part_scale = scale * static_cast<float>(block.parts[j] & 15);
      const float part_minimum = minimum * static_cast<float>(block.parts[j] >> 4);
      for (int e = 16 * j; e < 16 * j + 16; ++e) {
        out[e] = part_scale * static_cast<float>(two_bits(block.codes, e)) - part_minimum;
      }
    }
  }
}

void dequantise_q3_k(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 256) {
    const auto block = load_unaligned<BlockQ3_K>(row, b);
    const float scale = half_to_float(block.scale);
    for (int j = 0; j < 16; ++j) {
      const float step = scale * static_cast<float>(part_scale(block, j));
      for (int e = 16 * j; e < 16 * j + 16; ++e) {
        out[e] = step * static_cast<float>(signed_code(block, e));
      }
    }
  }
}

void dequantise_q4_k(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 256) {
    const auto block = load_unaligned<BlockQ4_K>(row, b);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    for (int j = 0; j < 8; ++j) {
      const SixBitPart part = six_bit_part(block.parts, j);
      const float part_scale = scale * static_cast<float>(part.scale);
      const float part_minimum = minimum * static_cast<float>(part.minimum);
      for (int e = 32 * j; e < 32 * j + 32; ++e) {
        out[e] = part_scale * static_cast<float>(nibble_of_64(block.codes, e)) - part_minimum;
      }
    }
  }
}

void dequantise_q5_k(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 256) {
    const auto block = load_unaligned<BlockQ5_K>(row, b);
    const float scale = half_to_float(block.scale);
    const float minimum = half_to_float(block.minimum);
    for (int j = 0; j < 8; ++j) {
      const SixBitPart part = six_bit_part(block.parts, j);
      const float part_scale = scale * static_cast<float>(part.scale);
      const float part_minimum = minimum * static_cast<float>(part.minimum);
      for (int e = 32 * j; e < 32 * j + 32; ++e) {
        const int code = nibble_of_64(block.codes, e) | one_bit(block.fifth, e) << 4;
        out[e] = part_scale * static_cast<float>(code) - part_minimum;
      }
    }
  }
}

void dequantise_q6_k(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 256) {
    const auto block = load_unaligned<BlockQ6_K>(row, b);
    const float scale = half_to_float(block.scale);
    for (int j = 0; j < 16; ++j) {
      const float part_scale = scale * static_cast<float>(block.parts[j]);
      for (int e = 16 * j; e < 16 * j + 16; ++e) {
        const int byte = block.low[e / 128 * 64 + e % 64];
        const int low = e % 128 < 64 ? byte & 15 : byte >> 4;
        const int code = low | two_bits(block.high, e) << 4;
        out[e] = part_scale * static_cast<float>(code - 32);
      }
    }
  }
}

void dequantise_iq4_xs(const void* row, int64_t blocks, float* out) {
  for (int64_t b = 0; b < blocks; ++b, out += 256) {
    const auto block = load_unaligned<BlockIQ4_XS>(row, b);
    const float scale = half_to_float(block.scale);
    for (int j = 0; j < 8; ++j) {
      const float step = scale * static_cast<float>(part_scale(block, j));
      for (int i = 0; i < 16; ++i) {
        const int byte = block.codes[16 * j + i];
        out[32 * j + i] = step * static_cast<float>(kIq4Steps[byte & 15]);
        out[32 * j + 16 + i] = step * static_cast<float>(kIq4Steps[byte >> 4]);
      }
    }
  }
}

}  // namespace reckon
