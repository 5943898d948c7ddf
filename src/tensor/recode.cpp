#include "tensor/recode.h"

#include <cstring>

#include "base/check.h"
#include "tensor/dequantise.h"
#include "tensor/dtype.h"
#include "tensor/small_blocks.h"
#include "tensor/superblocks.h"

namespace reckon {
namespace {

bool is_finite(uint16_t half) {
  return (half & 0x7c00U) != 0x7c00U;
}

constexpr uint16_t kHalfSign = 0x8000;

template <typename T>
void store_unaligned(void* row, int64_t index, const T& value) {
  std::memcpy(static_cast<char*>(row) + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// Blocks of 32 to Q8_0, with `scale(block)` as a half and `code(block, element)`.
template <typename Block, typename Scale, typename Code>
bool widen_blocks(const void* row, int64_t blocks, void* out, const Scale& scale,
                  const Code& code) {
  for (int64_t b = 0; b < blocks; ++b) {
    const auto from = load_unaligned<Block>(row, b);
    BlockQ8_0 to;
    to.scale = scale(from);
    if (!is_finite(to.scale)) return false;
    for (int i = 0; i < 32; ++i) to.codes[i] = static_cast<int8_t>(code(from, i));
    store_unaligned(out, b, to);
  }
  return true;
}

bool q4_0_to_q4_1(const void* row, int64_t blocks, void* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    const auto from = load_unaligned<BlockQ4_0>(row, b);
    BlockQ4_1 to;
    to.scale = from.scale;
    to.minimum = float_to_half(-8.0F * half_to_float(from.scale));
    if (!is_finite(to.minimum)) return false;
    std::memcpy(to.codes, from.codes, sizeof to.codes);
    store_unaligned(out, b, to);
  }
  return true;
}

bool q3_k_to_q8_0(const void* row, int64_t blocks, void* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    const auto from = load_unaligned<BlockQ3_K>(row, b);
    if (!is_finite(from.scale)) return false;
    for (int part = 0; part < 8; ++part) {
      BlockQ8_0 to;
      to.scale = from.scale ^ kHalfSign;
      for (int i = 0; i < 32; ++i) {
        const int e = 32 * part + i;
        to.codes[i] = static_cast<int8_t>(-part_scale(from, e / 16) * signed_code(from, e));
      }
      store_unaligned(out, 8 * b + part, to);
    }
  }
  return true;
}

bool q4_k_to_q4_1(const void* row, int64_t blocks, void* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    const auto from = load_unaligned<BlockQ4_K>(row, b);
    const float scale = half_to_float(from.scale);
    const float minimum = half_to_float(from.minimum);
    for (int j = 0; j < 8; ++j) {
      const SixBitPart part = six_bit_part(from.parts, j);
      BlockQ4_1 to;
      to.scale = float_to_half(scale * static_cast<float>(part.scale));
      to.minimum = float_to_half(-(minimum * static_cast<float>(part.minimum)));
      if (!is_finite(to.scale) || !is_finite(to.minimum)) return false;
      for (int i = 0; i < 16; ++i) {
        const int low = nibble_of_64(from.codes, 32 * j + i);
        const int high = nibble_of_64(from.codes, 32 * j + i + 16);
        to.codes[i] = static_cast<uint8_t>(low | high << 4);
      }
      store_unaligned(out, 8 * b + j, to);
    }
  }
  return true;
}

bool iq4_xs_to_q8_0(const void* row, int64_t blocks, void* out) {
  for (int64_t b = 0; b < blocks; ++b) {
    const auto from = load_unaligned<BlockIQ4_XS>(row, b);
    const float scale = half_to_float(from.scale);
    for (int j = 0; j < 8; ++j) {
      BlockQ8_0 to;
      to.scale = float_to_half(scale * static_cast<float>(part_scale(from, j)));
      if (!is_finite(to.scale)) return false;
      for (int i = 0; i < 16; ++i) {
        const int byte = from.codes[16 * j + i];
        to.codes[i] = kIq4Steps[byte & 15];
        to.codes[i + 16] = kIq4Steps[byte >> 4];
      }
      store_unaligned(out, 8 * b + j, to);
    }
  }
  return true;
}

bool q5_0_to_q8_0(const void* row, int64_t blocks, void* out) {
  return widen_blocks<BlockQ5_0>(
      row, blocks, out, [](const BlockQ5_0& block) { return block.scale; },
      [](const BlockQ5_0& block, int i) { return five_bits(block.codes, block.fifth, i) - 16; });
}

bool iq4_nl_to_q8_0(const void* row, int64_t blocks, void* out) {
  return widen_blocks<BlockIQ4_NL>(
      row, blocks, out, [](const BlockIQ4_NL& block) { return block.scale; },
      [](const BlockIQ4_NL& block, int i) { return kIq4Steps[nibble_of_32(block.codes, i)]; });
}

bool mxfp4_to_q8_0(const void* row, int64_t blocks, void* out) {
  return widen_blocks<BlockMXFP4>(
      row, blocks, out,
      [](const BlockMXFP4& block) { return float_to_half(mxfp4_scale(block.exponent)); },
      [](const BlockMXFP4& block, int i) { return kFp4Doubled[nibble_of_32(block.codes, i)]; });
}

struct Recoding {
  DType from;
  DType to;
  bool (*run)(const void* row, int64_t blocks, void* out);
};

constexpr Recoding kRecodings[] = {
    {DType::kQ4_0, DType::kQ4_1, q4_0_to_q4_1},     {DType::kQ5_0, DType::kQ8_0, q5_0_to_q8_0},
    {DType::kIQ4_NL, DType::kQ8_0, iq4_nl_to_q8_0}, {DType::kMXFP4, DType::kQ8_0, mxfp4_to_q8_0},
    {DType::kQ3_K, DType::kQ8_0, q3_k_to_q8_0},     {DType::kQ4_K, DType::kQ4_1, q4_k_to_q4_1},
    {DType::kIQ4_XS, DType::kQ8_0, iq4_xs_to_q8_0},
};

const Recoding* find(DType from, DType to) {
  for (const Recoding& recoding : kRecodings) {
    if (recoding.from == from && recoding.to == to) return &recoding;
  }
  return nullptr;
}

}  // namespace

bool can_recode(DType from, DType to) {
  return find(from, to) != nullptr;
}

bool recode_row(DType from, const void* row, int64_t k, DType to, void* out) {
  const Recoding* recoding = find(from, to);
  RECKON_CHECK(recoding != nullptr && k >= 0 && k % block_elements(from) == 0);
  return recoding->run(row, k / block_elements(from), out);
}

}  // namespace reckon
