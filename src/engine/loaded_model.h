// A model with its files, tokenizer and identity: everything that is shared between sessions.
//
// Thread-safe; immutable but for load(). Sessions keep a reference and must not outlive it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "formats/tokenizer.h"
#include "kernels/backend.h"
#include "models/host_placer.h"
#include "models/model.h"
#include "models/packed_cache.h"
#include "models/quant_scheme.h"
#include "models/weight_placer.h"

namespace reckon::engine {

struct ModelOptions {
  models::QuantScheme quant;
  kernels::Backend* backend = &kernels::cpu_backend();  // where it will run; outlives the model
  models::PackedCacheOptions packed_cache = {};
  models::BuildOptions build = {};
  models::HostLayouts layouts = {};  // of weights in the host's memory
};

class LoadedModel {
 public:
  // `model` as typed by the user (formats/model_path.h). Maps the file, builds the family and plans
  // where its weights go; reads no weights, so that a plan can refuse before anything is loaded.
  [[nodiscard]] static Result<std::unique_ptr<LoadedModel>> open(const std::string& model,
                                                                 const ModelOptions& options = {});

  // Reads, packs and moves the weights; sessions call it when they fit the budget. Only the first
  // call does anything: later ones, from any thread, wait for it and give the same result. Fails
  // where a file was written to since it was opened, of which nobody can say what was read.
  [[nodiscard]] Status load(const models::LoadOptions& options = {}) const;
  // What load() has taken of the memory by now (weights read in place in the mapped file take
  // none). A budget of what is available has lost these bytes, though the plan counts them.
  [[nodiscard]] uint64_t allocated_bytes() const;

  [[nodiscard]] const Checkpoint& checkpoint() const { return *checkpoint_; }
  [[nodiscard]] const models::Model& model() const { return *model_; }
  [[nodiscard]] kernels::Backend& backend() const { return *backend_; }
  // Every weight with its place; without data before load().
  [[nodiscard]] const std::deque<models::PlacedWeight>& weights() const {
    return placer_->weights();
  }
  [[nodiscard]] bool is_packed() const { return packed_; }  // by ModelOptions::quant
  // What was converted, skipped or left undone, one line each; load() may add some.
  [[nodiscard]] std::vector<std::string> notes() const;
  // Element types of the matrices as the forward pass reads them, most bytes first: "q4_1+q8_0"
  // (the checkpoint's own), "p4" where they are packed or converted, "p4+p8:mixed-1a2b3c4d" by a
  // file of rules.
  [[nodiscard]] const std::string& weight_format() const { return weight_format_; }
  // The tokenizer, or why this checkpoint has none (an oracle folder, say). Made by the first call,
  // since planning and random tokens need none; others, from any thread, wait for it.
  [[nodiscard]] Result<const Tokenizer*> tokenizer() const;

 private:
  LoadedModel() = default;
  void check_files() const;  // after a load
  [[nodiscard]] Result<Tokenizer> read_tokenizer() const;

  kernels::Backend* backend_ = nullptr;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<models::WeightPlacer> placer_;
  std::unique_ptr<models::RowCache> packed_cache_;
  std::unique_ptr<models::Model> model_;
  std::string weight_format_;
  std::vector<std::string> notes_;
  bool packed_ = false;
  mutable std::mutex load_mutex_;  // guards the two below, the placer and its cache
  mutable bool load_tried_ = false;
  mutable Status load_result_;
  mutable std::once_flag tokenizer_read_;
  mutable std::optional<Result<Tokenizer>> tokenizer_;  // set by that
  mutable std::vector<std::string> load_notes_;         // likewise guarded
};

}  // namespace reckon::engine
