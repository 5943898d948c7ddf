// The bounds of a CUDA device.
#pragma once

#include <vector>

#include "base/result.h"
#include "kernels/bounds.h"

namespace reckon::kernels::cuda {

// Of the current device: `read`, `copy`, and one bound for each multiplying instruction that it
// has. The buffer is BoundsOptions::buffer_bytes, or 8 GiB, or a third of the free memory where
// that is less.
[[nodiscard]] Result<std::vector<Bound>> measure_bounds(const BoundsOptions& options);

}  // namespace reckon::kernels::cuda
