// The configuration of a hybrid decoder (Qwen 3.5 and Qwen3-Next), read from a config.json or a
// GGUF file's metadata and checked: what comes out of here is safe to compute sizes with.
//
// Layers are of two kinds: gated delta nets (Yang et al. 2024, arXiv:2412.06464) and full attention
// with an output gate. Their MLP is dense, or routed experts beside a shared one. A value that
// changes the arithmetic and that this version does not compute is an error that names the file and
// the key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "kernels/kernel.h"
#include "models/dense_config.h"

namespace reckon::models {

enum class HybridMlp : uint8_t { kDense, kExperts };
// Of a delta net's inputs: q, k, v in one tensor and z, b, a in one each; or q, k, v, z in one and
// b, a in another, key head by key head.
enum class DeltaInputs : uint8_t { kApart, kInterleaved };

// What tells the families apart.
struct HybridFamily {
  const char* name = "";
  HybridMlp mlp = HybridMlp::kDense;
  DeltaInputs inputs = DeltaInputs::kApart;
};

enum class HybridLayerKind : uint8_t { kDelta, kAttention };

struct ExpertSizes {
  int64_t count = 0;
  int64_t top_k = 0;
  int64_t inner = 0;         // width of each
  int64_t shared_inner = 0;  // width of the shared one
  kernels::RouteWeights weights = kernels::RouteWeights::kOfSelected;
};

struct HybridConfig {
  HybridFamily family;
  std::string name;  // for people, may be empty
  int64_t hidden = 0;
  int64_t vocabulary = 0;
  int64_t context_limit = 0;
  float epsilon = 0;  // of every RMSNorm
  Head head = Head::kOwn;
  std::vector<HybridLayerKind> layers;

  int64_t heads = 0;
  int64_t kv_heads = 0;   // divides heads
  int64_t head_dim = 0;   // of attention
  int64_t rope_dims = 0;  // even, the first of each head
  double rope_base = 0;

  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t conv_width = 0;  // positions that a convolution sees, 2 or more
  kernels::KeyHeadOrder key_order = kernels::KeyHeadOrder::kConsecutive;

  int64_t inner = 0;    // width of a dense MLP; 0 with experts
  ExpertSizes experts;  // zeros where there are none

  int64_t draft_layers = 0;  // of a GGUF file, behind the others; a folder's tensors say

  [[nodiscard]] int64_t layers_of(HybridLayerKind kind) const;
  [[nodiscard]] int64_t q_width() const { return heads * head_dim; }
  [[nodiscard]] int64_t kv_width() const { return kv_heads * head_dim; }
  [[nodiscard]] int64_t key_width() const { return key_heads * key_dim; }
  [[nodiscard]] int64_t value_width() const { return value_heads * value_dim; }
  [[nodiscard]] int64_t conv_channels() const { return 2 * key_width() + value_width(); }
};

[[nodiscard]] Result<HybridConfig> read_hybrid_config(const Checkpoint& checkpoint,
                                                      const HybridFamily& family);

}  // namespace reckon::models
