// The door to the CUDA backend; plain, so that it can be included without CUDA.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/backend.h"
#include "kernels/variants.h"

namespace reckon::kernels::cuda {

// Device 0, opened once. Fails where there is no driver or no GPU of compute capability 8.0 or
// later, saying which.
[[nodiscard]] Result<Backend*> open_backend();
// Of the CUDA runtime that this build is linked with: "13.0".
[[nodiscard]] std::string runtime_version();
// Every variant of this build, and those that a device of a compute capability (90 for 9.0) runs.
[[nodiscard]] std::span<const Variant> variants();
[[nodiscard]] std::vector<Variant> variants_for(int capability);

}  // namespace reckon::kernels::cuda
