// The Recorder: an Ops that runs nothing and lists the distinct calls that a forward pass makes.
// With it `reckon plan` and a queue's check know every kernel before a weight is touched.
#pragma once

#include <vector>

#include "kernels/ops.h"
#include "kernels/plan.h"

namespace reckon::kernels {

class Recorder final : public Ops {
 public:
  // `planner` decides which compositions are one call; it must outlive the Recorder.
  explicit Recorder(const Planner& planner) : planner_(planner) {}

  void set_phase(Phase phase) { phase_ = phase; }
  // Distinct calls in the order of their first appearance, with how often each was made.
  struct Counted {
    OpCall call;
    uint64_t count = 0;
  };
  [[nodiscard]] const std::vector<Counted>& calls() const { return calls_; }

  Status embedding(const Weight& table, std::span<const int32_t> tokens, Activation out) override;
  Status rms_norm(Activation x, const Weight& weight, float epsilon, Activation out) override;
  Status matmul(Activation x, const Weight& weight, Activation out) override;
  Status rope(Activation x, const Rope& rope, int64_t first_position) override;
  Status attention(Activation q, Activation k, Activation v, const KvCache& cache,
                   int64_t first_position, float scale, Activation out) override;
  Status swiglu(Activation gate, Activation up, Activation out) override;
  Status geglu(Activation gate, Activation up, Activation out) override;
  Status add(Activation x, Activation y, Activation out) override;
  Status add_bias(Activation x, const Weight& bias) override;
  Status scale(Activation x, float factor) override;
  Status sample(Activation logits, const Sampling& sampling, std::span<Pick> picks) override;
  Status causal_conv(Activation x, const Weight& weight, const ConvState& state,
                     int64_t first_position, Activation out) override;
  Status gated_delta_rule(Activation qkv, Activation a, Activation b, const DeltaGates& gates,
                          const DeltaState& state, int64_t first_position, Activation out) override;
  Status gated_rms_norm(Activation x, Activation z, const Weight& weight, float epsilon,
                        Activation out) override;
  Status split_gate(Activation x, int64_t heads, Activation q, Activation gate) override;
  Status sigmoid_gate(Activation x, Activation gate) override;
  Status gated_add(Activation y, Activation gate, Activation out) override;
  Status concat(Activation a, Activation b, Activation out) override;
  Status route(Activation logits, RouteWeights weights, Activation selection) override;
  Status expert_matmul_swiglu(Activation x, Activation selection, const Weight& gate,
                              const Weight& up, int64_t experts, Activation out) override;
  Status expert_matmul_combine(Activation x, Activation selection, const Weight& down,
                               int64_t experts, Activation out) override;

 protected:
  [[nodiscard]] Phase phase() const override { return phase_; }
  [[nodiscard]] bool fuses(const OpCall& call) override { return planner_.fuses(call); }
  Status run_fused(const AddRmsNormArgs& args) override;
  Status run_fused(const MatmulGroupArgs& args) override;
  Status run_fused(const MatmulSwigluArgs& args) override;
  Status run_fused(const RopeAttentionArgs& args) override;

 private:
  Status record(const OpCall& call);

  const Planner& planner_;
  Phase phase_ = Phase::kPrefill;
  std::vector<Counted> calls_;
};

}  // namespace reckon::kernels
