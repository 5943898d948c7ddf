// Weights in the host's memory: matrices in place in the mapped file, or packed by a QuantScheme,
// or converted to the nearest type that has kernels (nearest_type.h), into one buffer of the
// placer's own; vectors in place, or as float32 copies where the file has another type. What a
// synthetic checkpoint has is made in that buffer. Matrices for which the backend has kernels that
// read panels (kernels/panels.h) get those there, too. Rows that lie in the file then stay there
// alone, and count as memory only where they are looked up as well; of others, HostLayouts says
// what is kept.
#pragma once

#include <optional>
#include <utility>

#include "base/large_pages.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/native_types.h"
#include "kernels/plan.h"
#include "kernels/switches.h"
#include "models/quant_scheme.h"
#include "models/weight_placer.h"
#include "tensor/arena.h"

namespace reckon::models {

// Which layouts of a matrix are kept that is not read where the file has it: packed, converted or
// made up.
struct HostLayouts {
  // Those that sessions with these switches read; absent: rows alone, which every kernel reads but
  // those of panels.
  std::optional<kernels::SwitchSet> session = {};
  bool both =
      false;  // whatever the switches, for comparisons of kernels that read one or the other
};

class HostPlacer final : public WeightPlacer {
 public:
  // The backend reads the host's memory and outlives the placer.
  explicit HostPlacer(QuantScheme scheme = {},
                      const kernels::Backend& backend = kernels::cpu_backend(),
                      const HostLayouts& layouts = {})
      : scheme_(std::move(scheme)), backend_(backend), keeps_both_(layouts.both) {
    if (layouts.session) planner_.emplace(*layouts.session, backend.device(), backend.variants());
  }

  [[nodiscard]] uint64_t allocated_bytes() const override { return memory_.total_bytes(); }

 protected:
  [[nodiscard]] Result<Place> place(const std::string& name, WeightRole role, const Weight& stored,
                                    int64_t experts) const override;
  [[nodiscard]] Status fill(std::deque<PlacedWeight>& weights, const LoadOptions& options) override;

 private:
  // What is kept of a matrix that has panels.
  [[nodiscard]] kernels::LayoutsRead kept(const Weight& stored, DType type, int64_t experts) const;
  // What fill() does; memory stays taken where it fails.
  [[nodiscard]] Status fill_all(std::deque<PlacedWeight>& weights, const LoadOptions& options);
  // Sets placed.data; `next` is the free part of the buffer.
  [[nodiscard]] static Status fill_rows(PlacedWeight& weight, char*& next, ThreadPool& pool);

  QuantScheme scheme_;
  const kernels::Backend& backend_;
  bool keeps_both_;
  // Of the session that it is for, asked once for each shape: models have many weights of one.
  mutable std::optional<kernels::Planner> planner_;
  ArenaSet memory_;  // at most one buffer
  // Of that buffer: a decode step streams all of it, and through small pages a third slower.
  std::optional<LargePages> large_pages_;
};

}  // namespace reckon::models
