// Synthetic checkpoints: the real dimensions of a named model (models/shapes/*.yaml, compiled in)
// with made-up weights. This file knows their names, configurations and tensors; Checkpoint makes
// a checkpoint of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/hf_config.h"
#include "tensor/random_rows.h"

namespace reckon {

// What "synth:llama-8b,layers=4,seed=7" or "synth:qwen3.6-35b-a3b,router_skew=1" names.
struct SyntheticName {
  std::string shape;
  int64_t layers = 0;        // kept, of the shape's
  int64_t shape_layers = 0;  // that the shape has
  uint64_t seed = 0;
  double router_skew = 0;  // of the load of routed experts (router_skew.h); 0: none

  // As typed, in its shortest form: what -m and a queue take. Ends up in messages as the path.
  [[nodiscard]] std::string text() const;
  // For people: "synth:llama-8b (4 of 32 layers)".
  [[nodiscard]] std::string display() const;
};

[[nodiscard]] bool is_synthetic(std::string_view model);  // starts with "synth:"

// Usage errors: an unknown shape (suggests the nearest) or option, layers outside 1 … the shape's,
// a router skew outside 0 … 4 or of a shape without routed experts.
[[nodiscard]] Result<SyntheticName> parse_synthetic(std::string_view model);

// "synth:NAME" with its depth cut to `layers`. A usage error where the model is not synthetic or
// names other layers.
[[nodiscard]] Result<std::string> with_layers(std::string_view model, int64_t layers);

// The same with the load of its experts skewed. A usage error where the model is not synthetic, has
// no routed experts or names another skew.
[[nodiscard]] Result<std::string> with_router_skew(std::string_view model, double skew);

[[nodiscard]] std::span<const std::string> synthetic_shapes();  // names, sorted

// The configuration as the config.json of a folder would have it.
[[nodiscard]] Result<HfConfig> synthetic_config(const SyntheticName& name);

struct SyntheticTensor {
  std::string name;
  RandomKind kind = RandomKind::kMatrix;
  std::vector<int64_t> shape;           // outermost first; all of them bf16
  std::vector<float> row_factors = {};  // as RandomRows takes them
};

// Every tensor of the checkpoint, whose configuration is synthetic_config()'s. Fails where its
// family has no row in the table of synthetic.cpp, or a key is missing.
[[nodiscard]] Result<std::vector<SyntheticTensor>> synthetic_tensors(const SyntheticName& name,
                                                                     const HfConfig& config);

}  // namespace reckon
