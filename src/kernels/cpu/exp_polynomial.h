// The numbers of e^x in float32, for exp_avx2.h and exp_avx512.h. Plain types only.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, e^r = 1 + r + r^2 q(r), q a polynomial of degree 4 fitted
// for the smallest largest relative error (3e-9 before rounding): within 2 units in the last place.
// Below kLowest the result is 0, above kHighest it is e^kHighest; NaN stays NaN.
#pragma once

namespace reckon::kernels::cpu::exp_polynomial {

inline constexpr float kLowest = -86.0F;
inline constexpr float kHighest = 88.0F;
inline constexpr float kPerLn2 = 0x1.715476p+0F;
// ln 2 in two parts; the first has few enough bits for n * kLn2High to be exact.
inline constexpr float kLn2High = 0x1.63p-1F;
inline constexpr float kLn2Low = -0x1.bd0106p-13F;
// q, highest power first.
inline constexpr float kQ[5] = {0x1.6a2352p-10F, 0x1.123a6cp-7F, 0x1.5558f4p-5F, 0x1.555490p-3F,
                                0x1.fffffcp-2F};

}  // namespace reckon::kernels::cpu::exp_polynomial
