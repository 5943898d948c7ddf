// A backend: a device with its memory, its kernels and a way to run passes on it. Engines use this
// and never learn which device it is.
//
// A Backend lives as long as everything made from it. Thread-safe where not said otherwise; an
// Executor is used from one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/audit.h"
#include "kernels/bounds.h"
#include "kernels/device.h"
#include "kernels/ops.h"
#include "kernels/plan.h"
#include "kernels/trace.h"
#include "kernels/weight_loader.h"
#include "tensor/arena.h"

namespace reckon::kernels {

// One pass over some tokens.
struct Step {
  Phase phase = Phase::kPrefill;
  std::span<const int32_t> tokens;
  int64_t first_position = 0;
  // The same calls on the same buffers as every other repeatable step of this phase and number of
  // tokens: a backend may record them once and replay them.
  bool repeatable = false;
  // The one token is what the last start_sample() picks, which this host need not know yet:
  // tokens[0] counts for nothing. Only where the executor runs ahead.
  bool picked_token = false;
};

// Runs passes in the order in which they are given.
class Executor {
 public:
  virtual ~Executor() = default;
  using Work = std::function<Status(Ops& ops)>;

  // Runs `work` for the step, or replays it; may return before a device is done.
  [[nodiscard]] virtual Status run(const Step& step, const Work& work) = 0;
  // Picks a token from each row of logits, by the decode phase's kernels; may return before it is
  // done. One pick at a time: take_picks() comes before the next one.
  [[nodiscard]] virtual Status start_sample(Activation logits, const Sampling& sampling) = 0;
  // Waits for what start_sample() picked, not for the passes behind it.
  [[nodiscard]] virtual Result<std::vector<Pick>> take_picks() = 0;
  // Whether passes return before they are done, so that the next one is worth starting before its
  // token is known here.
  [[nodiscard]] virtual bool runs_ahead() const = 0;
  // Waits for every pass before, and reports what a device found wrong in them.
  [[nodiscard]] virtual Status wait() = 0;
  // The values where the host can read them, once every pass before is done. Valid until the next
  // call on this executor.
  [[nodiscard]] virtual Result<Activation> host_view(Activation values) = 0;
};

// What a session gives its executor.
struct ExecutorResources {
  void* scratch = nullptr;  // kArenaAlignment-aligned, as is `step_memory`
  uint64_t scratch_bytes = 0;
  void* step_memory = nullptr;  // step_bytes(max_rows) of the backend's memory
  int64_t max_rows = 0;         // tokens of the largest pass
  // Gets what ops and the host read, and the step memory where the backend's kernels read a pass's
  // inputs from it. Null: nothing is noted. Outlives the executor.
  BufferAudit* audit = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual const Device& device() const = 0;
  [[nodiscard]] virtual std::span<const Variant> variants() const = 0;

  // Memory that kernels read and write.
  [[nodiscard]] virtual MemorySource& memory() = 0;
  struct Memory {
    uint64_t available_bytes = 0;  // now
    uint64_t total_bytes = 0;
    std::string source;  // "available memory"
  };
  [[nodiscard]] virtual Result<Memory> memory_state() const = 0;

  // How matrices are kept and sent; null where kernels read them as the host has them.
  [[nodiscard]] virtual WeightLoader* weight_loader() { return nullptr; }

  // Bytes that an executor keeps for the inputs of a pass of up to `max_rows` tokens.
  [[nodiscard]] virtual uint64_t step_bytes(int64_t max_rows) const = 0;
  // The planner and the trace must outlive the executor.
  [[nodiscard]] virtual Result<std::unique_ptr<Executor>> make_executor(
      Planner& planner, Trace& trace, const ExecutorResources& resources) = 0;

  // Measures what the device can do at most; takes seconds, and the machine should do nothing else.
  // Fails where the backend cannot, or there is no memory for it.
  [[nodiscard]] virtual Result<std::vector<Bound>> measure_bounds(const BoundsOptions& options);
};

// The CPU. Lives for the process; cheap to get.
[[nodiscard]] Backend& cpu_backend();

// "cpu", and the others that this build has.
[[nodiscard]] std::vector<std::string> backend_names();
// The backend of a name, opened once and kept for the process's life. Errors: a name that this
// build does not have (usage); no such device here (failed).
[[nodiscard]] Result<Backend*> open_backend(std::string_view name);

}  // namespace reckon::kernels
