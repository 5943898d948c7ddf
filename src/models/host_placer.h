// Weights in the host's memory: matrices in place in the mapped file, or packed by a QuantScheme
// into one buffer of the placer's own; vectors in place, or as float32 copies where the file has
// another type. What a synthetic checkpoint has is made in that buffer.
#pragma once

#include "models/quant_scheme.h"
#include "models/weight_placer.h"
#include "tensor/arena.h"

namespace reckon::models {

class HostPlacer final : public WeightPlacer {
 public:
  explicit HostPlacer(QuantScheme scheme = {}) : scheme_(scheme) {}

  [[nodiscard]] uint64_t allocated_bytes() const override { return memory_.total_bytes(); }

 protected:
  [[nodiscard]] Result<Place> place(const std::string& name, WeightRole role,
                                    const Weight& stored) const override;
  [[nodiscard]] Status fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) override;

 private:
  QuantScheme scheme_;
  ArenaSet memory_;  // at most one buffer
};

}  // namespace reckon::models
