// Views of tensors: a pointer, a type and a shape. Views own nothing; what they point at (an arena,
// a mapped file) outlives them by contract of whoever made them. Row-major, the last dimension
// contiguous; shapes are written outermost first, as in the model's checkpoint: a weight of N
// outputs over K inputs is [N, K].
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace reckon {

// A float32 matrix [rows, columns] of activations. `data` may be null in a dry run (the plan).
struct Activation {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;

  [[nodiscard]] Activation row_range(int64_t first, int64_t count) const {
    return {data == nullptr ? nullptr : data + first * columns, count, columns};
  }
};

// A read-only weight [n, k] (n = 1 for a vector such as a norm's), rows packed as dtype.h says. A
// matrix may stand in memory a second time, laid out in panels for kernels (kernels/panels.h).
struct Weight {
  const void* data = nullptr;  // may be null in a dry run
  DType type = DType::kF32;
  int64_t n = 0;
  int64_t k = 0;
  bool in_panels = false;
  bool panels_alone = false;     // the rows are not kept: data stays null
  const void* panels = nullptr;  // null where not in panels; may be null in a dry run

  [[nodiscard]] int64_t bytes() const { return n * row_bytes(type, k); }
};

}  // namespace reckon
