// Dequantisation against PyPI gguf: raw blocks of every type and their recorded values.
#include <gtest/gtest.h>

#include <cstring>

#include "formats/safetensors.h"
#include "formats/test_files.h"
#include "tensor/dtype.h"

namespace reckon {
namespace {

TEST(QuantGolden, EveryTypeMatchesBitForBit) {
  for (const DType type : {DType::kQ4_1, DType::kQ8_0, DType::kF16, DType::kBF16}) {
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
