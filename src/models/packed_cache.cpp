#include "models/packed_cache.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/bytes.h"
#include "base/hash.h"
#include "tensor/quantise.h"

namespace reckon::models {
namespace {

namespace fs = std::filesystem;

using Weights = std::span<PlacedWeight* const>;

// Empty where one of the weights is not there.
std::vector<Weight> find_all(const PackedFile& file, Weights weights) {
  std::vector<Weight> found;
  for (const PlacedWeight* weight : weights) {
    found.push_back(file.find(weight->name, weight->placed));
    if (found.back().data == nullptr) return {};
  }
  return found;
}

std::vector<std::string> names_of(Weights weights) {
  std::vector<std::string> names;
  for (const PlacedWeight* weight : weights) names.push_back(weight->name);
  return names;
}

// Whether the weights read their rows from the file now; the error says why not.
Status use(const std::string& path, const PackedKey& key, Weights weights, ThreadPool* verifier) {
  TRY_ASSIGN(const auto file, PackedFile::open(path, key));
  const std::vector<Weight> found = find_all(*file, weights);
  if (found.empty()) return failed(fmt::format("{}: lacks some of the weights", path));
  if (verifier != nullptr) TRY(file->verify(names_of(weights), *verifier));
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i]->rows = std::make_shared<const PackedRows>(file, found[i]);
  }
  return {};
}

}  // namespace

PackedKey PackedCache::key() const {
  return {checkpoint_.content_hash(), scheme_.id(), kPackingVersion};
}

std::vector<std::string> PackedCache::paths() const {
  std::error_code error;
  const bool folder = checkpoint_.kind() == CheckpointKind::kHuggingFace;
  const fs::path model = fs::absolute(folder ? checkpoint_.path() : checkpoint_.files()[0], error);
  const std::string end = fmt::format(".{}.reckon-packed", scheme_.id());
  std::vector<std::string> paths{folder ? (model / "model").string() + end : model.string() + end};
  if (!options_.folder.empty()) {
    const std::string name = hash_hex(model.lexically_normal().string()).substr(0, 16);
    paths.push_back(fmt::format("{}/packed/{}{}", options_.folder, name, end));
  }
  return paths;
}

std::vector<PlacedWeight*> PackedCache::packed_by_scheme(std::deque<PlacedWeight>& weights) const {
  std::vector<PlacedWeight*> packed;
  for (PlacedWeight& weight : weights) {
    if (weight.role == WeightRole::kVector || !can_quantise_to(weight.placed.type)) continue;
    if (scheme_.type_of(weight.name) == weight.placed.type) packed.push_back(&weight);
  }
  return packed;
}

void PackedCache::attach(std::deque<PlacedWeight>& weights, const LoadOptions& options) {
  if (!options_.enabled || checkpoint_.kind() == CheckpointKind::kSynthetic) return;
  const std::vector<PlacedWeight*> packed = packed_by_scheme(weights);
  uint64_t bytes = 0;
  for (const PlacedWeight* weight : packed) {
    bytes += static_cast<uint64_t>(weight->placed.bytes());
  }
  if (packed.empty() || bytes < options_.least_bytes) return;
  ThreadPool pool(options.threads);
  if (!read_any(packed, pool)) write_any(packed, options, pool);
}

bool PackedCache::read_any(Weights weights, ThreadPool& pool) {
  std::vector<std::string> why_not;
  for (const std::string& path : paths()) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) continue;
    const Status used = use(path, key(), weights, &pool);
    if (used.ok()) return true;
    why_not.push_back(used.error().message + "; packed again");
  }
  notes_.insert(notes_.end(), why_not.begin(), why_not.end());
  return false;
}

void PackedCache::write_any(Weights weights, const LoadOptions& options, ThreadPool& pool) {
  std::vector<PackedSource> sources;
  int64_t values = 0;
  for (const PlacedWeight* weight : weights) {
    sources.push_back({weight->name, weight->placed, weight->rows.get()});
    values += weight->placed.n * weight->placed.k;
  }
  // The same numbers that the placer will report of the load itself.
  const auto progress = [&](int64_t done) {
    if (options.progress && done < values) {
      options.progress(static_cast<uint64_t>(done), static_cast<uint64_t>(values));
    }
  };
  // The key was made of what the files held before.
  const auto still_valid = [&]() -> Status {
    const CheckpointChange change = checkpoint_.change();
    if (change.change == FileChange::kNone) return {};
    return failed(fmt::format("{}: was changed or replaced since it was opened", change.path));
  };
  std::vector<std::string> why_not;
  for (const std::string& path : paths()) {
    std::error_code ignored;
    if (why_not.size() == 1 && !still_valid().ok()) break;
    if (why_not.size() == 1) fs::create_directories(fs::path(path).parent_path(), ignored);
    Status written = write_packed_file(path, key(), sources, pool, progress, still_valid);
    if (written.ok()) written = use(path, key(), weights, nullptr);
    if (written.ok()) {
      std::error_code unknown;
      notes_.push_back(fmt::format("kept {} of packed weights for the next load: {}",
                                   format_bytes_short(fs::file_size(path, unknown)), path));
      return;
    }
    why_not.push_back(written.error().message);
  }
  for (const std::string& reason : why_not) {
    notes_.push_back(fmt::format("packed weights are not kept for the next load: {}", reason));
  }
}

}  // namespace reckon::models
