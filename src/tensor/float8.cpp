#include "tensor/float8.h"

#include <array>
#include <bit>
#include <limits>

namespace reckon {
namespace {

float decode_e4m3(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  float value = 0;
  if (exponent == 15 && mantissa == 7) {
    value = std::numeric_limits<float>::quiet_NaN();
  } else if (exponent == 0) {
    value = static_cast<float>(mantissa) * 0x1p-9F;
  } else {
    value = std::bit_cast<float>(static_cast<uint32_t>((exponent + 120) << 23 | mantissa << 20));
  }
  return (code & 0x80) != 0 ? -value : value;
}

const std::array<float, 256>& e4m3_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> table{};
    for (int code = 0; code < 256; ++code) table[code] = decode_e4m3(static_cast<uint8_t>(code));
    return table;
  }();
  return values;
}

}  // namespace

float e4m3_to_float(uint8_t code) {
  return e4m3_values()[code];
}

float e8m0_to_float(uint8_t code) {
  if (code == 0xff) return std::numeric_limits<float>::quiet_NaN();
  if (code == 0) return 0x1p-127F;  // a subnormal float
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 23);
}

}  // namespace reckon
