// How a packed file (packed_file.h) is laid out, for its reader and its writer.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/tensor.h"

namespace reckon::models {

inline constexpr std::string_view kPackedMagic = "RKPACKED";
inline constexpr std::string_view kPackedDraft = "RKDRAFT\n";  // in its place until the end
inline constexpr uint64_t kPackedHead = 24;                    // before the header
inline constexpr uint64_t kPackedAlignment = 64;

// Runs of packed_run_rows() rows, the last one with what is left, and the bytes of one.
[[nodiscard]] int64_t packed_runs(const Weight& weight);
[[nodiscard]] std::string_view packed_run(const Weight& weight, int64_t run);

}  // namespace reckon::models
