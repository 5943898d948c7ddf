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
  bool has_draft_head = false;     // it was built with one
  bool has_experts = false;        // that rows are routed to
  int64_t context_limit = 0;       // positions that the checkpoint was made for
  uint64_t weight_bytes = 0;       // that the weights take once loaded
  uint64_t panel_bytes = 0;        // how much of that are their panels (kernels/panels.h)
  std::vector<std::string> notes;  // what was skipped or converted, one line each
};

// How long a buffer remembers. Going back to position p means running on from there. A buffer of
// state is [parts, rows, columns / parts], and what a position left is a row of each part.
enum class StateKind : uint8_t {
  kNone,        // no state
  kByPosition,  // what position p left is kept as long as the sequence: p can be any earlier one
  kSlots,       // the state before position p is in slot p % rows: rows - 1 positions back
  kRing,        // the input of position p is in slot p % rows, and a pass reads `reads` of them
                // before its first: rows - reads positions back
  kLastPass,    // an activation: row r is of the r-th token of the model's last pass, and the draft
                // head reads it afterwards
};

// One buffer that a model asks for: rows * columns values. Activations are float32.
struct BufferSpec {
  MemoryTag tag = MemoryTag::kActivations;  // or kState
  std::string name;                         // "kv cache", "mlp gate"
  int64_t rows = 0;
  int64_t columns = 0;
  DType type = DType::kF32;
  StateKind kind = StateKind::kNone;
  int64_t reads = 0;  // of kRing
  int64_t parts = 1;  // of state
  // Only calls of this op touch it: a session whose plan fuses them all away has no such buffer,
  // and passes give null for it.
  std::optional<kernels::Op> only_for = std::nullopt;
};

// How many positions back the state can go; none where it is any number of them.
[[nodiscard]] std::optional<int64_t> rollback_of(const BufferSpec& spec);
// The positions whose rows of a buffer of state are read by passes from `position` on.
struct PositionRange {
  int64_t first = 0;
  int64_t count = 0;
};
[[nodiscard]] PositionRange needed_from(const BufferSpec& spec, int64_t position);
// The row of each part that is the position's.
[[nodiscard]] int64_t row_of_position(const BufferSpec& spec, int64_t position);

// What the state of a sequence is for.
struct StateShape {
  int64_t capacity = 0;         // positions
  DType kv_type = DType::kF32;  // elements of KV caches
  int64_t rollback = 0;         // positions that it must be able to go back, at least
  bool drafts = false;          // whether the model's draft head is run as well
};

// What the buffers of a pass are for.
struct PassShape {
  int64_t rows = 0;        // tokens of a pass, at most
  int64_t logit_rows = 0;  // rows whose logits are wanted, at most
  int64_t draft_rows = 0;  // the same of passes of the draft head; 0: it is not run
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

// The experts that a layer's router just selected (kernels/expert_args.h), for the last
// selection.rows rows of a pass; in the backend's memory.
struct Routed {
  int64_t layer = 0;     // from 0; the draft head's is ModelInfo::layers
  Activation logits;     // [rows, experts]
  Activation selection;  // [rows, 2 * top_k]
  kernels::RouteWeights weights = kernels::RouteWeights::kOfAll;
};
// Called before the experts run, which go by what it leaves in the selection.
using RouteObserver = std::function<void(const Routed& routed)>;

// One forward pass: tokens at positions first_position, first_position + 1, ...
struct Pass {
  std::span<const int32_t> tokens;
  int64_t first_position = 0;
  LogitRows logit_rows = LogitRows::kLast;
  // If set: called with the residual stream after the embedding (0) and after each layer (1, ...),
  // the last one after the final norm (all rows where logit_rows is kAll). [rows, hidden].
  std::function<void(int64_t layer, Activation hidden)> observe;
  RouteObserver observe_routes = {};  // may be empty
};

// One pass of the draft head: row r proposes the token after tokens[r], which stands at position
// first_position + r + 1, from what the model's last pass, or a draft, left of the position before.
struct DraftPass {
  std::span<const int32_t> tokens;
  int64_t first_position = 0;  // that the rows take in the head's own cache
  enum class Source : uint8_t { kModel, kDraft } source = Source::kModel;
  int64_t source_row = 0;  // of the first row, among those of the model's, or the head's, last pass
  int64_t wanted = 0;      // the last rows, whose logits are computed; others only fill the cache
  RouteObserver observe_routes = {};  // may be empty
};
struct DraftOutputs {
  Activation hidden;  // [wanted, hidden], after the head's norm
  Activation logits;  // [wanted, vocabulary]
};

class Model {
 public:
  virtual ~Model() = default;

  [[nodiscard]] virtual const ModelInfo& info() const = 0;
  // Buffers of no rows are not allocated: passes give null for them.
  [[nodiscard]] virtual std::vector<BufferSpec> state_specs(const StateShape& shape) const = 0;
  // The last one is the logits, [logit_rows, vocabulary].
  [[nodiscard]] virtual std::vector<BufferSpec> activation_specs(const PassShape& shape) const = 0;
  // Runs the pass; logits land in the last activation buffer, one row for kLast, else one a token.
  // state and activations follow the specs (made for at least this pass's sizes).
  [[nodiscard]] virtual Status forward(kernels::Ops& ops, const Pass& pass, State state,
                                       Buffers activations) const = 0;
  // Runs the draft head, with buffers made for it; a CHECK without ModelInfo::has_draft_head.
  [[nodiscard]] virtual Result<DraftOutputs> draft(kernels::Ops& ops, const DraftPass& pass,
                                                   State state, Buffers activations) const;
};

struct BuildOptions {
  bool draft_head = false;  // with the head that drafts tokens, where the checkpoint has one
};

// Builds the model of a checkpoint (families.cpp lists the families). Every tensor's presence, type
// and shape is verified here and its place planned; weights have no data before placer.load().
// Checkpoint and placer must outlive the model. Errors name the file, the tensor or key and what
// was expected.
[[nodiscard]] Result<std::unique_ptr<Model>> build_model(const Checkpoint& checkpoint,
                                                         WeightPlacer& placer,
                                                         const BuildOptions& options = {});
[[nodiscard]] std::vector<std::string> family_names();

}  // namespace reckon::models
