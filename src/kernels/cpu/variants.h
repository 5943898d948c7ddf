// The table of the cpu variants.
#pragma once

#include <span>

#include "kernels/variants.h"

namespace reckon::kernels {

[[nodiscard]] std::span<const Variant> cpu_variants();

}  // namespace reckon::kernels
