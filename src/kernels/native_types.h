// Which element types of weights a backend multiplies as they are stored.
#pragma once

#include <cstdint>

#include "kernels/backend.h"

namespace reckon::kernels {

// Whether a matmul with a weight [n, k] of the type has kernels made for it: decode and prefill
// each find one in the backend's table that its device runs and that is no reference loop, nor
// plain C++ where the device has vectors. Types that have panels count as laid out in them.
[[nodiscard]] bool has_matmul(const Backend& backend, DType type, int64_t n, int64_t k);

// Whether the device runs a kernel that reads a weight [n, k] of the type in panels (panels.h), so
// that laying it out is worth its memory.
[[nodiscard]] bool reads_panels(const Backend& backend, DType type, int64_t n, int64_t k);

}  // namespace reckon::kernels
