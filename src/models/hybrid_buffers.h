// The activations of a hybrid decoder's passes, shared by all layers.
#pragma once

#include <cstdint>
#include <vector>

#include "models/hybrid_config.h"
#include "models/model.h"

namespace reckon::models {

enum class HybridBuffer : uint8_t {
  kHidden,  // the residual stream
  kNormed,
  kDelta,  // what a block adds to it
  // attention
  kQueryAndGate,
  kQ,
  kOutputGate,
  kK,
  kV,
  kAttended,
  // delta net
  kInputs,  // q, k, v before the convolution
  kMixed,   // behind it
  kZ,
  kB,
  kA,
  kRecalled,
  // MLP
  kGate,
  kUp,
  kRouterLogits,
  kSelection,
  kExperts,  // [rows * top_k, inner]
  kShared,
  kSharedGate,
  // draft head
  kModelHidden,  // every row of the model's last pass after its final norm
  kJoined,
  kDraftHidden,
  kDraftLogits,
  kLogits,
  kCount
};

[[nodiscard]] std::vector<BufferSpec> hybrid_activation_specs(const HybridConfig& config,
                                                              const PassShape& shape);

// The buffers as one pass of `rows` tokens sees them: those that hold a row a token (experts: top_k
// rows) are cut to it.
class HybridBuffers {
 public:
  HybridBuffers(const HybridConfig& config, Buffers activations, int64_t rows);

  [[nodiscard]] Activation operator[](HybridBuffer buffer) const {
    return views_[static_cast<size_t>(buffer)];
  }
  [[nodiscard]] int64_t rows() const { return rows_; }
  // The last `count` rows.
  [[nodiscard]] Activation last(HybridBuffer buffer, int64_t count) const {
    return (*this)[buffer].row_range(rows_ - count, count);
  }
  // The last `count` of the rows alone.
  [[nodiscard]] HybridBuffers last_rows(int64_t count) const;
  // Whether they were made for a draft head.
  [[nodiscard]] bool drafts() const { return drafts_; }

 private:
  int64_t rows_;
  int64_t top_k_;
  bool drafts_;
  std::vector<Activation> views_;
};

}  // namespace reckon::models
