// Reading a stored weight's rows in the element type that a placer keeps.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace reckon::models {

// Writes rows first ... first + count - 1 of `stored` as rows of `type` (tensor/dtype.h), one after
// another: as they are, converted, or packed. Gives the first row that the type cannot hold (a
// weight that is not finite or too large), or -1. Pure and thread-safe.
[[nodiscard]] int64_t convert_rows(const Weight& stored, DType type, int64_t first, int64_t count,
                                   char* out);

}  // namespace reckon::models
