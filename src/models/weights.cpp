#include "models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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

Result<float> one_plus(float value) {
  return 1.0F + value;
}

Result<float> log_of_negated(float value) {
  if (value <= 0) return std::log(-value);
  return failed(fmt::format("holds {}; expected -exp(A_log), which is not above 0", value));
}

// What a function makes of each value of another source.
class MappedRows final : public RowSource {
 public:
  using Map = Result<float> (*)(float);
  MappedRows(std::unique_ptr<const RowSource> stored, int64_t k, Map map)
      : stored_(std::move(stored)), k_(k), map_(map) {}

  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override {
    std::vector<float> values(static_cast<size_t>(count * k_));
    TRY(stored_->rows(first, count, DType::kF32, values.data()));
    for (float& value : values) {
      TRY_ASSIGN(value, map_(value));
    }
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
  Map map_;
};

// Ranges of rows of other sources, one after another.
class RearrangedRows final : public RowSource {
 public:
  struct Part {
    std::shared_ptr<const RowSource> source;
    int64_t first = 0;
    int64_t count = 0;
  };
  RearrangedRows(std::vector<Part> parts, int64_t k) : parts_(std::move(parts)), k_(k) {}

  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override {
    char* to = static_cast<char*>(out);
    int64_t begin = 0;
    for (const Part& part : parts_) {
      const int64_t from = std::max(first, begin);
      const int64_t rows = std::min(first + count, begin + part.count) - from;
      if (rows > 0) {
        TRY(part.source->rows(part.first + from - begin, rows, type, to));
        to += rows * row_bytes(type, k_);
      }
      begin += part.count;
    }
    return {};
  }

 private:
  std::vector<Part> parts_;
  int64_t k_;
};

// Whether two tensors of one shape and type have the same rows, wherever they are.
Result<bool> same_rows(const Checkpoint& checkpoint, const Weight& shape, const std::string& a,
                       const std::string& b) {
  TRY_ASSIGN(const auto rows_a, checkpoint.rows(a));
  TRY_ASSIGN(const auto rows_b, checkpoint.rows(b));
  const auto stride = static_cast<size_t>(row_bytes(shape.type, shape.k));
  std::vector<char> row_a(stride), row_b(stride);
  for (int64_t row = 0; row < shape.n; ++row) {
    TRY(rows_a->rows(row, 1, shape.type, row_a.data()));
    TRY(rows_b->rows(row, 1, shape.type, row_b.data()));
    if (row_a != row_b) return false;
  }
  return true;
}

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

Result<WeightRef> WeightBinder::bind(const std::string& name, WeightRole role, int64_t n, int64_t k,
                                     int64_t experts) {
  TRY_ASSIGN(const Weight weight, checked(name, role, n, k));
  TRY_ASSIGN(std::unique_ptr<const RowSource> rows, checkpoint_.rows(name));
  return placer_.plan(name, role, weight, std::move(rows), "", experts);
}

Result<WeightRef> WeightBinder::matrix(const std::string& name, int64_t n, int64_t k,
                                       int64_t experts) {
  return bind(name, WeightRole::kMatrix, n, k, experts);
}

Result<WeightRef> WeightBinder::embedding(const std::string& name, int64_t n, int64_t k) {
  return bind(name, WeightRole::kEmbedding, n, k);
}

Result<WeightRef> WeightBinder::tied_embedding(const std::string& name, int64_t n, int64_t k) {
  return bind(name, WeightRole::kTiedEmbedding, n, k);
}

Result<WeightRef> WeightBinder::rearranged(const std::string& name,
                                           const std::vector<RowRange>& ranges, int64_t k,
                                           int64_t experts) {
  std::map<std::string, std::shared_ptr<const RowSource>> sources;
  std::vector<RearrangedRows::Part> parts;
  Weight whole;
  whole.k = k;
  for (const RowRange& range : ranges) {
    std::shared_ptr<const RowSource>& source = sources[range.tensor];
    if (source == nullptr) {
      TRY_ASSIGN(const Weight weight, checked(range.tensor, WeightRole::kMatrix, range.rows, k));
      if (parts.empty()) whole.type = weight.type;
      if (weight.type != whole.type) {
        return failed(fmt::format("{}: tensor '{}' is {}; expected {}, as others of '{}' are",
                                  checkpoint_.path(), range.tensor, dtype_name(weight.type),
                                  dtype_name(whole.type), name));
      }
      TRY_ASSIGN(source, checkpoint_.rows(range.tensor));
    }
    parts.push_back({source, range.first, range.count});
    whole.n += range.count;
  }
  return placer_.plan(name, WeightRole::kMatrix, whole,
                      std::make_shared<const RearrangedRows>(std::move(parts), k),
                      ranges.front().tensor, experts);
}

Result<WeightRef> WeightBinder::table(const std::string& name, int64_t n, int64_t k) {
  return bind(name, WeightRole::kVector, n, k);
}

Result<WeightRef> WeightBinder::vector(const std::string& name, int64_t k) {
  return bind(name, WeightRole::kVector, 1, k);
}

Result<WeightRef> WeightBinder::mapped(const std::string& name, int64_t k,
                                       Result<float> (*map)(float)) {
  TRY_ASSIGN(Weight weight, checked(name, WeightRole::kVector, 1, k));
  TRY_ASSIGN(std::unique_ptr<const RowSource> rows, checkpoint_.rows(name));
  weight.data = nullptr;  // what is stored is not what is read
  return placer_.plan(name, WeightRole::kVector, weight,
                      std::make_unique<const MappedRows>(std::move(rows), k, map));
}

Result<WeightRef> WeightBinder::norm(const std::string& name, int64_t k, NormWeights weights) {
  return weights == NormWeights::kPlain ? vector(name, k) : mapped(name, k, one_plus);
}

Result<WeightRef> WeightBinder::decay(const std::string& name, int64_t k, DecayWeights weights) {
  return weights == DecayWeights::kLog ? vector(name, k) : mapped(name, k, log_of_negated);
}

Status WeightBinder::skip_tied_head(const std::string& embedding, const std::string& head) {
  if (!checkpoint_.has_tensor(head)) return {};
  TRY_ASSIGN(const Weight table, checkpoint_.tensor(embedding));
  TRY_ASSIGN(const Weight stored, checkpoint_.tensor(head, table.n, table.k));
  bool same = stored.type == table.type;
  if (same) {
    TRY_ASSIGN(same, same_rows(checkpoint_, table, embedding, head));
  }
  if (!same) {
    return failed(
        fmt::format("{}: tensor '{}' differs from the embedding, but 'tie_word_embeddings' is true",
                    checkpoint_.path(), head));
  }
  skip(head);
  return {};
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
