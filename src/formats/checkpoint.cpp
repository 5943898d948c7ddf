#include "formats/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <unordered_map>

#include "base/hash.h"
#include "base/text.h"
#include "formats/block_fp8.h"
#include "formats/file_error.h"
#include "formats/file_hash.h"
#include "formats/gguf_shards.h"
#include "formats/hf_config.h"
#include "formats/safetensors_set.h"
#include "formats/synthetic.h"

namespace reckon {
namespace {

// [n, k] of a shape: the innermost dimension and the product of the others.
Weight weight_view(const void* data, DType type, std::span<const int64_t> shape) {
  Weight weight{data, type, 1, 1};
  if (shape.empty()) return weight;
  weight.k = shape.back();
  for (const int64_t dimension : shape.first(shape.size() - 1)) weight.n *= dimension;
  return weight;
}

bool is_aligned(const void* data, DType type) {
  const bool words = type == DType::kF32 || type == DType::kI32;
  return reinterpret_cast<uintptr_t>(data) % (words ? 4 : 2) == 0;
}

CheckpointTensor tensor_of(const GgufTensor& tensor) {
  return {std::string(tensor.name), std::string(dtype_name(tensor.type)), tensor.shape,
          weight_view(tensor.data, tensor.type, tensor.shape), tensor.bytes};
}

CheckpointTensor tensor_of(const SafetensorsTensor& tensor) {
  CheckpointTensor out{tensor.name, tensor.type_name, tensor.shape, std::nullopt,
                       tensor.bytes.size()};
  if (tensor.type) {
    out.type_name = dtype_name(*tensor.type);
    out.weight = weight_view(tensor.bytes.data(), *tensor.type, tensor.shape);
  }
  return out;
}

// Reads as f32, which is exact, where nobody asks for another type.
CheckpointTensor tensor_of(const SafetensorsTensor& codes, const SafetensorsTensor& scales) {
  return {codes.name, "f8_e4m3", codes.shape, weight_view(nullptr, DType::kF32, codes.shape),
          codes.bytes.size() + scales.bytes.size()};
}

CheckpointTensor tensor_of(const SyntheticTensor& tensor) {
  constexpr DType kType = DType::kBF16;
  CheckpointTensor out{tensor.name, std::string(dtype_name(kType)), tensor.shape,
                       weight_view(nullptr, kType, tensor.shape), 0};
  out.bytes = static_cast<uint64_t>(out.weight->bytes());
  return out;
}

// "q4_1+q8_0": element types of the matrices, most bytes first; of all tensors without matrices.
std::string describe_weights(std::span<const CheckpointTensor> tensors) {
  std::vector<std::pair<std::string_view, uint64_t>> types;
  std::unordered_map<std::string_view, size_t> places;  // in `types`
  for (const size_t rank : {size_t{2}, size_t{0}}) {
    if (!types.empty()) break;
    for (const CheckpointTensor& tensor : tensors) {
      if (tensor.shape.size() < rank) continue;
      const auto [place, is_new] = places.emplace(tensor.type_name, types.size());
      if (is_new) types.emplace_back(tensor.type_name, 0);
      types[place->second].second += tensor.bytes;
    }
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& type : types) names.emplace_back(type.first);
  return join(names, "+");
}

// What a folder without config.json is told.
std::string no_config(const std::filesystem::path& folder) {
  std::string text = "expected a folder with config.json and model.safetensors";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".gguf") continue;
    return text + ", or the name of a GGUF file: there are some in this folder";
  }
  return text;
}

}  // namespace

std::string_view checkpoint_kind_name(CheckpointKind kind) {
  switch (kind) {
    case CheckpointKind::kGguf:
      return "gguf";
    case CheckpointKind::kHuggingFace:
      return "huggingface";
    case CheckpointKind::kSynthetic:
      return "synthetic";
  }
  return "";
}

// What beside the weights decides the results of a folder's model.
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "tokenizer_config.json",
                                           "generation_config.json"};

struct Checkpoint::State {
  std::string path;
  std::string architecture;
  std::string display_name;
  std::vector<GgufFile> shards;    // either these
  const GgufFile* gguf = nullptr;  // (the first of them, which has the metadata)
  std::optional<HfConfig> config;  // or this with one of these
  std::optional<SafetensorsSet> weights;
  std::unordered_map<std::string, Fp8Weight> fp8;  // those of `weights` that are
  std::optional<SyntheticName> synthetic;
  std::vector<SyntheticTensor> synthetic_tensors;  // in the order of `tensors`
  std::vector<CheckpointTensor> tensors;
  std::unordered_map<std::string_view, size_t> index;
  std::vector<std::string> files;
  uint64_t total_bytes = 0;
  std::string shape_hash;
  std::string weight_format;
  std::once_flag hash_once;
  std::string content_hash;

