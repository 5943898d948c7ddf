// Rows of one tensor in the element type that the place of a weight wants: out of a file, or made
// up (random_rows.h). What loads a weight need not know which, and never needs all of it at once.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "tensor/tensor.h"

namespace reckon {

// Thread-safe, and the same rows come out whatever strips they are asked for in.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Writes rows first ... first + count - 1, row_bytes(type, k) each and one after the other, to
  // `out` (at any alignment). `type` is f32, f16, bf16, p4, p8 or, for tensors of a file, the
  // file's own and what recode.h makes of that; anything else is a CHECK. Fails where a weight
  // cannot be held by `type`, naming the first such row ("row 7: …"); then `out` is undefined.
  [[nodiscard]] virtual Status rows(int64_t first, int64_t count, DType type, void* out) const = 0;
};

// Rows of a weight in memory (a mapped file), which outlives the source: as they are, else recoded
// (recode.h) where that is known, else over float32, packed as quantise.h says.
class StoredRows final : public RowSource {
 public:
  explicit StoredRows(const Weight& weight) : weight_(weight) {}
  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override;

 private:
  Weight weight_;
};

// k float32 values as a row of `type` (f32, f16, bf16, p4 or p8). False, with `out` undefined,
// where one of them does not fit: see quantise_row(); for f16, what is not finite afterwards.
[[nodiscard]] bool encode_row(DType type, const float* row, int64_t k, void* out);

}  // namespace reckon
