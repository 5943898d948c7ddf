#include "models/hybrid.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/check.h"
#include "models/hybrid_buffers.h"
#include "models/hybrid_state.h"
#include "models/hybrid_weights.h"

namespace reckon::models {
namespace {

using B = HybridBuffer;

class HybridModel final : public Model {
 public:
  HybridModel(HybridConfig config, HybridWeights weights, ModelInfo info)
      : config_(std::move(config)), weights_(std::move(weights)), info_(std::move(info)) {}

  [[nodiscard]] const ModelInfo& info() const override { return info_; }

  [[nodiscard]] std::vector<BufferSpec> state_specs(const StateShape& shape) const override {
    return hybrid_state_specs(config_, shape);
  }
  [[nodiscard]] std::vector<BufferSpec> activation_specs(const PassShape& shape) const override {
    return hybrid_activation_specs(config_, shape);
  }

  [[nodiscard]] Status forward(kernels::Ops& ops, const Pass& pass, State state,
                               Buffers activations) const override {
    const HybridBuffers a(config_, activations, static_cast<int64_t>(pass.tokens.size()));
    const HybridState states(config_, state);
    TRY(ops.embedding(weights_.embedding, pass.tokens, a[B::kHidden]));
    if (pass.observe) pass.observe(0, a[B::kHidden]);
    TRY(ops.rms_norm(a[B::kHidden], weights_.layers[0].input_norm, config_.epsilon, a[B::kNormed]));
    const size_t layers = weights_.layers.size();
    int64_t attending = 0;
    int64_t recurrent = 0;
    for (size_t l = 0; l < layers; ++l) {
      const HybridLayer& layer = weights_.layers[l];
      if (layer.kind == HybridLayerKind::kAttention) {
        TRY(attend(ops, layer.attention, states.cache(attending++), pass.first_position, a));
        TRY(finish_attention(ops, layer.attention, a));
      } else {
        TRY(recall(ops, layer.delta, states, recurrent++, pass.first_position, a));
      }
      TRY(add_and_norm(ops, layer.mlp_norm, a));
      TRY(mlp(ops, layer, a, {&pass.observe_routes, static_cast<int64_t>(l)}));
      if (l + 1 == layers) break;
      TRY(add_and_norm(ops, weights_.layers[l + 1].input_norm, a));
      if (pass.observe) pass.observe(static_cast<int64_t>(l + 1), a[B::kHidden]);
    }
    return finish(ops, pass, a);
  }

  // h' = norm(layer(join [norm_e(embedding of the next token), norm_h(h)])), logits = head(h').
  [[nodiscard]] Result<DraftOutputs> draft(kernels::Ops& ops, const DraftPass& pass, State state,
                                           Buffers activations) const override {
    RECKON_CHECK(weights_.draft.has_value());
    const DraftWeights& weights = *weights_.draft;
    const auto rows = static_cast<int64_t>(pass.tokens.size());
    const HybridBuffers a(config_, activations, rows);
    const auto whole = [&](B buffer) { return activations[static_cast<size_t>(buffer)]; };
    const Activation source =
        whole(pass.source == DraftPass::Source::kModel ? B::kModelHidden : B::kDraftHidden)
            .row_range(pass.source_row, rows);
    TRY(ops.embedding(weights_.embedding, pass.tokens, a[B::kHidden]));
    TRY(ops.rms_norm(a[B::kHidden], weights.embedding_norm, config_.epsilon, a[B::kNormed]));
    TRY(ops.rms_norm(source, weights.hidden_norm, config_.epsilon, a[B::kDelta]));
    TRY(ops.concat(a[B::kNormed], a[B::kDelta], a[B::kJoined]));
    TRY(ops.matmul(a[B::kJoined], weights.join, a[B::kHidden]));
    TRY(ops.rms_norm(a[B::kHidden], weights.layer.input_norm, config_.epsilon, a[B::kNormed]));
    const HybridState states(config_, state);
    const int64_t cache = config_.layers_of(HybridLayerKind::kAttention);
    TRY(attend(ops, weights.layer.attention, states.cache(cache), pass.first_position, a));
    const DraftOutputs outputs{whole(B::kDraftHidden).row_range(0, pass.wanted),
                               whole(B::kDraftLogits).row_range(0, pass.wanted)};
    if (pass.wanted == 0) return outputs;
    const Routes routes{&pass.observe_routes, info_.layers};
    TRY(finish_draft(ops, weights, a.last_rows(pass.wanted), routes, outputs));
    return outputs;
  }

