// The Dispatcher: runs ops by asking the plan and calling the chosen variant.
//
// Owns nothing big: threads, scratch and trace are the session's. Used from one thread.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
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
};

class Dispatcher final : public Ops {
 public:
  // All must outlive the Dispatcher. `scratch` holds at least what the plan declared for every
  // call that will be made, 64-byte aligned; a call that needs more is refused with both figures.
  // `threads` is no wider than planner.threads(), for which scratch was declared.
  Dispatcher(Planner& planner, ThreadPool& threads, Trace& trace, void* scratch,
             uint64_t scratch_bytes);

  void set_phase(Phase phase);  // of the following calls, and of the trace

  Status embedding(const Weight& table, std::span<const int32_t> tokens, Activation out) override;
  Status rms_norm(Activation x, const Weight& weight, float epsilon, Activation out) override;
  Status matmul(Activation x, const Weight& weight, Activation out) override;
  Status rope(Activation x, const Rope& rope, int64_t first_position) override;
  Status attention(Activation q, Activation k, Activation v, const KvCache& cache,
                   int64_t first_position, float scale, Activation out) override;
  Status swiglu(Activation gate, Activation up, Activation out) override;
  Status add(Activation x, Activation y, Activation out) override;

 private:
  [[nodiscard]] Result<const Choice*> prepare(const OpCall& call);

  Planner& planner_;
  KernelContext context_;
  Phase phase_ = Phase::kPrefill;
};

}  // namespace reckon::kernels
