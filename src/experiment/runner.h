// Runner: what an experiment asks of an engine. `experiment` owns this interface and knows no
// engine; adapters implement it (Reckon's own engine, programs).
//
// A Runner is used from one thread. predict() runs nothing and touches no weight; measure() runs
// one arm once from a clean state. Errors: kUsage for what the queue got wrong (unknown switch,
// missing model), kUnsupported from predict() for a kernel that this device lacks, kFailed for what
// broke, and kRefused from measure() only for memory: the arm did not fit.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/command_workload.h"

namespace reckon::experiment {

using SwitchValues = std::map<std::string, std::string>;

// What is run: the same for both arms.
struct Workload {
  std::string model;  // as `-m` takes it
  std::string phase;  // where the metric is read: "prefill" or "decode"; of a program "run"
  // Text, repeated or cut to prompt_tokens where that is set; "": prompt_tokens random tokens.
  std::string prompt;
  int64_t prompt_tokens = 0;    // 0: as long as the text is
  int64_t generate_tokens = 0;  // greedy tokens after the prompt; compared between the arms
  int64_t context = 0;          // positions; 0: just enough for the workload
  std::string metric;  // "decode_tok_per_s", "prefill_tok_per_s", "ms_per_token", "peak_bytes"
  std::string backend = "cpu";  // what runs it
  std::string quant = "none";   // how its matrices are packed at load
  // A program instead of a model: then of the above only phase, metric and backend are set.
  std::optional<CommandWorkload> command = std::nullopt;
};

// One arm: its switches on top of the experiment's common ones, and its memory limit in bytes.
struct Arm {
  std::string name;  // "base", "arm" (or the arm's value where there are several)
  SwitchValues switches;
  std::optional<uint64_t> memory_limit_bytes;
};

// A dispatch row as text; identity of what ran. Ordered by its fields.
struct DispatchRow {
  std::string phase, op, shape, variant, params, source_hash;
  friend auto operator<=>(const DispatchRow&, const DispatchRow&) = default;
};

struct PredictedRow {
  DispatchRow row;
  std::string reason;  // why the plan chose it, one line; clauses end in "; "
  bool certain = true;
};

struct MemoryTermText {
  std::string tag, name;
  uint64_t bytes = 0;
};

struct Prediction {
  std::vector<PredictedRow> rows;
  uint64_t planned_bytes = 0;
  uint64_t budget_bytes = 0;
  std::string budget_source;
  bool fits = true;
  std::string refusal;                // why it does not fit: terms and remedy, one line
  std::vector<MemoryTermText> terms;  // largest first
  std::string weight_layout;
  // What a reader of the result should know of the plan, a line each.
  std::vector<std::string> notes;
  // Files beside the rows' sources whose change makes a result stale: name -> content hash.
  std::map<std::string, std::string> sources;
  // Not "": the rows prove less than observing what is dispatched would, and this says by what
  // they tell arms apart.
  std::string weak_proof;
  // false: what is dispatched is known only once it has run; nothing observed contradicts the rows.
  bool complete = true;
};

// What the experiment runs on, for scope keys (all of it structured, all of it text).
struct Subject {
  // Matched on. Required: "vendor", "isa", "units" (cores or SMs) and "memory_bytes", the last two
  // as whole numbers, memory rounded to GiB; whatever else is given is matched on, too.
  std::map<std::string, std::string> device;
  std::string device_name;  // shown only
  std::string backend;
  std::string model_name;  // shown only; "": as the workload has it
  std::string model_family, model_shape_hash, model_hash, weight_format;
  int64_t chunk = 0;          // effective prefill chunk of the base arm
  int64_t threads = 0;        // of the base arm
  int64_t prompt_tokens = 0;  // after cutting
  std::string prompt_hash;
  // "key=value" words that stand for the model and the token counts in the workload class; "":
  // these themselves.
  std::string workload_words;
};

// What a device's kernels took of it, for the evidence beside a verdict: "decode matmul exact_mma"
// -> "128 registers a thread, 0 B local, occupancy 25%". Empty where nobody says.
using KernelUse = std::map<std::string, std::string>;

struct Measurement {
  // Not "": the arm crashed, hung or gave no result, and this says how; nothing else is set.
  std::string broken;
  std::map<std::string, double> metrics;  // every metric that the runner can give
  std::vector<int32_t> tokens;            // generated, in order
  std::vector<float> margins;             // top-2 logit margin of each generated token
  std::vector<DispatchRow> observed;      // distinct rows, sorted
  uint64_t peak_bytes = 0;
  KernelUse kernel_use;  // of the workload's phase
};

// What an arm's predictions cost against the base arm's, where both are made to take the same
// tokens: the prompt, and then those that the base arm generated.
struct Quality {
  int64_t tokens = 0;      // positions compared
  double mean_kl = 0;      // KL(base || arm), nats a token
  double largest_kl = 0;   // of one position
  int64_t top1_equal = 0;  // positions where both hold the same token for the likeliest
  // Of the prompt's own tokens; unset where it is too short to predict any.
  std::optional<double> base_perplexity, arm_perplexity;
};

// A row of the evidence for an arm's result: "scratch", "1.5 MiB".
struct EvidenceRow {
  std::string name, value;
};

class Runner {
 public:
  virtual ~Runner() = default;
  [[nodiscard]] virtual Result<Subject> describe(const Workload& workload, const Arm& base) = 0;
  [[nodiscard]] virtual Result<Prediction> predict(const Workload& workload, const Arm& arm) = 0;
  [[nodiscard]] virtual Result<Measurement> measure(const Workload& workload, const Arm& arm) = 0;
  // Can it tell what diverging tokens cost (`tokens: may-diverge`)? Then compare_quality() does;
  // `generated` is what the base arm generated. No memory limit counts. Errors as measure().
  [[nodiscard]] virtual bool compares_quality() const { return false; }
  [[nodiscard]] virtual Result<Quality> compare_quality(const Workload& /*workload*/,
                                                        const Arm& /*base*/, const Arm& /*arm*/,
                                                        std::span<const int32_t> /*generated*/) {
    return usage_error("this runner cannot compare what two arms predict");
  }
  // What the plan and the machine's bounds say about an arm whose metric came to `value`: bytes
  // moved, operations, the share of the bound that was reached, scratch. May measure the bounds,
  // once. Empty where the runner cannot know.
  [[nodiscard]] virtual Result<std::vector<EvidenceRow>> evidence(const Workload& /*workload*/,
                                                                  const Arm& /*arm*/,
                                                                  double /*value*/) {
    return std::vector<EvidenceRow>();
  }
  // Environment record, an object: "driver", "kernel", "compiler", "commit" (text), "dirty" (bool),
  // "readings" (name -> text: clocks, load, temperature, container limits) and "facts" (name ->
  // number, for predicates); anything else is kept as it is. Every field may be absent.
  [[nodiscard]] virtual nlohmann::json environment() = 0;
  // Metrics known to this runner, and whether higher is better. A program's own one is in its
  // workload.
  struct MetricInfo {
    std::string name;
    std::string unit;
    bool higher_is_better = true;
    std::string phase;            // the phase that it is read in, "" for any
    bool timed = true;            // moves with whatever else the machine does
    int64_t least_generated = 0;  // tokens that a workload must generate to have it
  };
  [[nodiscard]] virtual std::vector<MetricInfo> metrics() const = 0;
  // An error with a suggestion where the key or the value is unknown.
  [[nodiscard]] virtual Status check_switch(const std::string& key, const std::string& value) = 0;
  // The value that a switch has when nobody sets it.
  [[nodiscard]] virtual std::string default_value(const std::string& key) = 0;
};

}  // namespace reckon::experiment
