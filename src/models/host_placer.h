// Weights in the host's memory: matrices in place in the mapped file, or packed by a QuantScheme,
// or converted to the nearest type that has kernels (nearest_type.h), into one buffer of the
// placer's own; vectors in place, or as float32 copies where the file has another type. What a
// synthetic checkpoint has is made in that buffer. Matrices of the checkpoint's own type for which
// the backend has kernels that read panels (kernels/panels.h) get those there, too; their rows then
// stay in the file alone, and count as memory only where they are looked up as well.
#pragma once

#include <optional>
#include <utility>

#include "base/large_pages.h"
#include "base/thread_pool.h"
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
  // Sets placed.data; `next` is the free part of the buffer.
  [[nodiscard]] static Status fill_rows(PlacedWeight& weight, char*& next, ThreadPool& pool);

  QuantScheme scheme_;
  const kernels::Backend& backend_;
  ArenaSet memory_;  // at most one buffer
  // Of that buffer: a decode step streams all of it, and through small pages a third slower.
  std::optional<LargePages> large_pages_;
};

}  // namespace reckon::models
