#include "models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "formats/file_error.h"

namespace reckon::models {
namespace {

constexpr std::array<std::string_view, 4> kVisionPrefixes{
    "model.visual.",
    "visual.",
    "model.vision_tower.",
    "vision_tower.",
};

bool is_vision(std::string_view name) {
  return std::ranges::any_of(kVisionPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Rope frequencies that old checkpoints store beside the base that they follow from.
bool is_derived(std::string_view name) {
  return name.ends_with("rotary_emb.inv_freq");
}

// 1 + the rows of another source.
class OnePlusRows final : public RowSource {
 public:
  OnePlusRows(std::unique_ptr<const RowSource> stored, int64_t k)
      : stored_(std::move(stored)), k_(k) {}

  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override {
    std::vector<float> values(static_cast<size_t>(count * k_));
    TRY(stored_->rows(first, count, DType::kF32, values.data()));
    for (float& value : values) value += 1.0F;
    for (int64_t r = 0; r < count; ++r) {
      char* to = static_cast<char*>(out) + r * row_bytes(type, k_);
      if (!encode_row(type, values.data() + r * k_, k_, to)) {
        return failed(fmt::format("row {}: does not fit {}", first + r, dtype_name(type)));
      }
    }
    return {};
  }

 private:
  std::unique_ptr<const RowSource> stored_;
  int64_t k_;
};

}  // namespace

Result<Weight> WeightBinder::checked(const std::string& name, WeightRole role, int64_t n,
                                     int64_t k) {
  TRY_ASSIGN(const Weight weight, checkpoint_.tensor(name, n, k));
  if (weight.type == DType::kI32) {
    return failed(
        fmt::format("{}: tensor '{}' holds integers; expected weights", checkpoint_.path(), name));
  }
  if (role == WeightRole::kVector && block_elements(weight.type) > 1) {
    return failed(fmt::format("{}: tensor '{}' is {}; expected f32, f16 or bf16",
                              checkpoint_.path(), name, dtype_name(weight.type)));
  }
  used_.insert(name);
  return weight;
}

Result<WeightRef> WeightBinder::bind(const std::string& name, WeightRole role, int64_t n,
                                     int64_t k) {
  TRY_ASSIGN(const Weight weight, checked(name, role, n, k));
  TRY_ASSIGN(std::unique_ptr<const RowSource> rows, checkpoint_.rows(name));
  return placer_.plan(name, role, weight, std::move(rows));
}

Result<WeightRef> WeightBinder::matrix(const std::string& name, int64_t n, int64_t k) {
  return bind(name, WeightRole::kMatrix, n, k);
}

Result<WeightRef> WeightBinder::embedding(const std::string& name, int64_t n, int64_t k) {
  return bind(name, WeightRole::kEmbedding, n, k);
}

Result<WeightRef> WeightBinder::tied_embedding(const std::string& name, int64_t n, int64_t k) {
  return bind(name, WeightRole::kTiedEmbedding, n, k);
}

Result<WeightRef> WeightBinder::vector(const std::string& name, int64_t k) {
  return bind(name, WeightRole::kVector, 1, k);
}

Result<WeightRef> WeightBinder::norm(const std::string& name, int64_t k, NormWeights weights) {
  if (weights == NormWeights::kPlain) return vector(name, k);
  TRY_ASSIGN(Weight weight, checked(name, WeightRole::kVector, 1, k));
  TRY_ASSIGN(std::unique_ptr<const RowSource> rows, checkpoint_.rows(name));
  weight.data = nullptr;  // what is stored is not what is read
  return placer_.plan(name, WeightRole::kVector, weight,
                      std::make_unique<const OnePlusRows>(std::move(rows), k));
}

Result<int64_t> WeightBinder::finish(std::string_view family) const {
  int64_t vision = 0;
  for (const CheckpointTensor& tensor : checkpoint_.tensors()) {
    if (used_.contains(tensor.name) || is_derived(tensor.name)) continue;
    if (is_vision(tensor.name)) {
      ++vision;
      continue;
    }
    return failed(fmt::format("{}: tensor '{}' is not part of a {} model as this version knows it",
                              checkpoint_.path(), printable(tensor.name), family));
  }
  return vision;
}

}  // namespace reckon::models
