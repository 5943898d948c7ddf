// Block FP8, as the published checkpoints of DeepSeek and Qwen have it: a matrix of E4M3 codes NAME
// and a matrix NAME_scale_inv of one scale for each block of 128 x 128 of them (the last blocks of
// rows and columns cut off where the matrix ends); weight = code * scale in float32. config.json
// says so in quantization_config.
//
// Leading dimensions (experts in one tensor) hold one such matrix each. Scales are F32, F16, BF16
// or F8_E8M0. Everything is const and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"
#include "tensor/row_source.h"

namespace reckon {

inline constexpr int64_t kFp8Block = 128;
inline constexpr std::string_view kFp8ScaleSuffix = "_scale_inv";

// What quantization_config says, where there is one: an error, naming the key, for anything but
// quant_method fp8 with fmt e4m3 and blocks of 128 x 128.
[[nodiscard]] Status check_fp8_config(const HfConfig& config);

struct Fp8Weight {
  std::string_view codes;  // [matrices * matrix_rows, k]
  // [matrices, ceil(matrix_rows / 128), ceil(k / 128)]
  std::shared_ptr<const std::vector<float>> scales;
  int64_t matrix_rows = 0;
  int64_t k = 0;
};

// `path` is that of the codes' file, for messages. Fails, naming the tensor, where the scales'
// shape or type is not as above. The codes stay in their file, which outlives the weight.
[[nodiscard]] Result<Fp8Weight> make_fp8_weight(const std::string& path,
                                                const SafetensorsTensor& codes,
                                                const SafetensorsTensor& scales);

// The rows of it: f32 exactly the product above, everything else by encode_row() of that.
class Fp8Rows final : public RowSource {
 public:
  explicit Fp8Rows(Fp8Weight weight) : weight_(std::move(weight)) {}
  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override;

 private:
  void dequantise(int64_t row, float* out) const;

  Fp8Weight weight_;
};

}  // namespace reckon
