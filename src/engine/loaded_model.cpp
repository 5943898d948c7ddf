#include "engine/loaded_model.h"

#include <utility>

#include "formats/model_path.h"

namespace reckon::engine {

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const std::string& model) {
  TRY_ASSIGN(const std::string path, resolve_model(model));
  TRY_ASSIGN(Checkpoint checkpoint, Checkpoint::open(path));
  std::unique_ptr<LoadedModel> loaded(new LoadedModel());
  loaded->checkpoint_ = std::make_unique<Checkpoint>(std::move(checkpoint));
  TRY_ASSIGN(loaded->model_, models::build_model(*loaded->checkpoint_));
  Result<Tokenizer> tokenizer = Tokenizer::from_checkpoint(*loaded->checkpoint_);
  if (tokenizer.ok()) {
    loaded->tokenizer_ = std::make_unique<Tokenizer>(std::move(tokenizer).value());
  } else {
    loaded->tokenizer_error_ = tokenizer.error();
  }
  return loaded;
}

Result<const Tokenizer*> LoadedModel::tokenizer() const {
  if (tokenizer_error_) return *tokenizer_error_;
  return tokenizer_.get();
}

}  // namespace reckon::engine
