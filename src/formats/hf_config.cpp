#include "formats/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/file_error.h"
#include "formats/json_file.h"

namespace reckon {
namespace {

using nlohmann::json;

// Keys that say nothing about shapes or arithmetic.
constexpr std::string_view kCosmeticKeys[] = {
    "_name_or_path",  "architectures",        "attention_dropout",    "auto_map",
    "dtype",          "initializer_range",    "output_router_logits", "pretraining_tp",
    "torch_dtype",    "router_aux_loss_coef", "transformers_version", "use_cache",
    "hidden_dropout",
};

// Keys of the rope object that older configurations have at the top.
constexpr std::string_view kRopeKeys[] = {"rope_theta", "partial_rotary_factor"};
constexpr std::string_view kRopeObjects[] = {"rope_parameters", "rope_scaling"};
// One that newer configurations have at the top as well, with a default that counts for nothing.
constexpr std::string_view kRopeShare = "partial_rotary_factor";

// The member `key` of an object, "a.b" through object a; null where absent or JSON null.
const json* member(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  if (const auto found = object.find(key); found != object.end()) {
    return found->is_null() ? nullptr : &*found;
  }
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto outer = object.find(key.substr(0, dot));
  return outer == object.end() ? nullptr : member(*outer, key.substr(dot + 1));
}

std::optional<int64_t> integer_value(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return std::nullopt;
  }
  return value.get<int64_t>();
}

}  // namespace

struct HfConfig::State {
  MappedFile file;
  json root;
  const json* model = nullptr;  // text_config where there is one, else root

  [[nodiscard]] const json* find(std::string_view key) const {
    if (key == kRopeShare) {
      if (const json* found = find_in_rope(key)) return found;
    }
    for (const json* object : {model, static_cast<const json*>(&root)}) {
      if (const json* found = member(*object, key)) return found;
    }
    const bool of_rope =
        std::find(std::begin(kRopeKeys), std::end(kRopeKeys), key) != std::end(kRopeKeys);
    return of_rope ? find_in_rope(key) : nullptr;
  }

  [[nodiscard]] const json* find_in_rope(std::string_view key) const {
    for (const std::string_view object : kRopeObjects) {
      const json* rope = member(*model, object);
      if (rope == nullptr) continue;
      if (const json* found = member(*rope, key)) return found;
    }
    return nullptr;
  }

  [[nodiscard]] Result<const json*> get(std::string_view key, std::string_view expected) const {
    const json* found = find(key);
    if (found != nullptr) return found;
    return file_error(file.path(), fmt::format("key '{}' is missing: expected {}", key, expected));
  }

  [[nodiscard]] Error wrong_type(std::string_view key, const json& value,
                                 std::string_view expected) const {
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return file_error(file.path(),
                      fmt::format("key '{}' is {}: expected {}", key, printable(text), expected));
  }
};

Result<HfConfig> HfConfig::open(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  return from(std::move(file));
}

Result<HfConfig> HfConfig::parse(std::string name, std::string_view text) {
  return from(MappedFile::copy_of(std::move(name), text));
}

Result<HfConfig> HfConfig::from(MappedFile file) {
  json root;
  TRY(parse_json_object(file.path(), "the file", file.bytes(), root));
  auto state = std::make_unique<State>(State{std::move(file), std::move(root), nullptr});
  state->model = &state->root;
  if (const json* nested = member(state->root, "text_config")) {
    if (!nested->is_object()) return state->wrong_type("text_config", *nested, "an object");
    state->model = nested;
  }
  for (const std::string_view key : kRopeObjects) {
    const json* rope = member(*state->model, key);
    if (rope != nullptr && !rope->is_object()) return state->wrong_type(key, *rope, "an object");
  }
  return HfConfig(std::move(state));
}

HfConfig::HfConfig(std::unique_ptr<State> state) : state_(std::move(state)) {}
HfConfig::HfConfig(HfConfig&&) noexcept = default;
HfConfig& HfConfig::operator=(HfConfig&&) noexcept = default;
HfConfig::~HfConfig() = default;

const std::string& HfConfig::path() const {
  return state_->file.path();
}

const MappedFile& HfConfig::file() const {
  return state_->file;
}

std::string_view HfConfig::text() const {
  return state_->file.bytes();
}

Result<std::string> HfConfig::architecture() const {
  TRY_ASSIGN(std::string type, string("model_type"));
  constexpr std::string_view kSuffix = "_text";
  if (type.ends_with(kSuffix)) type.resize(type.size() - kSuffix.size());
  return type;
}

bool HfConfig::has(std::string_view key) const {
  return state_->find(key) != nullptr;
}

Result<int64_t> HfConfig::integer(std::string_view key) const {
  TRY_ASSIGN(const json* value, state_->get(key, "an integer"));
  const auto integer = integer_value(*value);
  if (!integer) return state_->wrong_type(key, *value, "an integer");
  return *integer;
}

Result<double> HfConfig::number(std::string_view key) const {
  TRY_ASSIGN(const json* value, state_->get(key, "a number"));
  if (!value->is_number()) return state_->wrong_type(key, *value, "a number");
  const auto number = value->get<double>();
  if (!std::isfinite(number)) return state_->wrong_type(key, *value, "a finite number");
  return number;
}

Result<bool> HfConfig::boolean(std::string_view key) const {
  TRY_ASSIGN(const json* value, state_->get(key, "true or false"));
  if (!value->is_boolean()) return state_->wrong_type(key, *value, "true or false");
  return value->get<bool>();
}

Result<std::string> HfConfig::string(std::string_view key) const {
  TRY_ASSIGN(const json* value, state_->get(key, "a string"));
  if (!value->is_string()) return state_->wrong_type(key, *value, "a string");
  return value->get<std::string>();
}

Result<std::vector<int64_t>> HfConfig::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of integers";
  TRY_ASSIGN(const json* value, state_->get(key, kExpected));
  if (!value->is_array()) return state_->wrong_type(key, *value, kExpected);
  std::vector<int64_t> integers;
  for (const json& element : *value) {
    const auto integer = integer_value(element);
    if (!integer) return state_->wrong_type(key, *value, kExpected);
    integers.push_back(*integer);
  }
  return integers;
}

Result<std::vector<std::string>> HfConfig::strings(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  TRY_ASSIGN(const json* value, state_->get(key, kExpected));
  if (!value->is_array()) return state_->wrong_type(key, *value, kExpected);
  std::vector<std::string> strings;
  for (const json& element : *value) {
    if (!element.is_string()) return state_->wrong_type(key, *value, kExpected);
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

std::string HfConfig::canonical() const {
  json model = *state_->model;
  for (const std::string_view key : kCosmeticKeys) model.erase(std::string(key));
  // The one key that matters and may stand beside text_config instead of in it.
  constexpr const char* kTied = "tie_word_embeddings";
  if (const json* tied = state_->find(kTied)) model[kTied] = *tied;
  return model.dump(-1, ' ', true, json::error_handler_t::replace);
}

}  // namespace reckon
