// Which element types of weights a backend multiplies as they are stored.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/plan.h"

namespace reckon::kernels {

// Whether a matmul with a weight [n, k] of the type has kernels made for it: decode and prefill
// each find one in the backend's table that its device runs and that is no reference loop, nor
// plain C++ where the device has vectors. Types that have panels count as laid out in them.
[[nodiscard]] bool has_matmul(const Backend& backend, DType type, int64_t n, int64_t k);

// Whether the device runs a kernel that reads a weight [n, k] of the type in panels (panels.h), so
// that laying it out is worth its memory.
[[nodiscard]] bool reads_panels(const Backend& backend, DType type, int64_t n, int64_t k);

// Which layouts of a weight [n, k] the matmuls of a session read that plans like this. Both where
// some call has no kernel, which is then said when the call is made.
struct LayoutsRead {
  bool rows = false, panels = false;
};
[[nodiscard]] LayoutsRead layouts_read(Planner& planner, DType type, int64_t n, int64_t k);

}  // namespace reckon::kernels