 private:
  // Who is told of a layer's selection.
  struct Routes {
    const RouteObserver* observe;
    int64_t layer;
  };

  // hidden += delta, normed = norm(hidden)
  [[nodiscard]] Status add_and_norm(kernels::Ops& ops, const Weight& norm,
                                    const HybridBuffers& a) const {
    return ops.add_rms_norm(a[B::kDelta], a[B::kHidden], norm, config_.epsilon, a[B::kNormed]);
  }

  // From `normed` to `attended`, before its gate.
  [[nodiscard]] Status attend(kernels::Ops& ops, const AttentionWeights& weights,
                              const kernels::KvCache& cache, int64_t first_position,
                              const HybridBuffers& a) const {
    const Weight projections[] = {weights.q, weights.k, weights.v};
    const Activation outs[] = {a[B::kQueryAndGate], a[B::kK], a[B::kV]};
    TRY(ops.matmul_group(a[B::kNormed], projections, outs));
    TRY(ops.split_gate(a[B::kQueryAndGate], config_.heads, a[B::kQ], a[B::kOutputGate]));
    const kernels::HeadNorms norms{.q = &static_cast<const Weight&>(weights.q_norm),
                                   .k = &static_cast<const Weight&>(weights.k_norm),
                                   .epsilon = config_.epsilon};
    const kernels::Rope rope{.heads = config_.heads,
                             .head_dim = config_.head_dim,
                             .dims = config_.rope_dims,
                             .base = config_.rope_base,
                             .pairing = kernels::RopePairing::kHalf};
    const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
    return ops.rope_attention(a[B::kQ], a[B::kK], a[B::kV], norms, rope, cache, first_position,
                              scale, a[B::kAttended]);
  }

  [[nodiscard]] Status finish_attention(kernels::Ops& ops, const AttentionWeights& weights,
                                        const HybridBuffers& a) const {
    TRY(ops.sigmoid_gate(a[B::kAttended], a[B::kOutputGate]));
    return ops.matmul(a[B::kAttended], weights.out, a[B::kDelta]);
  }

  [[nodiscard]] Status recall(kernels::Ops& ops, const DeltaWeights& weights,
                              const HybridState& states, int64_t index, int64_t first_position,
                              const HybridBuffers& a) const {
    const Weight wide[] = {weights.qkv, weights.z};
    const Activation wide_outs[] = {a[B::kInputs], a[B::kZ]};
    TRY(ops.matmul_group(a[B::kNormed], wide, wide_outs));
    const Weight narrow[] = {weights.b, weights.a};
    const Activation narrow_outs[] = {a[B::kB], a[B::kA]};
    TRY(ops.matmul_group(a[B::kNormed], narrow, narrow_outs));
    TRY(ops.causal_conv(a[B::kInputs], weights.conv, states.conv(index), first_position,
                        a[B::kMixed]));
    const kernels::DeltaGates gates{.a_log = &static_cast<const Weight&>(weights.a_log),
                                    .dt_bias = &static_cast<const Weight&>(weights.dt_bias)};
    TRY(ops.gated_delta_rule(a[B::kMixed], a[B::kA], a[B::kB], gates, states.delta(index),
                             first_position, a[B::kRecalled]));
    TRY(ops.gated_rms_norm(a[B::kRecalled], a[B::kZ], weights.norm, config_.epsilon,
                           a[B::kRecalled]));
    return ops.matmul(a[B::kRecalled], weights.out, a[B::kDelta]);
  }

  [[nodiscard]] Status mlp(kernels::Ops& ops, const HybridLayer& layer, const HybridBuffers& a,
                           const Routes& routes) const {
    const bool routed = config_.family.mlp == HybridMlp::kExperts;
    if (routed) TRY(run_experts(ops, layer.experts, a, routes));
    TRY(ops.matmul_swiglu(a[B::kNormed], layer.mlp.gate, layer.mlp.up, a[B::kUp], a[B::kGate]));
    if (!routed) return ops.matmul(a[B::kGate], layer.mlp.down, a[B::kDelta]);
    TRY(ops.matmul(a[B::kGate], layer.mlp.down, a[B::kShared]));
    TRY(ops.matmul(a[B::kNormed], layer.experts.shared_gate, a[B::kSharedGate]));
    return ops.gated_add(a[B::kShared], a[B::kSharedGate], a[B::kDelta]);
  }