  [[nodiscard]] Error error(std::string_view message) const { return file_error(path, message); }

  [[nodiscard]] std::string hash_shapes() const {
    Hasher hasher;
    hasher.add_field(architecture);
    if (gguf != nullptr) {
      std::vector<std::pair<std::string_view, GgufValue>> keys(gguf->metadata().begin(),
                                                               gguf->metadata().end());
      std::sort(keys.begin(), keys.end(),
                [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [key, value] : keys) {
        if (!key.starts_with(architecture + ".")) continue;
        hasher.add_field(key).add_field(fmt::format("{}", static_cast<uint32_t>(value.type)));
        hasher.add_field(value.bytes);
      }
    } else {
      hasher.add_field(config->canonical());
    }
    for (const CheckpointTensor& tensor : tensors) {
      hasher.add_field(tensor.name).add_field(tensor.type_name);
      for (const int64_t dimension : tensor.shape) hasher.add_field(fmt::format("{}", dimension));
    }
    return hasher.hex();
  }

  [[nodiscard]] std::string hash_content() const {
    if (shards.size() == 1) return file_hash(shards[0].file());
    Hasher hasher;
    if (gguf != nullptr) {
      hasher.add_field("gguf shards");
      for (const GgufFile& shard : shards) hasher.add_field(file_hash(shard.file()));
      return hasher.hex();
    }
    if (synthetic) {
      hasher.add_field("synthetic 1").add_field(fmt::format("{}", synthetic->seed));
      if (synthetic->router_skew != 0) {
        hasher.add_field(fmt::format("router skew {}", synthetic->router_skew));
      }
      return hasher.add_field(shape_hash).hex();
    }
    hasher.add_field("config.json").add_field(hash_hex(config->text()));
    for (const SafetensorsFile& file : weights->files()) {
      hasher.add_field(std::filesystem::path(file.path()).filename().string());
      hasher.add_field(file_hash(file.file()));
    }
    for (const char* name : kTokenizerFiles) {
      const auto file = MappedFile::open((std::filesystem::path(path) / name).string());
      if (file.ok()) hasher.add_field(name).add_field(hash_hex(file->bytes()));
    }
    return hasher.hex();
  }
};

// Opens either kind into a State and fills what both share.
class CheckpointBuilder {
 public:
  static Result<Checkpoint> open(const std::string& path) {
    auto state = std::make_unique<Checkpoint::State>();
    state->path = path;
    std::error_code ignored;
    if (is_synthetic(path)) {
      TRY(open_synthetic(*state));
    } else {
      TRY(std::filesystem::is_directory(path, ignored) ? open_folder(*state) : open_gguf(*state));
    }
    finish(*state);
    return Checkpoint(std::move(state));
  }

 private:
  static Status open_gguf(Checkpoint::State& state) {
    const std::filesystem::path path(state.path);
    if (path.extension() == ".safetensors" || path.extension() == ".json") {
      return file_error(
          state.path, fmt::format("a part of a Hugging Face checkpoint: expected its "
                                  "folder, {}",
                                  path.parent_path().empty() ? "." : path.parent_path().string()));
    }
    TRY_ASSIGN(state.shards, open_gguf_shards(state.path));
    state.gguf = &state.shards[0];
    TRY_ASSIGN(const std::string_view name, state.gguf->string("general.architecture"));
    state.architecture = printable(name);
    for (const GgufFile& shard : state.shards) {
      for (const GgufTensor& tensor : shard.tensors()) state.tensors.push_back(tensor_of(tensor));
      state.files.push_back(shard.path());
      state.total_bytes += shard.bytes().size();
    }
    return {};
  }

  static Status open_folder(Checkpoint::State& state) {
    const std::filesystem::path folder(state.path);
    const std::string config = (folder / "config.json").string();
    std::error_code ignored;
    if (!std::filesystem::exists(config, ignored)) {
      return state.error(no_config(folder));
    }
    TRY_ASSIGN(state.config, HfConfig::open(config));
    TRY_ASSIGN(const std::string name, state.config->architecture());
    state.architecture = printable(name);
    TRY(check_fp8_config(*state.config));
    TRY_ASSIGN(state.weights, SafetensorsSet::open(state.path));
    state.files = {config};
    state.total_bytes = state.config->text().size();
    if (!state.weights->index_path().empty()) state.files.push_back(state.weights->index_path());
    for (const SafetensorsFile& file : state.weights->files()) {
      state.files.push_back(file.path());
      state.total_bytes += file.bytes().size();
    }
    return add_folder_tensors(state);
  }

