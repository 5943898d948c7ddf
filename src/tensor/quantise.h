// Packing float32 rows into Reckon's own quantised types (BlockP4, BlockP8 in tensor/blocks.h).
//
// Deterministic: the bytes depend on the row alone. Thread-safe.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace reckon {

// Raised whenever the bytes that quantise_row() gives for any row change: packed weights that were
// kept (models/packed_cache.h) are then packed again.
inline constexpr int kPackingVersion = 1;

[[nodiscard]] bool can_quantise_to(DType type);  // kP4 and kP8

// Packs k elements into row_bytes(to, k) bytes at `out`, at any alignment; padding gets codes of 0.
// False, with `out` undefined, where a value is not finite or too large for half precision scales:
// |x| over 65504 for kP4, over 127 * 65504 for kP8. Any other `to` is a CHECK.
//
// kP4: the scale and the minimum of a group are those of the smallest squared error among a few
// candidates: its whole range, the range shrunk by fixed factors, and two steps of least squares
// from the best of these; all rounded to half before codes are computed. The root mean square error
// of a group is at most half the step that covers it: (max - minimum) / 15 rounded up to a half,
// with min x rounded down to one as the minimum. A constant group that a half can hold is exact.
// kP8: scale = max |x| / 127 rounded to a half (upwards where the largest value would else be cut
// by over half a step, as denormal halves would). No error is above half a scale.
[[nodiscard]] bool quantise_row(DType to, const float* row, int64_t k, void* out);

}  // namespace reckon
