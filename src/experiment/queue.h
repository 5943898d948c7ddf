// A queue file (YAML) as experiments:
//
//   name: five-ideas
//   defaults: {rounds: 2, pairs: 6, model: tiny}
//   experiments:
//     - id: band-order
//       idea: Walk weight-row tiles in bands of 8
//       switch: {key: prefill.tile_order, base: row, arm: band8}
//       workload: {phase: prefill, prompt: prompts/prose.txt, prompt_tokens: 512}
//       metric: prefill_tok_per_s
//       claim: "+2%"
//     - {id: floor, kind: aa, workload: {phase: prefill, prompt: …}, metric: …, rounds: 20}
//
// A queue that says `runner: command` has programs as arms (queue_command.h):
//
//     - id: threads
//       idea: Two threads instead of one
//       switch: {key: threads, base: 1, arm: 2}
//       command: [./bench, --threads, "{threads}"]
//       metric: {read: "json:$.tok_per_s", unit: tok/s, better: higher}
//
// Parsing knows the file, not the runner: switches, metrics and models are checked when the queue
// is prepared. Every error is a usage error "FILE:LINE: …". Pure but for reading the named files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "experiment/runner.h"
#include "ledger/record.h"

namespace reckon::experiment {

struct SwitchPair {
  std::string key;
  std::string base;  // "": the switch's default
  std::string arm;
};

// Where the arms must differ; "" means any.
struct Reach {
  std::string op;
  std::string phase;
};

struct MemoryLimit {
  enum class Kind { kAbovePlan, kBytes, kPercent };
  Kind kind = Kind::kBytes;
  uint64_t bytes = 0;  // on top of the base arm's plan, or in all
  double percent = 0;  // of the device's memory
};

// What the arms' tokens must be.
enum class TokenPolicy {
  kIdentical,   // a difference is BROKE
  kMayDiverge,  // what the difference costs is measured and shown
};
[[nodiscard]] std::string_view token_policy_name(TokenPolicy policy);  // as in a queue file

struct Experiment {
  std::string id;     // of one of several arms "ID:ARM"
  std::string group;  // of an arm that has others beside it: the ID that they share; else ""
  int line = 0;       // in the queue file, counted from 1
  std::string idea;
  ledger::EntryKind kind = ledger::EntryKind::kComparison;
  SwitchPair switch_pair;  // all empty for identical arms; several arms are as many experiments
  SwitchValues set;        // of both arms; `workload.chunk` arrives here as prefill.chunk
  Workload workload;       // complete: model, metric and the text of the prompt are filled in
  Reach reach;             // phase defaults to the workload's
  TokenPolicy tokens = TokenPolicy::kIdentical;
  // A metric that the switch must not be able to move; where it moves, so did something else. "":
  // none.
  std::string control;
  std::optional<MemoryLimit> memory_limit;
  std::optional<double> claim;  // the least gain worth having, as a share: 0.02 is +2%
  int rounds = 2;               // identical arms: how many the ledger shall hold in all
  int pairs = 6;                // counted pairs a round
  int warmup_pairs = 1;         // before them, in every process
  int timeout_seconds = 300;    // for one measurement
  bool only_full = false;       // run with --full alone (extent.h)
  // What --auto-pairs (auto_pairs.h) or --quick (extent.h) made of the design and why; "": it is as
  // the queue has it.
  std::string lengthened;

  [[nodiscard]] bool is_floor() const { return kind == ledger::EntryKind::kFloor; }
};

struct Queue {
  std::string name;
  std::string path;               // as given; starts every message
  std::string runner = "reckon";  // of all its experiments: "reckon" or "command"
  std::vector<Experiment> experiments;
};

inline constexpr size_t kMaximumQueueBytes = 8u << 20;
inline constexpr size_t kMaximumPromptBytes = 1u << 20;

// What stands in for the queue's `defaults`, for every experiment that has none of its own; "":
// what the queue says. A usage error where no experiment takes it.
struct QueueOverrides {
  std::string model;
  std::string quant;
};

[[nodiscard]] Result<Queue> load_queue(const std::string& path, const QueueOverrides& instead = {});

// `path` names the file in messages; prompt files are looked for beside it, then upwards.
[[nodiscard]] Result<Queue> parse_queue(std::string_view text, const std::string& path,
                                        const QueueOverrides& instead = {});

// Is this `prompt` the name of a file, as opposed to the text itself?
[[nodiscard]] bool names_prompt_file(std::string_view prompt);

// Makes a program what the experiment runs; its time-out is the experiment's.
void use_command(Experiment& experiment, CommandWorkload command);

// A queue of this one experiment that needs no other file: the prompt stands in it and every
// default is spelled out. What an entry keeps, and what a replay runs.
[[nodiscard]] std::string standalone_queue(const Experiment& experiment);

// "90s", "9m", "1.5h". Usage errors name the text; at most 30 days, above zero. A bare number is
// refused: one reader takes it for seconds, another for minutes.
[[nodiscard]] Result<double> parse_seconds(std::string_view text);

// "1.0": a plain number of 0 or more. Usage errors name the text.
[[nodiscard]] Result<double> parse_number(std::string_view text);

// "plan+32MiB", "8GiB", "75%".
[[nodiscard]] Result<MemoryLimit> parse_memory_limit(std::string_view text);

// "+2%" or "2%" as 0.02; above zero, at most 1000%.
[[nodiscard]] Result<double> parse_claim(std::string_view text);

}  // namespace reckon::experiment