  // Every tensor, but a block FP8 matrix and its scales as one.
  static Status add_folder_tensors(Checkpoint::State& state) {
    std::unordered_map<std::string, const SafetensorsTensor*> scales;
    for (const SafetensorsFile& file : state.weights->files()) {
      for (const SafetensorsTensor& tensor : file.tensors()) {
        if (tensor.name.ends_with(kFp8ScaleSuffix)) scales.emplace(tensor.name, &tensor);
      }
    }
    for (const SafetensorsFile& file : state.weights->files()) {
      for (const SafetensorsTensor& tensor : file.tensors()) {
        if (tensor.type_name != "F8_E4M3") continue;
        TRY_ASSIGN(const SafetensorsTensor* scale, scales_of(state, file, tensor, scales));
        TRY_ASSIGN(Fp8Weight weight, make_fp8_weight(file.path(), tensor, *scale));
        state.fp8.emplace(tensor.name, std::move(weight));
        state.tensors.push_back(tensor_of(tensor, *scale));
        scales.erase(scale->name);
      }
    }
    for (const SafetensorsFile& file : state.weights->files()) {
      for (const SafetensorsTensor& tensor : file.tensors()) {
        const bool is_scale =
            tensor.name.ends_with(kFp8ScaleSuffix) && !scales.contains(tensor.name);
        if (!is_scale && !state.fp8.contains(tensor.name))
          state.tensors.push_back(tensor_of(tensor));
      }
    }
    return {};
  }

  static Result<const SafetensorsTensor*> scales_of(
      const Checkpoint::State& state, const SafetensorsFile& file, const SafetensorsTensor& codes,
      const std::unordered_map<std::string, const SafetensorsTensor*>& scales) {
    const std::string name = codes.name + std::string(kFp8ScaleSuffix);
    const auto found = scales.find(name);
    if (found == scales.end()) {
      return file_error(file.path(), fmt::format("tensor '{}' is F8_E4M3: expected its scales in a "
                                                 "tensor '{}'",
                                                 printable(codes.name), printable(name)));
    }
    if (!state.config->has("quantization_config")) {
      return file_error(state.config->path(),
                        fmt::format("key 'quantization_config' is missing: tensor '{}' is F8_E4M3",
                                    printable(codes.name)));
    }
    return found->second;
  }

  static Status open_synthetic(Checkpoint::State& state) {
    TRY_ASSIGN(state.synthetic, parse_synthetic(state.path));
    state.display_name = state.synthetic->display();
    TRY_ASSIGN(state.config, synthetic_config(*state.synthetic));
    TRY_ASSIGN(state.architecture, state.config->architecture());
    TRY_ASSIGN(state.synthetic_tensors, synthetic_tensors(*state.synthetic, *state.config));
    std::ranges::sort(state.synthetic_tensors, {}, &SyntheticTensor::name);
    for (const SyntheticTensor& tensor : state.synthetic_tensors) {
      state.tensors.push_back(tensor_of(tensor));
    }
    return {};
  }

