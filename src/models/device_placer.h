// Weights in the memory of a device that keeps them its own way (kernels/weight_loader.h): matrices
// read, packed where the scheme says so, laid out and sent strip by strip, vectors as float32.
#pragma once

#include <utility>

#include "kernels/backend.h"
#include "models/quant_scheme.h"
#include "models/weight_placer.h"
#include "tensor/arena.h"

namespace reckon::models {

class DevicePlacer final : public WeightPlacer {
 public:
  // The backend has a weight loader and outlives the placer.
  DevicePlacer(kernels::Backend& backend, QuantScheme scheme)
      : loader_(*backend.weight_loader()), scheme_(std::move(scheme)), memory_(backend.memory()) {}

  [[nodiscard]] uint64_t allocated_bytes() const override { return memory_.total_bytes(); }

 protected:
  [[nodiscard]] Result<Place> place(const std::string& name, WeightRole role, const Weight& stored,
                                    int64_t experts) const override;
  [[nodiscard]] Status fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) override;

 private:
  kernels::WeightLoader& loader_;
  QuantScheme scheme_;
  ArenaSet memory_;  // one buffer
};

}  // namespace reckon::models
