// Dequantisation against PyPI gguf: raw blocks of every type and their recorded values.
#include <gtest/gtest.h>

#include <cstring>

#include "formats/safetensors.h"
#include "formats/test_files.h"
#include "tensor/dtype.h"

namespace reckon {
namespace {

bool is_in_files(DType type) {
  return type != DType::kF32 && type != DType::kI32 && type != DType::kP4 && type != DType::kP8;
}

TEST(QuantGolden, EveryTypeMatchesBitForBit) {
  for (int t = 0; t < kDTypeCount; ++t) {
    const auto type = static_cast<DType>(t);
    if (!is_in_files(type)) continue;
    const std::string name = std::string(dtype_name(type));
    const auto file = SafetensorsFile::open(golden_path("quant/" + name + ".safetensors"));
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto blocks = file->raw_bytes("blocks");
    const auto values = file->floats("values");
    ASSERT_TRUE(blocks.ok()) << blocks.error().message;
    ASSERT_TRUE(values.ok()) << values.error().message;
    const auto count = static_cast<int64_t>(values->size());
    ASSERT_GT(count, 0);
    ASSERT_EQ(static_cast<int64_t>(blocks->size()), row_bytes(type, count));
    std::vector<float> got(values->size());
    dequantize_row(type, blocks->data(), count, got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &(*values)[i], sizeof(float)), 0)
          << name << " element " << i << ": " << got[i] << " and " << (*values)[i];
    }
  }
}

}  // namespace
}  // namespace reckon
