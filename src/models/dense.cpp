#include "models/dense.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/check.h"
#include "models/weights.h"

namespace reckon::models {
namespace {

// Tensor names of one checkpoint kind; a layer's stand after its prefix.
struct Names {
  const char* embedding;
  const char* final_norm;
  const char* head;
  const char* layer_prefix;  // followed by the layer's number and "."
  const char* attention_norm;
  const char* q;
  const char* k;
  const char* v;
  const char* q_norm;
  const char* k_norm;
  const char* attention_out;
  const char* mlp_norm;
  const char* gate;
  const char* up;
  const char* down;
  const char* q_bias = "";
  const char* k_bias = "";
  const char* v_bias = "";
  const char* post_attention_norm = "";  // of families that have norms behind as well
  const char* post_mlp_norm = "";
};

constexpr Names kGgufNames{
    .embedding = "token_embd.weight",
    .final_norm = "output_norm.weight",
    .head = "output.weight",
    .layer_prefix = "blk.",
    .attention_norm = "attn_norm.weight",
    .q = "attn_q.weight",
    .k = "attn_k.weight",
    .v = "attn_v.weight",
    .q_norm = "attn_q_norm.weight",
    .k_norm = "attn_k_norm.weight",
    .attention_out = "attn_output.weight",
    .mlp_norm = "ffn_norm.weight",
    .gate = "ffn_gate.weight",
    .up = "ffn_up.weight",
    .down = "ffn_down.weight",
    .q_bias = "attn_q.bias",
    .k_bias = "attn_k.bias",
    .v_bias = "attn_v.bias",
    .post_attention_norm = "post_attention_norm.weight",
    .post_mlp_norm = "post_ffw_norm.weight",
};

constexpr Names kHuggingFaceNames{
    .embedding = "model.embed_tokens.weight",
    .final_norm = "model.norm.weight",
    .head = "lm_head.weight",
    .layer_prefix = "model.layers.",
    .attention_norm = "input_layernorm.weight",
    .q = "self_attn.q_proj.weight",
    .k = "self_attn.k_proj.weight",
    .v = "self_attn.v_proj.weight",
    .q_norm = "self_attn.q_norm.weight",
    .k_norm = "self_attn.k_norm.weight",
    .attention_out = "self_attn.o_proj.weight",
    .mlp_norm = "post_attention_layernorm.weight",
    .gate = "mlp.gate_proj.weight",
    .up = "mlp.up_proj.weight",
    .down = "mlp.down_proj.weight",
    .q_bias = "self_attn.q_proj.bias",
    .k_bias = "self_attn.k_proj.bias",
    .v_bias = "self_attn.v_proj.bias",
};

// With norms behind as well, "post_attention_layernorm" is one of those.
Names hugging_face_names(BlockNorms norms) {
  Names names = kHuggingFaceNames;
  if (norms == BlockNorms::kPreAndPost) {
    names.mlp_norm = "pre_feedforward_layernorm.weight";
    names.post_attention_norm = "post_attention_layernorm.weight";
    names.post_mlp_norm = "post_feedforward_layernorm.weight";
  }
  return names;
}

struct Layer {
  WeightRef attention_norm, q, k, v, q_norm, k_norm, attention_out;
  WeightRef mlp_norm, gate, up, down;
  WeightRef q_bias, k_bias, v_bias, post_attention_norm, post_mlp_norm;
};

struct Weights {
  WeightRef embedding, final_norm, head;
  std::vector<Layer> layers;
};

// State: the KV cache of every layer, [layers, kv_heads, capacity, head_dim] each, position by
// position within a head, so that attention streams one head's keys.
enum StateIndex : size_t { kKeys, kValues, kStateCount };

// Activations of a pass, shared by all layers. `delta` is what a block adds to `hidden`.
enum Buffer : size_t {
  kHidden,
  kNormed,
  kDelta,
  kQ,
  kK,
  kV,
  kAttended,
  kGate,
  kUp,
  kLogits,
  kBufferCount
};

class DenseModel final : public Model {
 public:
  DenseModel(DenseConfig config, Weights weights, ModelInfo info)
      : config_(std::move(config)), weights_(std::move(weights)), info_(std::move(info)) {}

