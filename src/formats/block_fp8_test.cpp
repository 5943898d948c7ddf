#include "formats/block_fp8.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/checkpoint.h"
#include "formats/test_files.h"
#include "tensor/float8.h"

namespace reckon {
namespace {

using ::testing::HasSubstr;

constexpr const char* kConfig =
    R"({"model_type":"llama","quantization_config":{"quant_method":"fp8","fmt":"e4m3",)"
    R"("weight_block_size":[128,128]}})";

SafetensorsFile golden_fp8() {
  auto file = SafetensorsFile::open(golden_path("quant/f8_e4m3.safetensors"));
  EXPECT_TRUE(file.ok()) << file.error().message;
  return std::move(file).value();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(Float8, All256CodesHaveTheRecordedValue) {
  const std::vector<float> values = golden_fp8().floats("values").value();
  ASSERT_EQ(values.size(), 256U);
  int not_a_number = 0;
  for (int code = 0; code < 256; ++code) {
    const float got = e4m3_to_float(static_cast<uint8_t>(code));
    if (std::isnan(values[code])) {
      ++not_a_number;
      EXPECT_TRUE(std::isnan(got)) << code;
    } else {
      EXPECT_EQ(std::memcmp(&got, &values[code], sizeof got), 0) << code << " is " << got;
    }
  }
  EXPECT_EQ(not_a_number, 2);
}

TEST(Float8, PowersOfTwo) {
  EXPECT_EQ(e8m0_to_float(0), std::ldexp(1.0F, -127));
  EXPECT_EQ(e8m0_to_float(1), std::ldexp(1.0F, -126));
  EXPECT_EQ(e8m0_to_float(127), 1.0F);
  EXPECT_EQ(e8m0_to_float(254), std::ldexp(1.0F, 127));
  EXPECT_TRUE(std::isnan(e8m0_to_float(255)));
}

// A folder with the golden codes and scales as one tensor of two matrices [2, 130, 200].
struct Tensors {
  std::string codes_type = "F8_E4M3";
  std::string codes_shape = "[2,130,200]";
  std::string scale_name = "w_scale_inv";
  std::string scale_type = "F32";
  std::string scale_shape = "[2,2,2]";
  std::string config = kConfig;
};

void write_folder_of(const TestFolder& folder, const Tensors& tensors) {
  const SafetensorsFile golden = golden_fp8();
  const std::string_view codes = golden.raw_bytes("codes").value();
  std::string_view scales = golden.find("scales")->bytes;
  if (tensors.scale_type == "F8_E8M0" || tensors.scale_type == "I8") scales = scales.substr(0, 8);
  folder.write("config.json", tensors.config);
  const std::string header = fmt::format(
      R"({{"w":{{"dtype":"{}","shape":{},"data_offsets":[0,{}]}},)"
      R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}}}})",
      tensors.codes_type, tensors.codes_shape, codes.size(), tensors.scale_name, tensors.scale_type,
      tensors.scale_shape, codes.size(), codes.size() + scales.size());
  folder.write("model.safetensors", ByteWriter().text(header).raw(codes).raw(scales).bytes());
}

std::string error_of(const Tensors& tensors) {
  TestFolder folder;
  write_folder_of(folder, tensors);
  const auto checkpoint = Checkpoint::open(folder.path());
  return checkpoint.ok() ? "it opened" : checkpoint.error().message;
}

TEST(BlockFp8, RowsAreTheRecordedProductsBitForBit) {
  TestFolder folder;
  write_folder_of(folder, {});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors().size(), 1U);  // the scales are part of it
  EXPECT_EQ(checkpoint->tensors()[0].type_name, "f8_e4m3");
  EXPECT_TRUE(checkpoint->is_block_fp8("w"));
  EXPECT_FALSE(checkpoint->is_block_fp8("w_scale_inv"));
  const auto weight = checkpoint->tensor("w", 260, 200);
  ASSERT_TRUE(weight.ok()) << weight.error().message;
  EXPECT_EQ(weight->type, DType::kF32);
  const auto rows = checkpoint->rows("w");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  const std::vector<float> expected = golden_fp8().floats("weights").value();
  std::vector<float> got(expected.size());
  ASSERT_TRUE((*rows)->rows(0, 260, DType::kF32, got.data()).ok());
  EXPECT_TRUE(same_bits(got, expected));
  std::vector<float> strip(3 * 200);
  ASSERT_TRUE((*rows)->rows(128, 3, DType::kF32, strip.data()).ok());  // over a matrix's end
  EXPECT_TRUE(same_bits(strip, {expected.begin() + 128 * 200, expected.begin() + 131 * 200}));
}

TEST(BlockFp8, PacksAsItsFloatsDo) {
  TestFolder folder;
  write_folder_of(folder, {});
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto rows = checkpoint->rows("w").value();
  const std::vector<float> weights = golden_fp8().floats("weights").value();
  const StoredRows floats({weights.data(), DType::kF32, 260, 200});
  for (const DType type : {DType::kP4, DType::kP8, DType::kBF16}) {
    const auto bytes = static_cast<size_t>(260 * row_bytes(type, 200));
    std::vector<char> got(bytes), expected(bytes);
    ASSERT_TRUE(rows->rows(0, 260, type, got.data()).ok());
    ASSERT_TRUE(floats.rows(0, 260, type, expected.data()).ok());
    EXPECT_EQ(got, expected) << dtype_name(type);
  }
}

TEST(BlockFp8, ScalesOfOtherTypesAreRead) {
  EXPECT_EQ(error_of({.scale_type = "F8_E8M0"}), "it opened");
  EXPECT_THAT(error_of({.scale_type = "I8"}),
              HasSubstr("tensor 'w_scale_inv' has the element type I8: expected F32, F16, BF16"));
}

TEST(BlockFp8, SaysWhatDoesNotFit) {
  EXPECT_THAT(error_of({.scale_name = "other"}),
              HasSubstr("tensor 'w' is F8_E4M3: expected its scales in a tensor 'w_scale_inv'"));
  EXPECT_THAT(error_of({.scale_shape = "[2,1,4]"}),
              HasSubstr("tensor 'w_scale_inv' has the shape [2, 1, 4]: expected [2, 2, 2]"));
  EXPECT_THAT(error_of({.codes_shape = "[52000]"}), HasSubstr("is F8_E4M3 and no matrix"));
  EXPECT_THAT(error_of({.config = R"({"model_type":"llama"})"}),
              HasSubstr("key 'quantization_config' is missing: tensor 'w' is F8_E4M3"));
}

TEST(BlockFp8, OtherQuantisationsAreNotTakenForIt) {
  const auto config = [](const char* quantisation) {
    return fmt::format(R"({{"model_type":"llama","quantization_config":{}}})", quantisation);
  };
  EXPECT_THAT(error_of({.config = config(R"({"quant_method":"awq"})")}),
              HasSubstr("'quantization_config.quant_method' is 'awq': expected 'fp8'"));
  EXPECT_THAT(error_of({.config = config(R"({"quant_method":"fp8"})")}),
              HasSubstr("'quantization_config.weight_block_size' is missing"));
  EXPECT_THAT(
      error_of({.config = config(R"({"quant_method":"fp8","weight_block_size":[64,128]})")}),
      HasSubstr("weight_block_size' is [64, 128]: expected [128, 128]"));
  EXPECT_THAT(error_of({.config = config(R"({"quant_method":"fp8","fmt":"e5m2"})")}),
              HasSubstr("'quantization_config.fmt' is 'e5m2': expected 'e4m3'"));
}

}  // namespace
}  // namespace reckon
