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
#include "formats/file_error.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"
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

CheckpointTensor tensor_of(const SyntheticTensor& tensor) {
  constexpr DType kType = DType::kBF16;
  CheckpointTensor out{tensor.name, std::string(dtype_name(kType)), tensor.shape,
                       weight_view(nullptr, kType, tensor.shape), 0};
  out.bytes = static_cast<uint64_t>(out.weight->bytes());
  return out;
}

// "q4_1+q8_0": element types of the matrices, most bytes first; of all tensors without matrices.
std::string describe_weights(std::span<const CheckpointTensor> tensors) {
  std::vector<std::pair<std::string, uint64_t>> types;
  for (const size_t rank : {size_t{2}, size_t{0}}) {
    if (!types.empty()) break;
    for (const CheckpointTensor& tensor : tensors) {
      if (tensor.shape.size() < rank) continue;
      auto found = std::find_if(types.begin(), types.end(),
                                [&](const auto& type) { return type.first == tensor.type_name; });
      if (found == types.end()) found = types.insert(types.end(), {tensor.type_name, 0});
      found->second += tensor.bytes;
    }
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& type : types) names.push_back(type.first);
  return join(names, "+");
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

struct Checkpoint::State {
  std::string path;
  std::string architecture;
  std::string display_name;
  std::optional<GgufFile> gguf;    // either this
  std::optional<HfConfig> config;  // or this with one of these
  std::optional<SafetensorsFile> weights;
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
    if (gguf) {
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
    if (gguf) return hash_hex(gguf->bytes());
    Hasher hasher;
    if (synthetic) {
      hasher.add_field("synthetic 1").add_field(fmt::format("{}", synthetic->seed));
      return hasher.add_field(shape_hash).hex();
    }
    hasher.add_field("config.json").add_field(hash_hex(config->text()));
    hasher.add_field("model.safetensors").add_field(hash_hex(weights->bytes()));
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
    TRY_ASSIGN(state.gguf, GgufFile::open(state.path));
    TRY_ASSIGN(const std::string_view name, state.gguf->string("general.architecture"));
    state.architecture = printable(name);
    for (const GgufTensor& tensor : state.gguf->tensors()) {
      state.tensors.push_back(tensor_of(tensor));
    }
    state.files = {state.path};
    state.total_bytes = state.gguf->bytes().size();
    return {};
  }

  static Status open_folder(Checkpoint::State& state) {
    const std::filesystem::path folder(state.path);
    const std::string config = (folder / "config.json").string();
    const std::string weights = (folder / "model.safetensors").string();
    std::error_code ignored;
    if (!std::filesystem::exists(config, ignored)) {
      return state.error("expected a folder with config.json and model.safetensors");
    }
    if (std::filesystem::exists(weights + ".index.json", ignored)) {
      return state.error("the checkpoint is sharded: expected a single model.safetensors");
    }
    TRY_ASSIGN(state.config, HfConfig::open(config));
    TRY_ASSIGN(const std::string name, state.config->architecture());
    state.architecture = printable(name);
    TRY_ASSIGN(state.weights, SafetensorsFile::open(weights));
    for (const SafetensorsTensor& tensor : state.weights->tensors()) {
      state.tensors.push_back(tensor_of(tensor));
    }
    state.files = {config, weights};
    state.total_bytes = state.config->text().size() + state.weights->bytes().size();
    return {};
  }

  static Status open_synthetic(Checkpoint::State& state) {
    TRY_ASSIGN(state.synthetic, parse_synthetic(state.path));
    state.display_name = state.synthetic->display();
    TRY_ASSIGN(state.config, synthetic_config(*state.synthetic));
    TRY_ASSIGN(state.architecture, state.config->architecture());
    TRY_ASSIGN(state.synthetic_tensors, synthetic_tensors(*state.config));
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
  if (state_->gguf) return CheckpointKind::kGguf;
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
  return state_->gguf ? state_->gguf->has(key) : state_->config->has(key);
}

Result<int64_t> Checkpoint::integer(std::string_view key) const {
  return state_->gguf ? state_->gguf->integer(key) : state_->config->integer(key);
}

Result<double> Checkpoint::number(std::string_view key) const {
  return state_->gguf ? state_->gguf->number(key) : state_->config->number(key);
}

Result<bool> Checkpoint::boolean(std::string_view key) const {
  return state_->gguf ? state_->gguf->boolean(key) : state_->config->boolean(key);
}

Result<std::string> Checkpoint::string(std::string_view key) const {
  if (!state_->gguf) return state_->config->string(key);
  TRY_ASSIGN(const std::string_view text, state_->gguf->string(key));
  return std::string(text);
}

Result<std::vector<int64_t>> Checkpoint::integers(std::string_view key) const {
  return state_->gguf ? state_->gguf->integers(key) : state_->config->integers(key);
}

Result<std::vector<std::string>> Checkpoint::strings(std::string_view key) const {
  if (!state_->gguf) return state_->config->strings(key);
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
  if (!state_->synthetic) return std::make_unique<const StoredRows>(weight);
  const SyntheticTensor& made = state_->synthetic_tensors[state_->index.at(name)];
  return std::make_unique<const RandomRows>(state_->synthetic->seed, name, made.kind, weight.n,
                                            weight.k);
}

std::span<const CheckpointTensor> Checkpoint::tensors() const {
  return state_->tensors;
}

const std::vector<std::string>& Checkpoint::files() const {
  return state_->files;
}

uint64_t Checkpoint::total_bytes() const {
  return state_->total_bytes;
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
  return state_->gguf ? &*state_->gguf : nullptr;
}

std::string_view Checkpoint::config_text() const {
  return state_->config ? state_->config->text() : std::string_view();
}

}  // namespace reckon
