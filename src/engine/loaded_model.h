// A model with its files, tokenizer and identity: everything that is shared between sessions.
//
// Immutable after load and thread-safe to read; sessions keep a reference and must not outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "formats/tokenizer.h"
#include "models/model.h"

namespace reckon::engine {

class LoadedModel {
 public:
  // `model` as typed by the user (formats/model_path.h). Maps the file and builds the family;
  // reads no weights, so that a plan can refuse before anything is loaded.
  [[nodiscard]] static Result<std::unique_ptr<LoadedModel>> open(const std::string& model);

  [[nodiscard]] const Checkpoint& checkpoint() const { return *checkpoint_; }
  [[nodiscard]] const models::Model& model() const { return *model_; }
  // The tokenizer, or why this checkpoint has none (an oracle folder, say).
  [[nodiscard]] Result<const Tokenizer*> tokenizer() const;

 private:
  LoadedModel() = default;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<Error> tokenizer_error_;
};

}  // namespace reckon::engine