  [[nodiscard]] Status run_experts(kernels::Ops& ops, const ExpertWeights& weights,
                                   const HybridBuffers& a, const Routes& routes) const {
    const ExpertSizes& sizes = config_.experts;
    TRY(ops.matmul(a[B::kNormed], weights.router, a[B::kRouterLogits]));
    TRY(ops.route(a[B::kRouterLogits], sizes.weights, a[B::kSelection]));
    if (*routes.observe) {
      (*routes.observe)({routes.layer, a[B::kRouterLogits], a[B::kSelection], sizes.weights});
    }
    TRY(ops.expert_matmul_swiglu(a[B::kNormed], a[B::kSelection], weights.gate, weights.up,
                                 sizes.count, a[B::kExperts]));
    return ops.expert_matmul_combine(a[B::kExperts], a[B::kSelection], weights.down, sizes.count,
                                     a[B::kDelta]);
  }

  // The final norm and the head; a draft head needs the norm of every row.
  [[nodiscard]] Status finish(kernels::Ops& ops, const Pass& pass, const HybridBuffers& a) const {
    const int64_t wanted = pass.logit_rows == LogitRows::kAll ? a.rows() : 1;
    const int64_t normed = a.drafts() ? a.rows() : wanted;
    const Activation out = a.drafts() ? a[B::kModelHidden] : a[B::kNormed].row_range(0, wanted);
    TRY(ops.add_rms_norm(a.last(B::kDelta, normed), a.last(B::kHidden, normed), weights_.final_norm,
                         config_.epsilon, out));
    const Activation last = out.row_range(normed - wanted, wanted);
    if (pass.observe) pass.observe(info_.layers, last);
    return ops.matmul(last, weights_.head, a[B::kLogits].row_range(0, wanted));
  }

  // `a` are the wanted rows.
  [[nodiscard]] Status finish_draft(kernels::Ops& ops, const DraftWeights& weights,
                                    const HybridBuffers& a, const Routes& routes,
                                    const DraftOutputs& outputs) const {
    TRY(finish_attention(ops, weights.layer.attention, a));
    TRY(add_and_norm(ops, weights.layer.mlp_norm, a));
    TRY(mlp(ops, weights.layer, a, routes));
    TRY(ops.add_rms_norm(a[B::kDelta], a[B::kHidden], weights.norm, config_.epsilon,
                         outputs.hidden));
    return ops.matmul(outputs.hidden, weights_.head, outputs.logits);
  }

  HybridConfig config_;
  HybridWeights weights_;
  ModelInfo info_;
};

ModelInfo info_of(const HybridConfig& config, const HybridWeights& weights,
                  const WeightPlacer& placer) {
  ModelInfo info{.family = config.family.name,
                 .name = config.name,
                 .vocabulary = config.vocabulary,
                 .hidden = config.hidden,
                 .layers = static_cast<int64_t>(config.layers.size()),
                 .has_draft_head = weights.draft.has_value(),
                 .has_experts = config.family.mlp == HybridMlp::kExperts,
                 .context_limit = config.context_limit,
                 .weight_bytes = placer.planned_bytes(),
                 .panel_bytes = placer.planned_panel_bytes(),
                 .notes = placer.notes()};
  if (weights.vision_tensors > 0) {
    info.notes.push_back(
        fmt::format("skipped the vision tower ({} tensors)", weights.vision_tensors));
  }
  if (weights.draft_tensors_left_out > 0) {
    info.notes.push_back(fmt::format("left out the head that drafts tokens ({} tensors)",
                                     weights.draft_tensors_left_out));
  }
  return info;
}

}  // namespace

Result<std::unique_ptr<Model>> build_hybrid(const Checkpoint& checkpoint,
                                            const HybridFamily& family, WeightPlacer& placer,
                                            const BuildOptions& options) {
  TRY_ASSIGN(HybridConfig config, read_hybrid_config(checkpoint, family));
  TRY_ASSIGN(HybridWeights weights, bind_hybrid(checkpoint, config, options, placer));
  ModelInfo info = info_of(config, weights, placer);
  return std::make_unique<HybridModel>(std::move(config), std::move(weights), std::move(info));
}

}  // namespace reckon::models
