#include "formats/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "formats/router_skew.h"
#include "formats/shapes_generated.h"
#include "formats/synthetic_tensors.h"

namespace reckon {
namespace {

using nlohmann::json;

constexpr std::string_view kPrefix = "synth:";
constexpr const char* kLayersKey = "num_hidden_layers";
constexpr const char* kExpertsKey = "num_experts";
constexpr int64_t kLargestSeed = INT64_MAX;
constexpr double kMostRouterSkew = 4;

// The compiled-in configuration; null where there is no such shape.
json shape_config(std::string_view name) {
  for (const GeneratedShape& shape : kGeneratedShapes) {
    if (shape.name == name) return json::parse(shape.config, nullptr, false);
  }
  return nullptr;
}

Result<int64_t> option_value(std::string_view model, std::string_view option, std::string_view text,
                             int64_t minimum, int64_t maximum) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < minimum || value > maximum) {
    return usage_error(fmt::format("model '{}': {} is '{}'; expected a whole number from {} to {}",
                                   model, option, text, minimum, maximum));
  }
  return value;
}

Result<double> skew_value(std::string_view model, std::string_view text, const json& config) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !(value >= 0 && value <= kMostRouterSkew)) {
    return usage_error(
        fmt::format("model '{}': router_skew is '{}'; expected a number from 0 to {}", model, text,
                    kMostRouterSkew));
  }
  if (value > 0 && !config.contains(kExpertsKey)) {
    return usage_error(fmt::format("model '{}': router_skew: it has no routed experts", model));
  }
  return value;
}

Status read_option(std::string_view model, std::string_view option, const json& config,
                   SyntheticName& name) {
  const size_t equals = std::min(option.find('='), option.size());
  const std::string_view key = option.substr(0, equals);
  const std::string_view value = option.substr(std::min(equals + 1, option.size()));
  if (key == "layers") {
    TRY_ASSIGN(name.layers, option_value(model, key, value, 1, name.shape_layers));
    return {};
  }
  if (key == "seed") {
    TRY_ASSIGN(const int64_t seed, option_value(model, key, value, 0, kLargestSeed));
    name.seed = static_cast<uint64_t>(seed);
    return {};
  }
  if (key == "router_skew") {
    TRY_ASSIGN(name.router_skew, skew_value(model, value, config));
    return {};
  }
  return usage_error(
      fmt::format("model '{}': unknown option '{}'; expected "
                  "synth:NAME,layers=N,seed=S,router_skew=X",
                  model, key));
}

// ---- The dense families ----

struct DenseSizes {
  int64_t layers = 0, hidden = 0, q_width = 0, kv_width = 0, head_dim = 0, inner = 0;
  int64_t vocabulary = 0;
  bool tied = false;
};

Result<DenseSizes> dense_sizes(const HfConfig& config) {
  DenseSizes sizes;
  TRY_ASSIGN(sizes.layers, config.integer(kLayersKey));
  TRY_ASSIGN(sizes.hidden, config.integer("hidden_size"));
  TRY_ASSIGN(const int64_t heads, config.integer("num_attention_heads"));
  TRY_ASSIGN(const int64_t kv_heads, config.integer("num_key_value_heads"));
  TRY_ASSIGN(sizes.head_dim, config.integer("head_dim"));
  sizes.q_width = heads * sizes.head_dim;
  sizes.kv_width = kv_heads * sizes.head_dim;
  TRY_ASSIGN(sizes.inner, config.integer("intermediate_size"));
  TRY_ASSIGN(sizes.vocabulary, config.integer("vocab_size"));
  TRY_ASSIGN(sizes.tied, config.boolean("tie_word_embeddings"));
  return sizes;
}

enum class HeadNorms : uint8_t { kNone, kQueryAndKey };

void add_dense_layer(TensorList& list, const DenseSizes& sizes, const std::string& at,
                     HeadNorms norms) {
  list.norm(at + "input_layernorm", sizes.hidden);
  list.matrix(at + "self_attn.q_proj", sizes.q_width, sizes.hidden);
  list.matrix(at + "self_attn.k_proj", sizes.kv_width, sizes.hidden);
  list.matrix(at + "self_attn.v_proj", sizes.kv_width, sizes.hidden);
  list.matrix(at + "self_attn.o_proj", sizes.hidden, sizes.q_width);
  if (norms == HeadNorms::kQueryAndKey) {
    list.norm(at + "self_attn.q_norm", sizes.head_dim);
    list.norm(at + "self_attn.k_norm", sizes.head_dim);
  }
  list.norm(at + "post_attention_layernorm", sizes.hidden);
  list.matrix(at + "mlp.gate_proj", sizes.inner, sizes.hidden);
  list.matrix(at + "mlp.up_proj", sizes.inner, sizes.hidden);
  list.matrix(at + "mlp.down_proj", sizes.hidden, sizes.inner);
}

Result<std::vector<SyntheticTensor>> dense_tensors(const HfConfig& config, HeadNorms norms) {
  TRY_ASSIGN(const DenseSizes sizes, dense_sizes(config));
  TensorList list;
  list.matrix("model.embed_tokens", sizes.vocabulary, sizes.hidden);
  for (int64_t l = 0; l < sizes.layers; ++l) {
    add_dense_layer(list, sizes, fmt::format("model.layers.{}.", l), norms);
  }
  list.norm("model.norm", sizes.hidden);
  if (!sizes.tied) list.matrix("lm_head", sizes.vocabulary, sizes.hidden);
  return list.take();
}

Result<std::vector<SyntheticTensor>> llama_tensors(const HfConfig& config) {
  return dense_tensors(config, HeadNorms::kNone);
}

