// Super-blocks of 256 from GGUF: each part's scale (and minimum) first, then its codes.
#include "tensor/dequantise.h"
#include "tensor/dtype.h"

namespace reckon {
namespace {

// Bits 2p and 2p + 1 of codes that are laid out in planes of 32 elements, four to a byte.
int two_bits(const uint8_t (&codes)[64], int element) {
  const int half = element / 128;
  const int plane = element % 128 / 32;
  return codes[32 * half + element % 32] >> (2 * plane) & 3;
}

// One bit an element: plane j of 32 elements is bit j of the bytes.
int one_bit(const uint8_t (&bits)[32], int element) {
  return bits[element % 32] >> (element / 32) & 1;
}

// Nibbles of Q4_K and Q5_K: 64 elements share 32 bytes.
int nibble(const uint8_t (&codes)[128], int element) {
  const int byte = codes[element / 64 * 32 + element % 32];
  return element % 64 < 32 ? byte & 15 : byte >> 4;
}

struct Part {
  float scale;
  float minimum;
};

// Of Q4_K and Q5_K.
Part part_of(const uint8_t (&parts)[12], float scale, float minimum, int j) {
  int s;
  int m;
  if (j < 4) {
    s = parts[j] & 63;
    m = parts[4 + j] & 63;
  } else {
    s = (parts[4 + j] & 15) | parts[j - 4] >> 6 << 4;
    m = parts[4 + j] >> 4 | parts[j] >> 6 << 4;
  }
  return {scale * static_cast<float>(s), minimum * static_cast<float>(m)};
}

}  // namespace

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
      const int low = j < 8 ? block.parts[j] & 15 : block.parts[j - 8] >> 4;
      const int high = block.parts[8 + j % 4] >> (2 * (j / 4)) & 3;
      const float part_scale = scale * static_cast<float>((low | high << 4) - 32);
      for (int e = 16 * j; e < 16 * j + 16; ++e) {
        const int code = two_bits(block.codes, e) | one_bit(block.third, e) << 2;
        out[e] = part_scale * static_cast<float>(code - 4);
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
      const Part part = part_of(block.parts, scale, minimum, j);
      for (int e = 32 * j; e < 32 * j + 32; ++e) {
        out[e] = part.scale * static_cast<float>(nibble(block.codes, e)) - part.minimum;
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
      const Part part = part_of(block.parts, scale, minimum, j);
      for (int e = 32 * j; e < 32 * j + 32; ++e) {
        const int code = nibble(block.codes, e) | one_bit(block.fifth, e) << 4;
        out[e] = part.scale * static_cast<float>(code) - part.minimum;
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
      const int low = j % 2 == 0 ? block.parts_low[j / 2] & 15 : block.parts_low[j / 2] >> 4;
      const int high = block.parts_high >> (2 * j) & 3;
      const float part_scale = scale * static_cast<float>((low | high << 4) - 32);
      for (int i = 0; i < 16; ++i) {
        const int byte = block.codes[16 * j + i];
        out[32 * j + i] = part_scale * static_cast<float>(kIq4Steps[byte & 15]);
        out[32 * j + 16 + i] = part_scale * static_cast<float>(kIq4Steps[byte >> 4]);
      }
    }
  }
}

}  // namespace reckon
