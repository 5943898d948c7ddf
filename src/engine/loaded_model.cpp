#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "formats/model_path.h"
#include "models/device_placer.h"
#include "models/host_placer.h"

namespace reckon::engine {
namespace {

// Element types of the placed matrices, most bytes first.
std::string describe_matrices(const models::WeightPlacer& placer) {
  std::vector<std::pair<DType, uint64_t>> types;
  for (const models::PlacedWeight& weight : placer.weights()) {
    if (weight.role == models::WeightRole::kVector) continue;
    const DType type = weight.placed.type;
    auto found = std::ranges::find(types, type, &std::pair<DType, uint64_t>::first);
    if (found == types.end()) found = types.insert(found, {type, 0});
    found->second += weight.bytes;
  }
  std::ranges::stable_sort(types, std::greater<>(), &std::pair<DType, uint64_t>::second);
  std::vector<std::string> names;
  for (const auto& [type, bytes] : types) names.emplace_back(dtype_name(type));
  return join(names, "+");
}

std::unique_ptr<models::WeightPlacer> make_placer(const ModelOptions& options) {
  if (options.backend->weight_loader() == nullptr) {
    return std::make_unique<models::HostPlacer>(options.quant, *options.backend);
  }
  return std::make_unique<models::DevicePlacer>(*options.backend, options.quant);
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const std::string& model,
                                                       const ModelOptions& options) {
  TRY_ASSIGN(const std::string path, resolve_model(model));
  TRY_ASSIGN(Checkpoint checkpoint, Checkpoint::open(path));
  std::unique_ptr<LoadedModel> loaded(new LoadedModel());
  loaded->checkpoint_ = std::make_unique<Checkpoint>(std::move(checkpoint));
  loaded->backend_ = options.backend;
  loaded->placer_ = make_placer(options);
  TRY_ASSIGN(loaded->model_, models::build_model(*loaded->checkpoint_, *loaded->placer_));
  loaded->packed_ = options.quant.packs();
  const bool as_stored =
      !loaded->packed_ && options.backend->weight_loader() == nullptr &&
      std::ranges::none_of(loaded->placer_->weights(), &models::PlacedWeight::converted);
  loaded->weight_format_ =
      as_stored ? loaded->checkpoint_->weight_format() : describe_matrices(*loaded->placer_);
  Result<Tokenizer> tokenizer = Tokenizer::from_checkpoint(*loaded->checkpoint_);
  if (tokenizer.ok()) {
    loaded->tokenizer_ = std::make_unique<Tokenizer>(std::move(tokenizer).value());
  } else {
    loaded->tokenizer_error_ = tokenizer.error();
  }
  return loaded;
}

Status LoadedModel::load(const models::LoadOptions& options) const {
  const std::lock_guard lock(load_mutex_);
  if (load_tried_) return load_result_;
  load_tried_ = true;
  load_result_ = placer_->load(options);
  if (!load_result_.ok()) {
    Error error = load_result_.error();
    error.message = fmt::format("{}: {}", checkpoint_->path(), error.message);
    load_result_ = std::move(error);
  }
  return load_result_;
}

uint64_t LoadedModel::allocated_bytes() const {
  const std::lock_guard lock(load_mutex_);
  return placer_->allocated_bytes();
}

Result<const Tokenizer*> LoadedModel::tokenizer() const {
  if (tokenizer_error_) return *tokenizer_error_;
  return tokenizer_.get();
}

}  // namespace reckon::engine