  [[nodiscard]] const ModelInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<BufferSpec> state_specs(const StateShape& shape) const override {
    const auto cache = [&](const char* name) {
      return BufferSpec{.tag = MemoryTag::kState,
                        .name = name,
                        .rows = shape.capacity,
                        .columns = config_.layers * kv_width(),
                        .type = shape.kv_type,
                        .kind = StateKind::kByPosition,
                        .parts = config_.layers * config_.kv_heads};
    };
    return {cache("keys"), cache("values")};
  }

  [[nodiscard]] std::vector<BufferSpec> activation_specs(const PassShape& shape) const override {
    const int64_t rows = shape.rows;
    const auto spec = [](const char* name, int64_t r, int64_t columns) {
      return BufferSpec{MemoryTag::kActivations, name, r, columns, DType::kF32};
    };
    BufferSpec up = spec("mlp up", rows, config_.inner);
    if (config_.activation == MlpActivation::kSilu) up.only_for = kernels::Op::kSwiglu;
    return {
        spec("hidden", rows, config_.hidden),
        spec("normed", rows, config_.hidden),
        spec("delta", rows, config_.hidden),
        spec("q", rows, q_width()),
        spec("k", rows, kv_width()),
        spec("v", rows, kv_width()),
        spec("attended", rows, q_width()),
        spec("mlp gate", rows, config_.inner),
        up,
        spec("logits", shape.logit_rows, config_.vocabulary),
    };
  }

  [[nodiscard]] Status forward(kernels::Ops& ops, const Pass& pass, State state,
                               Buffers activations) const override {
    RECKON_CHECK(state.size() == kStateCount && activations.size() == kBufferCount);
    const auto rows = static_cast<int64_t>(pass.tokens.size());
    std::vector<Activation> a(activations.begin(), activations.end());
    for (size_t i = 0; i < kLogits; ++i) a[i] = a[i].row_range(0, rows);

    TRY(ops.embedding(weights_.embedding, pass.tokens, a[kHidden]));
    if (config_.embedding_scale != 1) TRY(ops.scale(a[kHidden], config_.embedding_scale));
    if (pass.observe) pass.observe(0, a[kHidden]);
    TRY(ops.rms_norm(a[kHidden], weights_.layers[0].attention_norm, config_.epsilon, a[kNormed]));
    for (int64_t l = 0; l < config_.layers; ++l) {
      const Layer& layer = weights_.layers[static_cast<size_t>(l)];
      TRY(project(ops, layer, a));
      TRY(attend(ops, layer, l, layer_cache(state, l), pass.first_position, a));
      TRY(mlp(ops, layer, a));
      if (l + 1 == config_.layers) break;
      const Layer& next = weights_.layers[static_cast<size_t>(l + 1)];
      TRY(add_and_norm(ops, next.attention_norm, a));
      if (pass.observe) pass.observe(l + 1, a[kHidden]);
    }

    const int64_t wanted = pass.logit_rows == LogitRows::kAll ? rows : 1;
    const auto last = [&](Buffer buffer) { return a[buffer].row_range(rows - wanted, wanted); };
    const Activation normed = a[kNormed].row_range(0, wanted);
    TRY(ops.add_rms_norm(last(kDelta), last(kHidden), weights_.final_norm, config_.epsilon,
                         normed));
    if (pass.observe) pass.observe(config_.layers, normed);
    return ops.matmul(normed, weights_.head, a[kLogits].row_range(0, wanted));
  }

 private:
  [[nodiscard]] int64_t q_width() const { return config_.heads * config_.head_dim; }
  [[nodiscard]] int64_t kv_width() const { return config_.kv_heads * config_.head_dim; }

