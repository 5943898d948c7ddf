// The sweep of `reckon tune`: every tile of a model's prefill matmuls, timed on the model's own
// weights, in pairs of the kernel's own tile and another one back to back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/loaded_model.h"
#include "kernels/op.h"
#include "kernels/switches.h"
#include "measure/pairs.h"

namespace reckon::cli {

struct TuneOptions {
  std::vector<int64_t> chunks = {128, 512, 2048};  // ascending, at least one
  int pairs = 6;               // counted, of each tile and call; one more before them is not
  uint64_t seed = 1;           // of the pairs' order
  std::function<bool()> stop;  // asked before each pair; unset: never
};

// One tile of one call.
struct TileTime {
  kernels::TileShape tile = kernels::TileShape::kAuto;  // kAuto: the kernel's own
  double ms = 0;                                        // a call: of the kernel's own the median,
                                                        // of others that over their gain
  double gain = 0;                   // over the kernel's own, log units: the median of the pairs
  uint64_t scratch_bytes = 0;        // of one call
  std::vector<measure::Pair> pairs;  // ms a call; none of the kernel's own
};

struct TunedCell {
  kernels::OpCall call;
  std::string variant;
  std::vector<TileTime> tiles;  // the kernel's own first

  [[nodiscard]] const TileTime& best() const;
  // ln(time / best time) by tile, for derive_tile_rules().
  [[nodiscard]] std::map<kernels::TileShape, double> losses() const;
};

struct Sweep {
  std::vector<TunedCell> cells;                          // by shape, then by rows
  kernels::TileShape own = kernels::TileShape::kSquare;  // the name of what the kernel takes
  int threads = 0;
  bool stopped = false;  // by TuneOptions::stop: then it has the cells before
};

// Called before each cell.
using TuneProgress = std::function<void(const kernels::OpCall& call, size_t index, size_t count)>;

// `switches` without a tile or rules of its own. Loads the model's weights. Errors: a backend that
// is no CPU (usage), no call whose kernel has several tiles (refused), what plans, budgets and
// loads report.
[[nodiscard]] Result<Sweep> run_sweep(const engine::LoadedModel& model,
                                      const kernels::SwitchSet& switches,
                                      const TuneOptions& options, const TuneProgress& progress);

}  // namespace reckon::cli
