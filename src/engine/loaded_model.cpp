#include "engine/loaded_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "formats/file_error.h"
#include "formats/model_path.h"
#include "formats/tokenizer_gguf.h"
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

// Of the model, of the rules that pack it, and of block FP8, which reads as f32 if it is not
// packed.
std::vector<std::string> notes_of(const models::Model& model, const models::WeightPlacer& placer,
                                  const Checkpoint& checkpoint, const models::QuantScheme& quant) {
  std::vector<std::string> notes = model.info().notes;
  std::vector<std::string> matrices;
  int64_t fp8 = 0;
  int64_t fp8_bytes = 0;
  for (const models::PlacedWeight& weight : placer.weights()) {
    if (weight.role == models::WeightRole::kVector) continue;
    matrices.push_back(weight.name);
    if (!checkpoint.is_block_fp8(weight.tensor) || quant.type_of(weight.name)) continue;
    ++fp8;
    fp8_bytes += static_cast<int64_t>(weight.bytes) - weight.stored.n * weight.stored.k;
  }
  for (std::string& line : quant.unused(matrices)) notes.push_back(std::move(line));
  if (fp8 > 0) {
    notes.push_back(
        fmt::format("dequantised {} from block FP8 to f32: +{}; --quant bf16, q8 or q4 takes less",
                    counted(fp8, "tensor"), format_bytes_short(static_cast<uint64_t>(fp8_bytes))));
  }
  return notes;
}

// Control tokens that the model lacks are an error only in a text that has them: Gemma 3's smallest
// has one for images, which it does not know.
Status check_vocabulary(const Checkpoint& checkpoint, const Tokenizer& tokenizer,
                        int64_t vocabulary) {
  for (auto id = static_cast<int32_t>(vocabulary); id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_control(id) || tokenizer.token_bytes(id).empty()) continue;
    return failed(
        fmt::format("{}: the tokenizer has token {} ('{}'), but the model has {} tokens: "
                    "expected the tokenizer of this model",
                    checkpoint.path(), id, printable(tokenizer.token_bytes(id)), vocabulary));
  }
  return {};
}

std::unique_ptr<models::WeightPlacer> make_placer(const ModelOptions& options) {
  if (options.backend->weight_loader() == nullptr) {
    return std::make_unique<models::HostPlacer>(options.quant, *options.backend, options.layouts);
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
  TRY_ASSIGN(loaded->model_,
             models::build_model(*loaded->checkpoint_, *loaded->placer_, options.build));
  loaded->packed_ = options.quant.packs();
  loaded->notes_ = notes_of(*loaded->model_, *loaded->placer_, *loaded->checkpoint_, options.quant);
  const auto is_changed = [&](const models::PlacedWeight& weight) {
    return weight.converted || loaded->checkpoint_->is_block_fp8(weight.tensor);
  };
  const bool as_stored = !loaded->packed_ && options.backend->weight_loader() == nullptr &&
                         std::ranges::none_of(loaded->placer_->weights(), is_changed);
  loaded->weight_format_ =
      as_stored ? loaded->checkpoint_->weight_format() : describe_matrices(*loaded->placer_);
  if (options.quant.is_mixed()) loaded->weight_format_ += ":" + options.quant.id();
  loaded->packed_cache_ = std::make_unique<models::PackedCache>(*loaded->checkpoint_, options.quant,
                                                                options.packed_cache);
  if (const GgufFile* gguf = loaded->checkpoint_->gguf()) {
    if (auto note = gguf_tokenizer_note(*gguf)) loaded->notes_.push_back(*std::move(note));
  }
  return loaded;
}

Status LoadedModel::load(const models::LoadOptions& options) const {
  const std::lock_guard lock(load_mutex_);
  if (load_tried_) return load_result_;
  load_tried_ = true;
  load_result_ = placer_->load(options, packed_cache_.get());
  if (load_result_.ok()) check_files();
  if (!load_result_.ok()) {
    Error error = load_result_.error();
    error.message = fmt::format("{}: {}", checkpoint_->path(), error.message);
    load_result_ = std::move(error);
  }
  return load_result_;
}

void LoadedModel::check_files() const {
  const CheckpointChange change = checkpoint_->change();
  if (change.change == FileChange::kWritten) {
    load_result_ = failed(
        fmt::format("was written to while it was loaded ({}): expected files that stay as they are",
                    change.path));
  } else if (change.change == FileChange::kTouched) {
    load_notes_.push_back(
        fmt::format("{}: its rights or its content changed while it was loaded", change.path));
  }
}

std::vector<std::string> LoadedModel::notes() const {
  const std::lock_guard lock(load_mutex_);
  std::vector<std::string> notes = notes_;
  notes.insert(notes.end(), load_notes_.begin(), load_notes_.end());
  const std::vector<std::string>& more = packed_cache_->notes();
  notes.insert(notes.end(), more.begin(), more.end());
  return notes;
}

uint64_t LoadedModel::allocated_bytes() const {
  const std::lock_guard lock(load_mutex_);
  return placer_->allocated_bytes();
}

Result<Tokenizer> LoadedModel::read_tokenizer() const {
  TRY_ASSIGN(Tokenizer tokenizer, Tokenizer::from_checkpoint(*checkpoint_));
  TRY(check_vocabulary(*checkpoint_, tokenizer, model_->info().vocabulary));
  return tokenizer;
}

Result<const Tokenizer*> LoadedModel::tokenizer() const {
  std::call_once(tokenizer_read_, [this] { tokenizer_ = read_tokenizer(); });
  if (!tokenizer_->ok()) return tokenizer_->error();
  return &tokenizer_->value();
}

}  // namespace reckon::engine
