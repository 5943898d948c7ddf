// The table of the reference variants.
#pragma once

#include <span>
#include <string>

#include "kernels/variants.h"

namespace reckon::kernels {

[[nodiscard]] std::span<const Variant> reference_variants();

// Why a kernel that reads the file's own rows cannot run the call (Variant::supports): an element
// type without arithmetic, or a k that is not whole blocks of a type whose rows are not padded.
[[nodiscard]] std::string supports_weight_rows(const OpCall& call);

}  // namespace reckon::kernels
