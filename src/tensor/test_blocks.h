// Random weights of any type for tests: every bit of the codes and of the parts' scales is used,
// the scales are such that weights are within about 0.1.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/check.h"
#include "tensor/dtype.h"

namespace reckon {

class RandomBlocks {
 public:
  explicit RandomBlocks(uint64_t seed) : engine_(seed) {}

  // [n, k], rows one after another.
  [[nodiscard]] std::vector<uint8_t> rows(DType type, int64_t n, int64_t k) {
    bytes_.assign(static_cast<size_t>(n * row_bytes(type, k)), 0);
    switch (type) {
      case DType::kF32:
        fill<float>([](float& value, float x) { value = x; });
        break;
      case DType::kF16:
        fill<uint16_t>([](uint16_t& value, float x) { value = float_to_half(x); });
        break;
      case DType::kBF16:
        fill<uint16_t>([](uint16_t& value, float x) { value = float_to_bf16(x); });
        break;
      case DType::kQ4_0:
        scaled<BlockQ4_0>(8);
        break;
      case DType::kQ4_1:
        shifted<BlockQ4_1>(8, -7.5F);
        break;
      case DType::kQ5_0:
        scaled<BlockQ5_0>(16);
        break;
      case DType::kQ5_1:
        shifted<BlockQ5_1>(16, -15.5F);
        break;
      case DType::kQ8_0:
        scaled<BlockQ8_0>(127);
        break;
      case DType::kIQ4_NL:
        scaled<BlockIQ4_NL>(127);
        break;
      case DType::kMXFP4:
        fill<BlockMXFP4>([this](BlockMXFP4& block, float) {
          block.exponent = static_cast<uint8_t>(118 + engine_() % 5);
        });
        break;
      case DType::kQ2_K:
        shifted<BlockQ2_K>(3 * 15, 1.5F);
        break;
      case DType::kQ3_K:
        scaled<BlockQ3_K>(4 * 32);
        break;
      case DType::kQ4_K:
        shifted<BlockQ4_K>(15 * 63, 7.5F);
        break;
      case DType::kQ5_K:
        shifted<BlockQ5_K>(31 * 63, 15.5F);
        break;
      case DType::kQ6_K:
        scaled<BlockQ6_K>(32 * 127);
        break;
      case DType::kIQ4_XS:
        scaled<BlockIQ4_XS>(127 * 32);
        break;
      case DType::kP4:
        shifted<BlockP4>(8, -7.5F);
        break;
      case DType::kP8:
        scaled<BlockP8>(127);
        break;
      case DType::kI32:
        RECKON_CHECK(type != DType::kI32);
    }
    return std::move(bytes_);
  }

 private:
  // Blocks of random bytes; `set(block, x)` with x normal of deviation 0.05 makes them finite.
  template <typename Block, typename Set>
  void fill(const Set& set) {
    std::normal_distribution<float> normal(0, 0.05F);
    for (size_t at = 0; at < bytes_.size(); at += sizeof(Block)) {
      unsigned char raw[sizeof(Block)];
      for (unsigned char& byte : raw) byte = static_cast<unsigned char>(engine_());
      Block block;
      std::memcpy(&block, raw, sizeof block);
      set(block, normal(engine_));
      std::memcpy(bytes_.data() + at, &block, sizeof block);
    }
  }

  // A scale of either sign under which the largest code, `range`, is within 0.05 to 0.15.
  float scale(float range, float x) {
    const float size = std::uniform_real_distribution<float>(0.05F, 0.15F)(engine_) / range;
    return x < 0 ? -size : size;
  }

  template <typename Block>
  void scaled(float range) {
    fill<Block>([&](Block& block, float x) { block.scale = float_to_half(scale(range, x)); });
  }

  template <typename Block>
  void shifted(float range, float minimum_in_scales) {
    fill<Block>([&](Block& block, float x) {
      const float step = scale(range, x);
      block.scale = float_to_half(step);
      block.minimum = float_to_half(minimum_in_scales * step);
    });
  }

  std::mt19937_64 engine_;
  std::vector<uint8_t> bytes_;
};

}  // namespace reckon
