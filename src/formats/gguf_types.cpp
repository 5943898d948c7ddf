#include "formats/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/text.h"

namespace reckon {
namespace {

struct ScalarType {
  std::string_view name;
  uint64_t bytes;
};

// Indexed by GgufType.
constexpr std::array<ScalarType, 13> kScalars{{
    {"uint8", 1},
    {"int8", 1},
    {"uint16", 2},
    {"int16", 2},
    {"uint32", 4},
    {"int32", 4},
    {"float32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"uint64", 8},
    {"int64", 8},
    {"float64", 8},
}};

struct TensorType {
  uint32_t number;
  std::string_view name;
  std::optional<DType> type;
};

constexpr TensorType kTensorTypes[] = {
    {0, "F32", DType::kF32},        {1, "F16", DType::kF16},       {2, "Q4_0", DType::kQ4_0},
    {3, "Q4_1", DType::kQ4_1},      {6, "Q5_0", DType::kQ5_0},     {7, "Q5_1", DType::kQ5_1},
    {8, "Q8_0", DType::kQ8_0},      {9, "Q8_1", std::nullopt},     {10, "Q2_K", DType::kQ2_K},
    {11, "Q3_K", DType::kQ3_K},     {12, "Q4_K", DType::kQ4_K},    {13, "Q5_K", DType::kQ5_K},
    {14, "Q6_K", DType::kQ6_K},     {15, "Q8_K", std::nullopt},    {16, "IQ2_XXS", std::nullopt},
    {17, "IQ2_XS", std::nullopt},   {18, "IQ3_XXS", std::nullopt}, {19, "IQ1_S", std::nullopt},
    {20, "IQ4_NL", DType::kIQ4_NL}, {21, "IQ3_S", std::nullopt},   {22, "IQ2_S", std::nullopt},
    {23, "IQ4_XS", DType::kIQ4_XS}, {24, "I8", std::nullopt},      {25, "I16", std::nullopt},
    {26, "I32", std::nullopt},      {27, "I64", std::nullopt},     {28, "F64", std::nullopt},
    {29, "IQ1_M", std::nullopt},    {30, "BF16", DType::kBF16},    {34, "TQ1_0", std::nullopt},
    {35, "TQ2_0", std::nullopt},    {39, "MXFP4", DType::kMXFP4},
};

const TensorType* find_tensor_type(uint32_t number) {
  const auto* found = std::find_if(std::begin(kTensorTypes), std::end(kTensorTypes),
                                   [number](const TensorType& t) { return t.number == number; });
  return found == std::end(kTensorTypes) ? nullptr : found;
}

}  // namespace

uint64_t gguf_scalar_bytes(GgufType type) {
  const auto index = static_cast<size_t>(type);
  return index < kScalars.size() ? kScalars[index].bytes : 0;
}

std::string_view gguf_type_name(GgufType type) {
  const auto index = static_cast<size_t>(type);
  return index < kScalars.size() ? kScalars[index].name : "an unknown type";
}

std::optional<DType> gguf_tensor_type(uint32_t number) {
  const TensorType* found = find_tensor_type(number);
  return found == nullptr ? std::nullopt : found->type;
}

std::string gguf_tensor_types_read() {
  std::vector<std::string> names;
  for (const TensorType& row : kTensorTypes) {
    if (row.type) names.emplace_back(row.name);
  }
  return join(names, ", ");
}

std::string gguf_tensor_type_name(uint32_t number) {
  const TensorType* found = find_tensor_type(number);
  return found == nullptr ? fmt::format("type {}", number) : std::string(found->name);
}

}  // namespace reckon