  [[nodiscard]] kernels::KvCache layer_cache(State state, int64_t layer) const {
    const int64_t capacity = state[kKeys].rows;
    const int64_t offset = row_bytes(state[kKeys].type, layer * capacity * kv_width());
    const auto at = [&](const StateBuffer& buffer) -> void* {
      return buffer.data == nullptr ? nullptr : static_cast<char*>(buffer.data) + offset;
    };
    return {.keys = at(state[kKeys]),
            .values = at(state[kValues]),
            .type = state[kKeys].type,
            .kv_heads = config_.kv_heads,
            .capacity = capacity,
            .head_dim = config_.head_dim,
            .window = config_.attention[static_cast<size_t>(layer)].window};
  }

  [[nodiscard]] kernels::Rope rope(int64_t layer) const {
    return {.heads = config_.heads,
            .head_dim = config_.head_dim,
            .dims = config_.head_dim,
            .base = config_.attention[static_cast<size_t>(layer)].rope_base,
            .pairing = config_.pairing};
  }

  // hidden += delta, normed = norm(hidden)
  [[nodiscard]] Status add_and_norm(kernels::Ops& ops, const Weight& norm,
                                    const std::vector<Activation>& a) const {
    return ops.add_rms_norm(a[kDelta], a[kHidden], norm, config_.epsilon, a[kNormed]);
  }

  // What a block adds, through the norm behind it where the family has one.
  [[nodiscard]] Status finish_block(kernels::Ops& ops, const WeightRef& post_norm,
                                    const std::vector<Activation>& a) const {
    if (config_.norms == BlockNorms::kPre) return {};
    return ops.rms_norm(a[kDelta], post_norm, config_.epsilon, a[kDelta]);
  }

  [[nodiscard]] Status project(kernels::Ops& ops, const Layer& layer,
                               const std::vector<Activation>& a) const {
    const Weight projections[] = {layer.q, layer.k, layer.v};
    const Activation outs[] = {a[kQ], a[kK], a[kV]};
    TRY(ops.matmul_group(a[kNormed], projections, outs));
    if (config_.qkv_bias == QkvBias::kNone) return {};
    TRY(ops.add_bias(a[kQ], layer.q_bias));
    TRY(ops.add_bias(a[kK], layer.k_bias));
    return ops.add_bias(a[kV], layer.v_bias);
  }

  [[nodiscard]] Status attend(kernels::Ops& ops, const Layer& layer, int64_t index,
                              const kernels::KvCache& cache, int64_t first_position,
                              const std::vector<Activation>& a) const {
    kernels::HeadNorms norms;
    if (config_.qk_norm == QkNorm::kPerHead) {
      norms.q = &static_cast<const Weight&>(layer.q_norm);
      norms.k = &static_cast<const Weight&>(layer.k_norm);
      norms.epsilon = config_.epsilon;
    }
    TRY(ops.rope_attention(a[kQ], a[kK], a[kV], norms, rope(index), cache, first_position,
                           config_.attention_scale, a[kAttended]));
    TRY(ops.matmul(a[kAttended], layer.attention_out, a[kDelta]));
    TRY(finish_block(ops, layer.post_attention_norm, a));
    return add_and_norm(ops, layer.mlp_norm, a);
  }

  [[nodiscard]] Status mlp(kernels::Ops& ops, const Layer& layer,
                           const std::vector<Activation>& a) const {
    if (config_.activation == MlpActivation::kSilu) {
      TRY(ops.matmul_swiglu(a[kNormed], layer.gate, layer.up, a[kUp], a[kGate]));
    } else {
      const Weight gate_and_up[] = {layer.gate, layer.up};
      const Activation outs[] = {a[kGate], a[kUp]};
      TRY(ops.matmul_group(a[kNormed], gate_and_up, outs));
      TRY(ops.geglu(a[kGate], a[kUp], a[kGate]));
    }
    TRY(ops.matmul(a[kGate], layer.down, a[kDelta]));
    return finish_block(ops, layer.post_mlp_norm, a);
  }

