// What a matrix becomes where its own element type has no kernels.
#pragma once

#include <functional>
#include <optional>

#include "tensor/dtype.h"

namespace reckon::models {

// The nearest type of which `has_kernels` is true; none where there is none (or for kI32).
//
//   stored   kept as   bits a weight    relative error   why
//   q4_0     q4_1       4.5  -> 5       0                the codes stay, the minimum is -8 scales
//   q4_k     q4_1       4.5  -> 5       3.3e-4           the codes stay, scales become halves
//   q5_0     q8_0       5.5  -> 8.5     0                a code of 5 bits is one of 8
//   iq4_nl   q8_0       4.5  -> 8.5     0                the 16 steps are codes of 8 bits
//   iq4_xs   q8_0       4.25 -> 8.5     2.0e-4           the same, scales become halves
//   mxfp4    q8_0       4.25 -> 8.5     0                FP4 values doubled are codes of 8 bits
//   q3_k     q8_0       3.44 -> 8.5     0                part scale times code is a code of 8 bits
//   q2_k     p8         2.63 -> 8.25    4.7e-3           rounded anew, see below
//   q5_1     p8         6    -> 8.25    4.3e-3           likewise
//   q5_k     p8         5.5  -> 8.25    4.5e-3           likewise
//   q6_k     p8         6.56 -> 8.25    5.2e-3           likewise
//   any      f16        ... -> 16       2.2e-4           where the device lacks the type above
//
// The error is the root mean square of the difference, of the root mean square weight, over blocks
// of random codes and scales (nearest_type_test.cpp holds it). The 8-bit rounding adds little to
// what such a type has lost already: 1.9e-2 (q6_k) to 3.3e-1 (q2_k) of a normal distribution.
// Packing into p4 would lose 5e-2 to 8e-2, so that nothing becomes p4 unasked.
[[nodiscard]] std::optional<DType> nearest_type(DType stored,
                                                const std::function<bool(DType)>& has_kernels);

}  // namespace reckon::models
