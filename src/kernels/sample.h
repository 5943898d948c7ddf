// Sampling one row of logits on the host: the rule of SampleArgs (kernel.h), for the reference
// kernel and for logits that were brought to the host anyway. Sums in float64 in index order, so
// that the drawn token follows from the logits and the random number alone.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels {

// logits [n], n >= 1.
[[nodiscard]] Pick sample_row(const float* logits, int64_t n, double temperature, double uniform);

}  // namespace reckon::kernels
