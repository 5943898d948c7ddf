#include "models/nearest_type.h"

namespace reckon::models {
namespace {

struct Nearest {
  DType stored;
  DType kept;
};

constexpr Nearest kNearest[] = {
    {DType::kQ4_0, DType::kQ4_1},   {DType::kQ4_K, DType::kQ4_1},   {DType::kQ5_0, DType::kQ8_0},
    {DType::kIQ4_NL, DType::kQ8_0}, {DType::kIQ4_XS, DType::kQ8_0}, {DType::kMXFP4, DType::kQ8_0},
    {DType::kQ3_K, DType::kQ8_0},   {DType::kQ2_K, DType::kP8},     {DType::kQ5_1, DType::kP8},
    {DType::kQ5_K, DType::kP8},     {DType::kQ6_K, DType::kP8},
};

}  // namespace

std::optional<DType> nearest_type(DType stored, const std::function<bool(DType)>& has_kernels) {
  if (stored == DType::kI32) return std::nullopt;
  if (has_kernels(stored)) return stored;
  for (const Nearest& row : kNearest) {
    if (row.stored == stored && has_kernels(row.kept)) return row.kept;
  }
  if (has_kernels(DType::kF16)) return DType::kF16;
  return std::nullopt;
}

}  // namespace reckon::models
