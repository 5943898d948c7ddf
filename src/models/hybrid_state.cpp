#include "models/hybrid_state.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/dtype.h"

namespace reckon::models {
namespace {

// Keys and values are [layers, kv_heads, capacity, head_dim] each, inputs [layers, ring, channels],
// states [layers, slots, value_heads, key_dim, value_dim].
enum StateIndex : size_t { kKeys, kValues, kInputs, kStates, kStateCount };

// The part of a layer in a buffer of `values` elements a layer.
void* part_of(const StateBuffer& buffer, int64_t layer, int64_t values) {
  if (buffer.data == nullptr) return nullptr;
  return static_cast<char*>(buffer.data) + row_bytes(buffer.type, layer * values);
}

int64_t state_values(const HybridConfig& config) {
  return config.value_heads * config.key_dim * config.value_dim;
}

}  // namespace

std::vector<BufferSpec> hybrid_state_specs(const HybridConfig& config, const StateShape& shape) {
  const int64_t delta_layers = config.layers_of(HybridLayerKind::kDelta);
  const int64_t caches = config.layers_of(HybridLayerKind::kAttention) + (shape.drafts ? 1 : 0);
  const auto cache = [&](const char* name) {
    return BufferSpec{.tag = MemoryTag::kState,
                      .name = name,
                      .rows = caches > 0 ? shape.capacity : 0,
                      .columns = caches * config.kv_width(),
                      .type = shape.kv_type,
                      .kind = StateKind::kByPosition,
                      .parts = std::max<int64_t>(1, caches * config.kv_heads)};
  };
  const auto recurrent = [&](const char* name, StateKind kind, int64_t rows, int64_t columns) {
    return BufferSpec{.tag = MemoryTag::kState,
                      .name = name,
                      .rows = delta_layers > 0 ? rows : 0,
                      .columns = delta_layers * columns,
                      .kind = delta_layers > 0 ? kind : StateKind::kNone,
                      .parts = std::max<int64_t>(1, delta_layers)};
  };
  const int64_t reads = config.conv_width - 1;
  BufferSpec inputs = recurrent("convolution inputs", StateKind::kRing, reads + shape.rollback,
                                config.conv_channels());
  inputs.reads = reads;
  return {
      cache("keys"), cache("values"), inputs,
      recurrent("recurrent states", StateKind::kSlots, 1 + shape.rollback, state_values(config))};
}

kernels::KvCache HybridState::cache(int64_t index) const {
  RECKON_CHECK(state_.size() == kStateCount);
  const StateBuffer& keys = state_[kKeys];
  const int64_t values = keys.rows * config_.kv_width();
  return {.keys = part_of(keys, index, values),
          .values = part_of(state_[kValues], index, values),
          .type = keys.type,
          .kv_heads = config_.kv_heads,
          .capacity = keys.rows,
          .head_dim = config_.head_dim};
}

kernels::ConvState HybridState::conv(int64_t index) const {
  RECKON_CHECK(state_.size() == kStateCount);
  const StateBuffer& inputs = state_[kInputs];
  const int64_t channels = config_.conv_channels();
  return {.inputs = static_cast<float*>(part_of(inputs, index, inputs.rows * channels)),
          .ring = inputs.rows,
          .channels = channels};
}

kernels::DeltaState HybridState::delta(int64_t index) const {
  RECKON_CHECK(state_.size() == kStateCount);
  const StateBuffer& states = state_[kStates];
  return {
      .states = static_cast<float*>(part_of(states, index, states.rows * state_values(config_))),
      .slots = states.rows,
      .key_heads = config_.key_heads,
      .value_heads = config_.value_heads,
      .key_dim = config_.key_dim,
      .value_dim = config_.value_dim,
      .key_order = config_.key_order};
}

}  // namespace reckon::models
