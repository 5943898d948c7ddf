// A model: immutable weights and the forward pass of one family, written as calls on kernels::Ops.
//
// A Model is shared by sessions and thread-safe to read. It owns no buffers: it declares what
// state (per sequence) and activations (per pass) it needs, the engine plans and allocates them,
// and the forward pass finds them by index. So the bytes of the plan are the bytes of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "kernels/ops.h"
#include "models/weight_placer.h"
#include "tensor/arena.h"

namespace reckon::models {

struct ModelInfo {
  std::string family;      // "llama"
  std::string name;        // for people, may be empty
  int64_t vocabulary = 0;  // rows of the head
  int64_t hidden = 0;
  int64_t layers = 0;
  int64_t context_limit = 0;       // positions that the checkpoint was made for
  uint64_t weight_bytes = 0;       // that the weights take once loaded
  uint64_t panel_bytes = 0;        // how much of that are their panels (kernels/panels.h)
  std::vector<std::string> notes;  // what was skipped or converted, one line each
};

// One buffer that a model asks for: rows * columns values. Activations are float32.
struct BufferSpec {
  MemoryTag tag = MemoryTag::kActivations;  // or kState
  std::string name;                         // "kv cache", "mlp gate"
  int64_t rows = 0;
  int64_t columns = 0;
  DType type = DType::kF32;
  // Only calls of this op touch it: a session whose plan fuses them all away has no such buffer,
  // and passes give null for it.
  std::optional<kernels::Op> only_for = std::nullopt;
};

// One buffer of per-sequence state.
struct StateBuffer {
  void* data = nullptr;
  DType type = DType::kF32;
  int64_t rows = 0;
  int64_t columns = 0;
};

// Buffers in the order of their specs; data may be null in a dry run.
using State = std::span<const StateBuffer>;
using Buffers = std::span<const Activation>;

enum class LogitRows : uint8_t { kLast, kAll };

// One forward pass: tokens at positions first_position, first_position + 1, ...
struct Pass {
  std::span<const int32_t> tokens;
  int64_t first_position = 0;
  LogitRows logit_rows = LogitRows::kLast;
  // If set: called with the residual stream after the embedding (0) and after each layer (1, ...),
  // the last one after the final norm (all rows where logit_rows is kAll). [rows, hidden].
  std::function<void(int64_t layer, Activation hidden)> observe;
};

class Model {
 public:
  virtual ~Model() = default;

  [[nodiscard]] virtual const ModelInfo& info() const = 0;
  // Per-sequence state for `capacity` positions, its KV cache in elements of `kv_type`.
  [[nodiscard]] virtual std::vector<BufferSpec> state_specs(int64_t capacity,
                                                            DType kv_type) const = 0;
  // Activations for passes of up to `rows` tokens whose logits are wanted for `logit_rows` rows;
  // the last one is the logits, [logit_rows, vocabulary].
  [[nodiscard]] virtual std::vector<BufferSpec> activation_specs(int64_t rows,
                                                                 int64_t logit_rows) const = 0;
  // Runs the pass; logits land in the last activation buffer, one row for kLast, else one a token.
  // state and activations follow the specs (made for at least this pass's sizes).
  [[nodiscard]] virtual Status forward(kernels::Ops& ops, const Pass& pass, State state,
                                       Buffers activations) const = 0;
};

// Builds the model of a checkpoint (families.cpp lists the families). Every tensor's presence, type
// and shape is verified here and its place planned; weights have no data before placer.load().
// Checkpoint and placer must outlive the model. Errors name the file, the tensor or key and what
// was expected.
[[nodiscard]] Result<std::unique_ptr<Model>> build_model(const Checkpoint& checkpoint,
                                                         WeightPlacer& placer);
[[nodiscard]] std::vector<std::string> family_names();

}  // namespace reckon::models
