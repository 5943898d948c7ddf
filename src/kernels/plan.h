// The plan: a pure function from (switches, device, table, call) to the kernel that runs it.
//
// Everything that decides which code runs is here. A Planner memoises; it is cheap to make, not
// thread-safe, and never looks at the machine beyond the Device that it was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "kernels/call.h"
#include "kernels/device.h"
#include "kernels/switches.h"
#include "kernels/tile_rules.h"
#include "kernels/variants.h"

namespace reckon::kernels {

struct Choice {
  const Variant* variant = nullptr;
  // The name under which the function is known: the first table row with the same function. Two
  // rows that share one function are one kernel, whatever they are called.
  const char* identity = "";
  KernelParams params;  // effective
  // What decided: "numerics-class", "forced" (kernel.<op>), "split-k" (prefill.split_k),
  // "verify-kernel" (decode.verify_kernel), "multi-row" (decode.multi_max) or "stream-rows" (which
  // rows a stream takes) where those keep the exact kernel, "no-effect" (what was asked for makes
  // no difference for this call), or "NAME:3", a row of tile rules, which chose the tile.
  std::string rule;
  // The rules that were asked for a tile, and how the call lies outside their conditions, "" where
  // it does not (tile_rules.h). Null: no rules were asked.
  std::shared_ptr<const TileRules> tile_rules;
  std::string extrapolated;
  std::string reason;  // one line for people
  uint64_t scratch_bytes = 0;
  WeightLayout layout = WeightLayout::kNone;
};

class Planner {
 public:
  Planner(SwitchSet switches, Device device, std::span<const Variant> table);

  // How many of the host's threads kernels run on: cpu.threads, or the device's cores; 1 on a GPU.
  [[nodiscard]] int threads() const;
  // Tokens of a prefill pass: prefill.chunk, or what suits the device.
  [[nodiscard]] int64_t prefill_chunk() const;
  // Elements of the KV cache: kv.type, or f16 on a GPU and f32 elsewhere and for reference kernels.
  [[nodiscard]] DType kv_type() const;
  [[nodiscard]] const SwitchSet& switches() const { return switches_; }
  [[nodiscard]] const Device& device() const { return device_; }

  // The kernel for a call. Errors: a forced variant that cannot run the call (usage), or that this
  // device lacks, as it may a forced instruction set (unsupported), never a silent fallback; a call
  // that no variant runs (failed); each with the reasons. The pointer lives as long as the Planner.
  [[nodiscard]] Result<const Choice*> choose(const OpCall& call);

  // Whether a composition (ops.h) is one call: the table has a kernel for it in the class that the
  // phase asks for, and no switch names a kernel of one of its parts or asks for the parts.
  [[nodiscard]] bool fuses(const OpCall& call) const;

 private:
  [[nodiscard]] Result<Choice> decide(const OpCall& call) const;
  [[nodiscard]] bool decide_fuses(const OpCall& call) const;
  void follow_tile_rules(const OpCall& call, Choice& choice) const;
  [[nodiscard]] bool in_graph(const OpCall& call) const;

  struct CallHash {
    size_t operator()(const OpCall& call) const { return static_cast<size_t>(call_hash(call)); }
  };
  SwitchSet switches_;
  Device device_;
  std::span<const Variant> table_;
  std::shared_ptr<const TileRules> tile_rules_;  // null: none
  std::unordered_map<OpCall, Choice, CallHash> memo_;
  mutable std::unordered_map<OpCall, bool, CallHash> fuses_;  // likewise
};

}  // namespace reckon::kernels
