// The bounds of a CPU.
#pragma once

#include <vector>

#include "base/result.h"
#include "kernels/bounds.h"
#include "kernels/device.h"

namespace reckon::kernels::cpu {

// By `read` and `read_1_thread`, and by one bound for each multiplying instruction that the device
// has. The buffer is BoundsOptions::buffer_bytes, or eight times the last-level cache, but no more
// than half of `available_bytes`: where that is less than the cache, what is read may come from it,
// and the detail says how much was read. Fails where there is no memory for the buffer.
[[nodiscard]] Result<std::vector<Bound>> measure_bounds(const Device& device,
                                                        uint64_t available_bytes,
                                                        const BoundsOptions& options);

}  // namespace reckon::kernels::cpu
