// The state of a hybrid decoder's sequence, declared and found in one place: the KV caches of
// layers that attend, by position; of delta nets a recurrent state in a ring of slots, and the past
// inputs of a convolution in a ring by position. A draft head's cache is the last of the KV caches.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "models/hybrid_config.h"
#include "models/model.h"

namespace reckon::models {

[[nodiscard]] std::vector<BufferSpec> hybrid_state_specs(const HybridConfig& config,
                                                         const StateShape& shape);

// Views of one layer's part; `index` counts the layers of its kind. Data is null in a dry run.
class HybridState {
 public:
  // `state` follows the specs.
  HybridState(const HybridConfig& config, State state) : config_(config), state_(state) {}

  [[nodiscard]] kernels::KvCache cache(int64_t index) const;
  [[nodiscard]] kernels::ConvState conv(int64_t index) const;
  [[nodiscard]] kernels::DeltaState delta(int64_t index) const;

 private:
  const HybridConfig& config_;
  State state_;
};

}  // namespace reckon::models
