// What the families of synthetic checkpoints list their tensors with (synthetic.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/hf_config.h"
#include "formats/synthetic.h"

namespace reckon {

class TensorList {
 public:
  void matrix(const std::string& name, int64_t n, int64_t k) {
    add(name + ".weight", RandomKind::kMatrix, {n, k});
  }
  void norm(const std::string& name, int64_t k) { add(name + ".weight", RandomKind::kNorm, {k}); }
  // One whose weight is 1 + what is stored.
  void zero_centred_norm(const std::string& name, int64_t k) {
    add(name + ".weight", RandomKind::kMatrix, {k});
  }
  void add(const std::string& name, RandomKind kind, std::vector<int64_t> shape) {
    tensors_.push_back({name, kind, std::move(shape)});
  }
  [[nodiscard]] std::vector<SyntheticTensor> take() { return std::move(tensors_); }

 private:
  std::vector<SyntheticTensor> tensors_;
};

// Of qwen3_5 and qwen3_5_moe, with the head that drafts tokens where mtp_num_hidden_layers is 1.
[[nodiscard]] Result<std::vector<SyntheticTensor>> qwen3_5_tensors(const HfConfig& config);

}  // namespace reckon
