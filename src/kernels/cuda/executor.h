// Runs passes on one stream of the device, and repeatable ones as captured graphs.
//
// One executor, one thread. A pass returns when it is queued; wait() and host_view() wait for it,
// take_picks() for the pick alone. A graph is captured for each (phase, number of tokens) at its
// first run and replayed afterwards; kernels read the step's inputs from device memory, so that a
// replay needs nothing but new inputs. The trace counts a replay as it counts the captured rows.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/blaslt.h"
#include "kernels/cuda/handles.h"
#include "kernels/cuda/queue.h"
#include "kernels/dispatch.h"

namespace reckon::kernels::cuda {

class CudaExecutor final : public Executor {
 public:
  // `gemv` outlives the executor. step_memory holds step_bytes(max_rows).
  [[nodiscard]] static Result<std::unique_ptr<Executor>> create(Planner& planner, Trace& trace,
                                                                const ExecutorResources& resources,
                                                                const GemvDevice& gemv);
  ~CudaExecutor() override;

  [[nodiscard]] Status run(const Step& step, const Work& work) override;
  [[nodiscard]] Status start_sample(Activation logits, const Sampling& sampling) override;
  [[nodiscard]] Result<std::vector<Pick>> take_picks() override;
  [[nodiscard]] bool runs_ahead() const override { return true; }
  [[nodiscard]] Status wait() override;
  [[nodiscard]] Result<Activation> host_view(Activation values) override;

  // Device memory for the inputs and picks of passes of up to `max_rows` tokens.
  [[nodiscard]] static uint64_t step_bytes(int64_t max_rows);

 private:
  struct Captured {
    GraphExec graph;
    std::shared_ptr<const Trace::Captured> rows;
  };

  CudaExecutor(Planner& planner, Trace& trace, const ExecutorResources& resources);
  [[nodiscard]] Status set_up(const GemvDevice& gemv);
  void note(const Access& access) const;
  [[nodiscard]] Status send_inputs(std::span<const int32_t> tokens, bool picked_token);
  [[nodiscard]] Status read_picks();
  [[nodiscard]] Pick* device_picks() const;
  [[nodiscard]] Result<const Captured*> captured(const Step& step, const Work& work);
  [[nodiscard]] Result<Captured> capture(const Work& work);

  Planner& planner_;
  Trace& trace_;
  const ExecutorResources resources_;
  StepInput input_;  // of the next pass or pick
  StepInput sent_;   // what the device has
  Stream stream_;
  Stream reading_;  // copies picks to the host
  Event picked_;    // after it the device's picks are what was picked last
  Pinned picks_;
  Event picks_read_;        // after it picks_ holds what was picked
  size_t picked_rows_ = 0;  // by the last start_sample()
  Pinned view_;
  uint64_t view_bytes_ = 0;
  std::unique_ptr<BlasLt> blaslt_;  // null where the library is missing
  Queue queue_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::map<std::pair<Phase, size_t>, Captured> graphs_;
};

}  // namespace reckon::kernels::cuda
