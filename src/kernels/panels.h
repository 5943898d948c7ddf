// Panels: matrices laid out anew for CPU kernels with 16 weight rows side by side (the layout is
// documented in cpu/panel_blocks.h). The same weights, to the bit, in about the same bytes; the
// rows stay where they are for kernels that read rows.
#pragma once

#include <cstdint>

#include "tensor/blocks.h"

namespace reckon::kernels {

inline constexpr int64_t kPanelHeight = 16;

// Whether there are panels for the type.
[[nodiscard]] bool has_panels(DType type);

// Of a type that has panels, with k a multiple of its block. Every panel of a matrix takes the same
// bytes; a last panel of fewer rows is filled up with rows of zeros.
[[nodiscard]] uint64_t panel_bytes(DType type, int64_t n, int64_t k);
// Lays out `count` rows (tensor/dtype.h) that begin a panel. Pure and thread-safe.
void lay_out_panels(DType type, const void* rows, int64_t count, int64_t k, void* out);

}  // namespace reckon::kernels
