// A queue whose outcome no clock decides: it measures peak memory, which does not vary.
#pragma once

#include <fmt/format.h>

#include <string>

#include "cli/command_testing.h"

namespace reckon::cli {

// Twenty A/A rounds, an arm that is LOST by its larger chunk, one that changes nothing (VOID) and
// one over its memory limit.
inline std::string deterministic_queue() {
  return fmt::format(R"(name: deterministic
defaults: {{model: {}, metric: peak_bytes, rounds: 2, pairs: 1, warmup_pairs: 0}}
experiments:
  - id: floor
    kind: aa
    rounds: 20
    set: {{prefill.numerics: exact, prefill.chunk: 8}}
    workload: {{phase: prefill, prompt: It was the best of times, prompt_tokens: 32, generate: 2}}
  - id: larger-chunk
    idea: Run the prompt in one chunk
    switch: {{key: prefill.chunk, base: 8, arm: 32}}
    set: {{prefill.numerics: exact}}
    workload: {{phase: prefill, prompt: It was the best of times, prompt_tokens: 32, generate: 2}}
    claim: "+1%"
  - id: no-effect
    idea: Walk weight rows in bands
    switch: {{key: prefill.tile_order, base: row, arm: band8}}
    workload: {{phase: prefill, prompt: It was the best of times, prompt_tokens: 32}}
    reach: {{op: matmul, phase: prefill}}
  - id: too-large
    idea: Run a long prompt in one chunk
    switch: {{key: prefill.chunk, base: 8, arm: 256}}
    workload: {{phase: prefill, prompt: It was the best of times, prompt_tokens: 256}}
    memory_limit: plan+64KiB
)",
                     tiny_model());
}

}  // namespace reckon::cli
