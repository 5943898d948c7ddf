// A recorded oracle case: what another implementation computed for a checkpoint.
//
// Beside a Hugging Face folder's files lie oracle.safetensors and oracle.json; beside a GGUF file
// x.gguf lie x.oracle.safetensors and x.oracle.json. Layout: tests/golden/README.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/model.h"

namespace reckon::engine {

// What a draft head gives behind each position of a prompt but the last, and its greedy drafts
// behind the whole prompt and the model's next token.
struct OracleDrafts {
  std::vector<float> hidden;  // [tokens - 1, hidden], after the head's norm
  std::vector<float> logits;  // [tokens - 1, vocabulary]
  int32_t next = 0;           // the model's own next token
  std::vector<int32_t> tokens;
  std::vector<float> draft_logits;  // [drafts, vocabulary]

  // Of the highest logit over the second, of one draft.
  [[nodiscard]] float margin(size_t draft) const;
};

struct OraclePrompt {
  std::vector<int32_t> tokens;
  int64_t logit_rows = 0;                  // recorded for the last positions of the prompt
  std::vector<float> logits;               // [logit_rows, vocabulary]
  std::vector<int32_t> greedy;             // the continuation
  double min_top2_margin = 0;              // smallest on the greedy path
  std::vector<std::vector<float>> hidden;  // empty, or layers + 1 times [tokens, hidden]
  std::optional<OracleDrafts> drafts;      // where they are recorded and the model has the head
};

// Reads every prompt, 0, 1, ... Shapes are checked against the model; errors name the file and the
// tensor or key and what was expected.
[[nodiscard]] Result<std::vector<OraclePrompt>> read_oracle_case(const Checkpoint& checkpoint,
                                                                 const models::ModelInfo& model);

}  // namespace reckon::engine
