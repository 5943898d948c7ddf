// Weights in the host's memory: matrices in place in the mapped file, or packed by a QuantScheme,
// or converted to the nearest type that has kernels (nearest_type.h), into one buffer of the
// placer's own; vectors in place, or as float32 copies where the file has another type. What a
// synthetic checkpoint has is made in that buffer.
#pragma once

#include <utility>

#include "kernels/backend.h"
#include "models/quant_scheme.h"
#include "models/weight_placer.h"
#include "tensor/arena.h"

namespace reckon::models {

class HostPlacer final : public WeightPlacer {
 public:
  // The backend reads the host's memory and outlives the placer.
  explicit HostPlacer(QuantScheme scheme = {},
                      const kernels::Backend& backend = kernels::cpu_backend())
      : scheme_(std::move(scheme)), backend_(backend) {}

  [[nodiscard]] uint64_t allocated_bytes() const override { return memory_.total_bytes(); }

 protected:
  [[nodiscard]] Result<Place> place(const std::string& name, WeightRole role,
                                    const Weight& stored) const override;
  [[nodiscard]] Status fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) override;

 private:
  QuantScheme scheme_;
  const kernels::Backend& backend_;
  ArenaSet memory_;  // at most one buffer
};

}  // namespace reckon::models
