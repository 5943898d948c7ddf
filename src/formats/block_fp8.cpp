#include "formats/block_fp8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "formats/file_error.h"
#include "tensor/float8.h"

namespace reckon {
namespace {

int64_t blocks(int64_t elements) {
  return (elements + kFp8Block - 1) / kFp8Block;
}

template <typename Bits, typename Decode>
std::vector<float> decode_all(std::string_view bytes, const Decode& decode) {
  std::vector<float> values(bytes.size() / sizeof(Bits));
  for (size_t i = 0; i < values.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = decode(bits);
  }
  return values;
}

// False where the type is none that scales have.
bool decode_scales(const SafetensorsTensor& tensor, std::vector<float>& scales) {
  if (tensor.type_name == "F32") {
    scales = decode_all<float>(tensor.bytes, [](float value) { return value; });
  } else if (tensor.type_name == "F16") {
    scales = decode_all<uint16_t>(tensor.bytes, half_to_float);
  } else if (tensor.type_name == "BF16") {
    scales = decode_all<uint16_t>(tensor.bytes, bf16_to_float);
  } else if (tensor.type_name == "F8_E8M0") {
    scales = decode_all<uint8_t>(tensor.bytes, e8m0_to_float);
  } else {
    return false;
  }
  return true;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Status expect_word(const HfConfig& config, const char* key, std::string_view expected) {
  TRY_ASSIGN(const std::string word, config.string(key));
  if (word == expected) return {};
  return file_error(config.path(),
                    fmt::format("key '{}' is '{}': expected '{}'", key, printable(word), expected));
}

}  // namespace

Status check_fp8_config(const HfConfig& config) {
  if (!config.has("quantization_config")) return {};
  TRY(expect_word(config, "quantization_config.quant_method", "fp8"));
  constexpr const char* kFormat = "quantization_config.fmt";
  if (config.has(kFormat)) TRY(expect_word(config, kFormat, "e4m3"));
  constexpr const char* kBlock = "quantization_config.weight_block_size";
  TRY_ASSIGN(const std::vector<int64_t> block, config.integers(kBlock));
  if (block == std::vector<int64_t>{kFp8Block, kFp8Block}) return {};
  return file_error(config.path(), fmt::format("key '{}' is {}: expected [{}, {}]", kBlock,
                                               shape_text(block), kFp8Block, kFp8Block));
}

Result<Fp8Weight> make_fp8_weight(const std::string& path, const SafetensorsTensor& codes,
                                  const SafetensorsTensor& scales) {
  const std::vector<int64_t>& shape = codes.shape;
  if (shape.size() < 2) {
    return file_error(path, fmt::format("tensor '{}' is F8_E4M3 and no matrix: its shape is {}",
                                        printable(codes.name), shape_text(shape)));
  }
  std::vector<int64_t> expected = shape;
  for (const size_t back : {size_t{1}, size_t{2}}) {
    expected[shape.size() - back] = blocks(shape[shape.size() - back]);
  }
  if (scales.shape != expected) {
    return file_error(
        path, fmt::format("tensor '{}' has the shape {}: expected {}, a scale for each {} x {} of "
                          "the {} of '{}'",
                          printable(scales.name), shape_text(scales.shape), shape_text(expected),
                          kFp8Block, kFp8Block, shape_text(shape), printable(codes.name)));
  }
  std::vector<float> values;
  if (!decode_scales(scales, values)) {
    return file_error(path, fmt::format("tensor '{}' has the element type {}: expected F32, F16, "
                                        "BF16 or F8_E8M0",
                                        printable(scales.name), printable(scales.type_name)));
  }
  return Fp8Weight{codes.bytes, std::make_shared<const std::vector<float>>(std::move(values)),
                   shape[shape.size() - 2], shape.back()};
}

void Fp8Rows::dequantise(int64_t row, float* out) const {
  const auto* codes = reinterpret_cast<const uint8_t*>(weight_.codes.data()) + row * weight_.k;
  const int64_t matrix = row / weight_.matrix_rows;
  const int64_t block_row = row % weight_.matrix_rows / kFp8Block;
  const int64_t scale_row = matrix * blocks(weight_.matrix_rows) + block_row;
  const float* scales = weight_.scales->data() + scale_row * blocks(weight_.k);
  for (int64_t first = 0; first < weight_.k; first += kFp8Block) {
    const float scale = scales[first / kFp8Block];
    const int64_t end = std::min(first + kFp8Block, weight_.k);
    for (int64_t i = first; i < end; ++i) out[i] = e4m3_to_float(codes[i]) * scale;
  }
}

Status Fp8Rows::rows(int64_t first, int64_t count, DType type, void* out) const {
  const int64_t stride = row_bytes(type, weight_.k);
  std::vector<float> values(static_cast<size_t>(weight_.k));
  for (int64_t j = 0; j < count; ++j) {
    dequantise(first + j, values.data());
    if (!encode_row(type, values.data(), weight_.k, static_cast<char*>(out) + j * stride)) {
      return failed(fmt::format("row {}: holds a weight that is not finite or too large for {}",
                                first + j, dtype_name(type)));
    }
  }
  return {};
}

}  // namespace reckon
