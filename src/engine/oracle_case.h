// A recorded oracle case: what another implementation computed for a checkpoint.
//
// Beside a Hugging Face folder's files lie oracle.safetensors and oracle.json; beside a GGUF file
// x.gguf lie x.oracle.safetensors and x.oracle.json. Layout: tests/golden/README.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"

namespace reckon::engine {

struct OraclePrompt {
  std::vector<int32_t> tokens;
  int64_t logit_rows = 0;                  // recorded for the last positions of the prompt
  std::vector<float> logits;               // [logit_rows, vocabulary]
  std::vector<int32_t> greedy;             // the continuation
  double min_top2_margin = 0;              // smallest on the greedy path
  std::vector<std::vector<float>> hidden;  // empty, or layers + 1 times [tokens, hidden]
};

// Reads every prompt, 0, 1, ... Shapes are checked against the model; errors name the file and the
// tensor or key and what was expected.
[[nodiscard]] Result<std::vector<OraclePrompt>> read_oracle_case(const Checkpoint& checkpoint,
                                                                 const models::ModelInfo& model);

}  // namespace reckon::engine