  DenseConfig config_;
  Weights weights_;
  ModelInfo info_;
};

Result<Layer> bind_layer(WeightBinder& binder, const DenseConfig& config, const Names& names,
                         int64_t index) {
  const int64_t q_width = config.heads * config.head_dim;
  const int64_t kv_width = config.kv_heads * config.head_dim;
  const std::string at = fmt::format("{}{}.", names.layer_prefix, index);
  const auto norm = [&](const char* name, int64_t k) {
    return binder.norm(at + name, k, config.norm_weights);
  };
  Layer layer;
  TRY_ASSIGN(layer.attention_norm, norm(names.attention_norm, config.hidden));
  TRY_ASSIGN(layer.q, binder.matrix(at + names.q, q_width, config.hidden));
  TRY_ASSIGN(layer.k, binder.matrix(at + names.k, kv_width, config.hidden));
  TRY_ASSIGN(layer.v, binder.matrix(at + names.v, kv_width, config.hidden));
  if (config.qk_norm == QkNorm::kPerHead) {
    TRY_ASSIGN(layer.q_norm, norm(names.q_norm, config.head_dim));
    TRY_ASSIGN(layer.k_norm, norm(names.k_norm, config.head_dim));
  }
  if (config.qkv_bias == QkvBias::kAdded) {
    TRY_ASSIGN(layer.q_bias, binder.vector(at + names.q_bias, q_width));
    TRY_ASSIGN(layer.k_bias, binder.vector(at + names.k_bias, kv_width));
    TRY_ASSIGN(layer.v_bias, binder.vector(at + names.v_bias, kv_width));
  }
  if (config.norms == BlockNorms::kPreAndPost) {
    TRY_ASSIGN(layer.post_attention_norm, norm(names.post_attention_norm, config.hidden));
    TRY_ASSIGN(layer.post_mlp_norm, norm(names.post_mlp_norm, config.hidden));
  }
  TRY_ASSIGN(layer.attention_out, binder.matrix(at + names.attention_out, config.hidden, q_width));
  TRY_ASSIGN(layer.mlp_norm, norm(names.mlp_norm, config.hidden));
  TRY_ASSIGN(layer.gate, binder.matrix(at + names.gate, config.inner, config.hidden));
  TRY_ASSIGN(layer.up, binder.matrix(at + names.up, config.inner, config.hidden));
  TRY_ASSIGN(layer.down, binder.matrix(at + names.down, config.hidden, config.inner));
  return layer;
}

}  // namespace

Result<std::unique_ptr<Model>> build_dense(const Checkpoint& checkpoint, DenseConfig config,
                                           WeightPlacer& placer) {
  const Names names =
      checkpoint.kind() == CheckpointKind::kGguf ? kGgufNames : hugging_face_names(config.norms);
  WeightBinder binder(checkpoint, placer);
  Weights weights;
  TRY_ASSIGN(weights.embedding,
             config.head == Head::kOwn
                 ? binder.embedding(names.embedding, config.vocabulary, config.hidden)
                 : binder.tied_embedding(names.embedding, config.vocabulary, config.hidden));
  for (int64_t l = 0; l < config.layers; ++l) {
    TRY_ASSIGN(Layer layer, bind_layer(binder, config, names, l));
    weights.layers.push_back(layer);
  }
  TRY_ASSIGN(weights.final_norm, binder.norm(names.final_norm, config.hidden, config.norm_weights));
  if (config.head == Head::kOwn) {
    TRY_ASSIGN(weights.head, binder.matrix(names.head, config.vocabulary, config.hidden));
  } else {
    weights.head = weights.embedding;
    TRY(binder.skip_tied_head(names.embedding, names.head));
  }
  TRY_ASSIGN(const int64_t vision, binder.finish(config.family));

  ModelInfo info{.family = config.family,
                 .name = config.name,
                 .vocabulary = config.vocabulary,
                 .hidden = config.hidden,
                 .layers = config.layers,
                 .context_limit = config.context_limit,
                 .weight_bytes = placer.planned_bytes(),
                 .panel_bytes = placer.planned_panel_bytes(),
                 .notes = placer.notes()};
  if (vision > 0) {
    info.notes.push_back(fmt::format("skipped the vision tower ({} tensors)", vision));
  }
  return std::make_unique<DenseModel>(std::move(config), std::move(weights), std::move(info));
}

}  // namespace reckon::models
