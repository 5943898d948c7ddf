// The table of the reference variants.
#pragma once

#include <span>

#include "kernels/variants.h"

namespace reckon::kernels {

[[nodiscard]] std::span<const Variant> reference_variants();

}  // namespace reckon::kernels
