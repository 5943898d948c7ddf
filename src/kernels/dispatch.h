// The Dispatcher: runs ops by asking the plan and calling the chosen variant.
//
// Owns nothing big: threads, scratch and trace are the session's. Used from one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/thread_pool.h"
#include "kernels/audit.h"
#include "kernels/ops.h"
#include "kernels/plan.h"
#include "kernels/trace.h"

namespace reckon::kernels {

// What a running kernel may reach (opaque to the kernels themselves). Without a trace, stamps
// count nowhere.
struct KernelContext {
  ThreadPool* threads = nullptr;
  Trace* trace = nullptr;
  void* scratch = nullptr;
  uint64_t scratch_bytes = 0;   // the session's buffer
  uint64_t declared_bytes = 0;  // what the running variant declared
  void* queue = nullptr;        // the backend's own, for its kernels
  BufferAudit* audit = nullptr;
  std::string error;  // what a kernel reported by fail()
};

// What a dispatcher works with. All of it outlives the dispatcher.
struct DispatchResources {
  ThreadPool* threads = nullptr;  // null where kernels do not run on the CPU
  Trace* trace = nullptr;         // never null
  void* scratch = nullptr;        // 64-byte aligned
  uint64_t scratch_bytes = 0;
  void* queue = nullptr;
  BufferAudit* audit = nullptr;  // null: nothing is noted
};

class Dispatcher final : public Ops {
 public:
  // The planner must outlive the Dispatcher, too. The scratch holds at least what the plan declared
  // for every call that will be made; a call that needs more is refused with both figures. The
  // threads are no wider than planner.threads(), for which scratch was declared.
  Dispatcher(Planner& planner, const DispatchResources& resources);

  void set_phase(Phase phase);  // of the following calls, and of the trace

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
  template <typename Function, typename Args>
  Status run(Args args);
  Status prepare(const OpCall& call, const Choice& choice);
  Status outcome(const OpCall& call, const Choice& choice);

  Planner& planner_;
  KernelContext context_;
  Phase phase_ = Phase::kPrefill;
};

}  // namespace reckon::kernels
