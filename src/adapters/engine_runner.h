// Reckon's own engine as a Runner: a workload becomes a session, switches become a plan, and the
// trace becomes what was observed.
//
// Keeps the last model open between calls. One measurement is a fresh session (clean cache,
// clean trace, clean high-water marks): prefill of the prompt, then greedy decode; only the two
// phases themselves are timed. End-of-sequence tokens do not stop a measured decode, so that both
// arms always do the same work.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/generate.h"
#include "engine/loaded_model.h"
#include "engine/memory_plan.h"
#include "experiment/runner.h"
#include "kernels/backend.h"
#include "kernels/bounds.h"
#include "kernels/switches.h"
#include "kernels/variants.h"

namespace reckon::adapters {

class EngineRunner final : public experiment::Runner {
 public:
  // `variants`: what every plan may choose from instead of the backend's table; empty: that table.
  explicit EngineRunner(std::span<const kernels::Variant> variants = {});

  Result<experiment::Subject> describe(const experiment::Workload& workload,
                                       const experiment::Arm& base) override;
  // Fails where measure() would for want of a kernel, also one for passes that a session plans and
  // the workload does not have.
  Result<experiment::Prediction> predict(const experiment::Workload& workload,
                                         const experiment::Arm& arm) override;
  Result<experiment::Measurement> measure(const experiment::Workload& workload,
                                          const experiment::Arm& arm) override;
  // Two sessions at once, with the logits of every position of a chunk.
  bool compares_quality() const override { return true; }
  Result<experiment::Quality> compare_quality(const experiment::Workload& workload,
                                              const experiment::Arm& base,
                                              const experiment::Arm& arm,
                                              std::span<const int32_t> generated) override;
  // Measures the backend's bounds once, which takes a second or two.
  Result<std::vector<experiment::EvidenceRow>> evidence(const experiment::Workload& workload,
                                                        const experiment::Arm& arm,
                                                        double value) override;
  nlohmann::json environment() override;
  std::vector<MetricInfo> metrics() const override;
  Status check_switch(const std::string& key, const std::string& value) override;
  std::string default_value(const std::string& key) override;

 private:
  // A workload bound to a model: its prompt as tokens and the session that it needs.
  struct Bound {
    const engine::LoadedModel* model = nullptr;
    std::vector<int32_t> prompt;
    kernels::SwitchSet switches;
    engine::SessionShape shape;
    int64_t busy_percent = 0;  // busy_work.h
  };
  [[nodiscard]] Result<const engine::LoadedModel*> open(const experiment::Workload& workload);
  [[nodiscard]] kernels::Planner planner_for(const Bound& bound) const;
  [[nodiscard]] Result<Bound> bind(const experiment::Workload& workload,
                                   const experiment::Arm& arm);
  // A fresh session; `busy_ns` of busy work in every decode step.
  struct Generated {
    std::unique_ptr<engine::Session> session;
    engine::Generation generation;
  };
  [[nodiscard]] Result<Generated> generate(const experiment::Workload& workload,
                                           const experiment::Arm& arm, const Bound& bound,
                                           int64_t busy_ns);
  // What the arm's busy work comes to: its share of a step that is measured without it.
  [[nodiscard]] Result<int64_t> busy_ns(const experiment::Workload& workload,
                                        const experiment::Arm& arm, const Bound& bound);
  [[nodiscard]] Result<std::span<const kernels::Bound>> bounds_for(const Bound& bound);

  std::span<const kernels::Variant> variants_;
  std::string open_name_;  // model, backend and packing of open_model_
  std::unique_ptr<engine::LoadedModel> open_model_;
  std::map<std::string, std::vector<kernels::Bound>> bounds_;  // by backend and threads
  std::map<std::string, int64_t> step_ns_;                     // a decode step's, by what runs it
};

}  // namespace reckon::adapters
