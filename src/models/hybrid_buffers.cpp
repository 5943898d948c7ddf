#include "models/hybrid_buffers.h"

#include "base/check.h"

namespace reckon::models {

std::vector<BufferSpec> hybrid_activation_specs(const HybridConfig& config,
                                                const PassShape& shape) {
  const auto spec = [](const char* name, int64_t rows, int64_t columns) {
    return BufferSpec{.name = name, .rows = columns > 0 ? rows : 0, .columns = columns};
  };
  const ExpertSizes& experts = config.experts;
  const int64_t rows = shape.rows;
  const int64_t inner = experts.count > 0 ? experts.shared_inner : config.inner;
  const int64_t recurrent = config.layers_of(HybridLayerKind::kDelta) > 0 ? rows : 0;
  const int64_t routed = experts.count > 0 ? rows : 0;
  const int64_t drafting = shape.draft_rows > 0 ? rows : 0;
  BufferSpec up = spec("mlp up", rows, inner);
  up.only_for = kernels::Op::kSwiglu;
  BufferSpec final_hidden = spec("final hidden", drafting, config.hidden);
  final_hidden.kind = StateKind::kLastPass;
  return {
      spec("hidden", rows, config.hidden),
      spec("normed", rows, config.hidden),
      spec("delta", rows, config.hidden),
      spec("q and gate", rows, 2 * config.q_width()),
      spec("q", rows, config.q_width()),
      spec("output gate", rows, config.q_width()),
      spec("k", rows, config.kv_width()),
      spec("v", rows, config.kv_width()),
      spec("attended", rows, config.q_width()),
      spec("delta net inputs", recurrent, config.conv_channels()),
      spec("convolved inputs", recurrent, config.conv_channels()),
      spec("z", recurrent, config.value_width()),
      spec("b", recurrent, config.value_heads),
      spec("a", recurrent, config.value_heads),
      spec("recalled", recurrent, config.value_width()),
      spec("mlp gate", rows, inner),
      up,
      spec("router logits", routed, experts.count),
      spec("selected experts", routed, 2 * experts.top_k),
      spec("experts", routed * experts.top_k, experts.inner),
      spec("shared expert", routed, config.hidden),
      spec("shared gate", routed, 1),
      final_hidden,
      spec("draft inputs", drafting, 2 * config.hidden),
      spec("draft hidden", shape.draft_rows, config.hidden),
      spec("draft logits", shape.draft_rows, config.vocabulary),
      spec("logits", shape.logit_rows, config.vocabulary),
  };
}

namespace {

constexpr auto kFirstOfOutputs = static_cast<size_t>(HybridBuffer::kDraftHidden);

bool is_of_experts(size_t buffer) {
  return buffer == static_cast<size_t>(HybridBuffer::kExperts);
}

}  // namespace

HybridBuffers::HybridBuffers(const HybridConfig& config, Buffers activations, int64_t rows)
    : rows_(rows),
      top_k_(config.experts.top_k),
      drafts_(activations[static_cast<size_t>(HybridBuffer::kModelHidden)].rows > 0),
      views_(activations.begin(), activations.end()) {
  RECKON_CHECK(views_.size() == static_cast<size_t>(HybridBuffer::kCount));
  for (size_t i = 0; i < kFirstOfOutputs; ++i) {
    views_[i] = views_[i].row_range(0, is_of_experts(i) ? rows * top_k_ : rows);
  }
}

HybridBuffers HybridBuffers::last_rows(int64_t count) const {
  HybridBuffers last = *this;
  const int64_t first = rows_ - count;
  last.rows_ = count;
  for (size_t i = 0; i < kFirstOfOutputs; ++i) {
    last.views_[i] = is_of_experts(i) ? views_[i].row_range(first * top_k_, count * top_k_)
                                      : views_[i].row_range(first, count);
  }
  return last;
}

}  // namespace reckon::models
