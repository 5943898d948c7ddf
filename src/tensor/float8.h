// 8-bit floats. E4M3: OCP 8-bit Floating Point Specification 1.0, the variant without infinities
// ("e4m3fn"): 1 sign, 4 exponent (bias 7) and 3 mantissa bits; 0x7f and 0xff are NaN. E8M0: OCP
// Microscaling Formats 1.0: a power of two, 2^(code - 127); 0xff is NaN.
//
// Pure and thread-safe.
#pragma once

#include <cstdint>

namespace reckon {

[[nodiscard]] float e4m3_to_float(uint8_t code);  // exact
[[nodiscard]] float e8m0_to_float(uint8_t code);  // exact

}  // namespace reckon
