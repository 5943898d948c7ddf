// Moving a row from one block type to another without going through weights: the codes are kept,
// or widened, so that next to nothing is lost.
//
//   from     to     what is lost
//   q4_0     q4_1   nothing: the minimum is -8 scales
//   q5_0     q8_0   nothing
//   iq4_nl   q8_0   nothing: the steps are whole numbers of at most 7 bits and a sign
//   mxfp4    q8_0   nothing for exponents 104...143 (half precision holds the power of two); under
//                   that, weights below 12 * 2^-25, scales become 0
//   q3_k     q8_0   nothing: part scale times code is at most 128, and -128 fits with the sign of
//                   the scale turned
//   q4_k     q4_1   the parts' scales and minima are rounded to half: 2^-11 of each
//   iq4_xs   q8_0   the parts' scales are rounded to half: 2^-11
//
// Deterministic and thread-safe.
#pragma once

#include <cstdint>

#include "tensor/blocks.h"

namespace reckon {

[[nodiscard]] bool can_recode(DType from, DType to);

// Writes k elements (a multiple of the block of `from`) as row_bytes(to, k) bytes at `out`; both at
// any alignment. False, with `out` undefined, where a scale is not finite or too large for half
// precision. can_recode() must hold.
[[nodiscard]] bool recode_row(DType from, const void* row, int64_t k, DType to, void* out);

}  // namespace reckon