Result<std::vector<SyntheticTensor>> qwen3_tensors(const HfConfig& config) {
  return dense_tensors(config, HeadNorms::kQueryAndKey);
}

struct SyntheticFamily {
  std::string_view name;
  Result<std::vector<SyntheticTensor>> (*tensors)(const HfConfig& config);
};

constexpr std::array kFamilies{
    SyntheticFamily{"llama", llama_tensors},
    SyntheticFamily{"qwen3", qwen3_tensors},
    SyntheticFamily{"qwen3_5", qwen3_5_tensors},
    SyntheticFamily{"qwen3_5_moe", qwen3_5_tensors},
};

}  // namespace

std::string SyntheticName::text() const {
  std::string text = fmt::format("{}{}", kPrefix, shape);
  if (layers != shape_layers) text += fmt::format(",layers={}", layers);
  if (seed != 0) text += fmt::format(",seed={}", seed);
  if (router_skew != 0) text += fmt::format(",router_skew={}", router_skew);
  return text;
}

std::string SyntheticName::display() const {
  std::vector<std::string> changes;
  if (layers != shape_layers)
    changes.push_back(fmt::format("{} of {} layers", layers, shape_layers));
  if (router_skew != 0) changes.push_back(fmt::format("router skew {}", router_skew));
  const std::string name = fmt::format("{}{}", kPrefix, shape);
  return changes.empty() ? name : fmt::format("{} ({})", name, join(changes, ", "));
}

bool is_synthetic(std::string_view model) {
  return model.starts_with(kPrefix);
}

std::span<const std::string> synthetic_shapes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const GeneratedShape& shape : kGeneratedShapes) list.emplace_back(shape.name);
    return list;
  }();
  return names;
}

Result<SyntheticName> parse_synthetic(std::string_view model) {
  SyntheticName name;
  std::string_view rest = model;
  if (is_synthetic(rest)) rest.remove_prefix(kPrefix.size());
  size_t comma = std::min(rest.find(','), rest.size());
  name.shape = rest.substr(0, comma);
  const json config = shape_config(name.shape);
  if (config.is_null()) {
    const std::string near = nearest(name.shape, synthetic_shapes());
    return usage_error(
        fmt::format("model '{}': there is no shape '{}'; {}", model, name.shape,
                    near.empty() ? fmt::format("expected one of {}", join(synthetic_shapes(), ", "))
                                 : fmt::format("did you mean 'synth:{}'?", near)));
  }
  name.shape_layers = config.value(kLayersKey, int64_t{0});
  name.layers = name.shape_layers;
  while (comma < rest.size()) {
    rest.remove_prefix(comma + 1);
    comma = std::min(rest.find(','), rest.size());
    TRY(read_option(model, rest.substr(0, comma), config, name));
  }
  return name;
}

Result<std::string> with_layers(std::string_view model, int64_t layers) {
  if (!is_synthetic(model)) {
    return usage_error(fmt::format(
        "--layers cuts the depth of a synthetic model (synth:NAME), and '{}' is none", model));
  }
  TRY_ASSIGN(const SyntheticName whole, parse_synthetic(model));
  if (whole.layers != whole.shape_layers && whole.layers != layers) {
    return usage_error(
        fmt::format("model '{}' has its layers named already; --layers says {}", model, layers));
  }
  TRY_ASSIGN(const SyntheticName cut, parse_synthetic(fmt::format("{},layers={}", model, layers)));
  return cut.text();
}

Result<std::string> with_router_skew(std::string_view model, double skew) {
  if (!is_synthetic(model)) {
    return usage_error(fmt::format(
        "--router-skew is for the experts of a synthetic model (synth:NAME), and '{}' is none",
        model));
  }
  TRY_ASSIGN(const SyntheticName named, parse_synthetic(model));
  if (named.router_skew != 0 && named.router_skew != skew) {
    return usage_error(fmt::format(
        "model '{}' has its router skew named already; --router-skew says {}", model, skew));
  }
  TRY_ASSIGN(const SyntheticName skewed,
             parse_synthetic(fmt::format("{},router_skew={}", model, skew)));
  return skewed.text();
}

Result<HfConfig> synthetic_config(const SyntheticName& name) {
  json config = shape_config(name.shape);
  RECKON_CHECK(config.is_object());
  config[kLayersKey] = name.layers;
  return HfConfig::parse(name.text(), config.dump(2) + '\n');
}

Result<std::vector<SyntheticTensor>> synthetic_tensors(const SyntheticName& name,
                                                       const HfConfig& config) {
  TRY_ASSIGN(const std::string architecture, config.architecture());
  const auto* family = std::ranges::find(kFamilies, architecture, &SyntheticFamily::name);
  if (family == kFamilies.end()) {
    return failed(fmt::format("{}: no synthetic tensors are known of the model family '{}'",
                              config.path(), architecture));
  }
  TRY_ASSIGN(std::vector<SyntheticTensor> tensors, family->tensors(config));
  if (name.router_skew == 0) return tensors;
  TRY_ASSIGN(const int64_t experts, config.integer(kExpertsKey));
  TRY_ASSIGN(const int64_t selected, config.integer("num_experts_per_tok"));
  for (SyntheticTensor& tensor : tensors) {
    if (!tensor.name.ends_with(".mlp.gate.weight")) continue;
    const std::string draw = fmt::format("{} {}", name.seed, tensor.name);
    TRY_ASSIGN(tensor.row_factors, router_factors(experts, selected, name.router_skew, draw));
  }
  return tensors;
}

}  // namespace reckon