  static void finish(Checkpoint::State& state) {
    std::sort(state.tensors.begin(), state.tensors.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    for (size_t i = 0; i < state.tensors.size(); ++i) {
      state.index.emplace(state.tensors[i].name, i);
    }
    state.shape_hash = state.hash_shapes();
    state.weight_format = describe_weights(state.tensors);
  }
};

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  return CheckpointBuilder::open(path);
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

CheckpointKind Checkpoint::kind() const {
  if (state_->gguf != nullptr) return CheckpointKind::kGguf;
  return state_->synthetic ? CheckpointKind::kSynthetic : CheckpointKind::kHuggingFace;
}

const std::string& Checkpoint::display_name() const {
  return state_->display_name;
}

const std::string& Checkpoint::path() const {
  return state_->path;
}

const std::string& Checkpoint::architecture() const {
  return state_->architecture;
}

bool Checkpoint::has(std::string_view key) const {
  return state_->gguf != nullptr ? state_->gguf->has(key) : state_->config->has(key);
}

Result<int64_t> Checkpoint::integer(std::string_view key) const {
  return state_->gguf != nullptr ? state_->gguf->integer(key) : state_->config->integer(key);
}

Result<double> Checkpoint::number(std::string_view key) const {
  return state_->gguf != nullptr ? state_->gguf->number(key) : state_->config->number(key);
}

Result<bool> Checkpoint::boolean(std::string_view key) const {
  return state_->gguf != nullptr ? state_->gguf->boolean(key) : state_->config->boolean(key);
}

Result<std::string> Checkpoint::string(std::string_view key) const {
  if (state_->gguf == nullptr) return state_->config->string(key);
  TRY_ASSIGN(const std::string_view text, state_->gguf->string(key));
  return std::string(text);
}

Result<std::vector<int64_t>> Checkpoint::integers(std::string_view key) const {
  return state_->gguf != nullptr ? state_->gguf->integers(key) : state_->config->integers(key);
}

Result<std::vector<std::string>> Checkpoint::strings(std::string_view key) const {
  if (state_->gguf == nullptr) return state_->config->strings(key);
  TRY_ASSIGN(const auto views, state_->gguf->strings(key));
  return std::vector<std::string>(views.begin(), views.end());
}

Result<int64_t> Checkpoint::integer_or(std::string_view key, int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

Result<double> Checkpoint::number_or(std::string_view key, double fallback) const {
  return has(key) ? number(key) : fallback;
}

Result<bool> Checkpoint::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

Result<std::string> Checkpoint::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? string(key) : Result<std::string>(std::move(fallback));
}

bool Checkpoint::has_tensor(std::string_view name) const {
  return state_->index.contains(name);
}

Result<std::optional<Weight>> Checkpoint::find(std::string_view name) const {
  if (!has_tensor(name)) return std::optional<Weight>();
  TRY_ASSIGN(const Weight weight, tensor(name));
  return std::optional<Weight>(weight);
}

Result<Weight> Checkpoint::tensor(std::string_view name) const {
  const auto found = state_->index.find(name);
  if (found == state_->index.end()) {
    return state_->error(fmt::format("tensor '{}' is missing", name));
  }
  const CheckpointTensor& tensor = state_->tensors[found->second];
  if (!tensor.weight) {
    return state_->error(
        fmt::format("tensor '{}' has the element type {}: expected F32, F16, BF16 "
                    "or I32",
                    name, printable(tensor.type_name)));
  }
  if (tensor.bytes == 0) return state_->error(fmt::format("tensor '{}' is empty", name));
  if (!is_aligned(tensor.weight->data, tensor.weight->type)) {
    return state_->error(
        fmt::format("tensor '{}' does not start at a multiple of its element "
                    "size: save the file again with PyPI safetensors",
                    name));
  }
  return *tensor.weight;
}

Result<Weight> Checkpoint::tensor(std::string_view name, int64_t n, int64_t k) const {
  TRY_ASSIGN(const Weight weight, tensor(name));
  if (weight.n != n || weight.k != k) {
    return state_->error(
        fmt::format("tensor '{}' is {} x {}: expected {} x {}", name, weight.n, weight.k, n, k));
  }
  return weight;
}

Result<std::unique_ptr<const RowSource>> Checkpoint::rows(std::string_view name) const {
  TRY_ASSIGN(const Weight weight, tensor(name));
  const auto fp8 = state_->fp8.find(std::string(name));
  if (fp8 != state_->fp8.end()) return std::make_unique<const Fp8Rows>(fp8->second);
  if (!state_->synthetic) return std::make_unique<const StoredRows>(weight);
  const SyntheticTensor& made = state_->synthetic_tensors[state_->index.at(name)];
  return std::make_unique<const RandomRows>(state_->synthetic->seed, name, made.kind, weight.n,
                                            weight.k, made.row_factors);
}

std::span<const CheckpointTensor> Checkpoint::tensors() const {
  return state_->tensors;
}

bool Checkpoint::is_block_fp8(std::string_view name) const {
  return state_->fp8.contains(std::string(name));
}

const std::vector<std::string>& Checkpoint::files() const {
  return state_->files;
}

uint64_t Checkpoint::total_bytes() const {
  return state_->total_bytes;
}

CheckpointChange Checkpoint::change() const {
  CheckpointChange worst;
  const auto add = [&](const MappedFile& file) {
    const FileChange change = file.change();
    if (change < worst.change) worst = {change, file.path()};
  };
  for (const GgufFile& shard : state_->shards) add(shard.file());
  if (state_->config && !state_->synthetic) add(state_->config->file());
  if (state_->weights) {
    for (const SafetensorsFile& file : state_->weights->files()) add(file.file());
  }
  return worst;
}

const std::string& Checkpoint::content_hash() const {
  std::call_once(state_->hash_once, [this] { state_->content_hash = state_->hash_content(); });
  return state_->content_hash;
}

const std::string& Checkpoint::shape_hash() const {
  return state_->shape_hash;
}

const std::string& Checkpoint::weight_format() const {
  return state_->weight_format;
}

const GgufFile* Checkpoint::gguf() const {
  return state_->gguf;
}

std::string_view Checkpoint::config_text() const {
  return state_->config ? state_->config->text() : std::string_view();
}

}  // namespace reckon
