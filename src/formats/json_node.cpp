#include "formats/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/file_error.h"

namespace reckon {

using nlohmann::json;

bool JsonNode::is_object() const {
  return value_->is_object();
}

Error JsonNode::error(std::string_view message) const {
  if (name_.empty()) return file_error(*path_, message);
  return file_error(*path_, fmt::format("'{}' {}", name_, message));
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  if (!value_->is_object()) return std::nullopt;
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonNode(*path_, *found,
                  name_.empty() ? std::string(key) : fmt::format("{}.{}", name_, key));
}

Result<JsonNode> JsonNode::member(std::string_view key) const {
  if (!value_->is_object()) return error("is not an object");
  auto found = find(key);
  if (!found) return error(fmt::format("has no '{}'", key));
  return *std::move(found);
}

Result<std::string> JsonNode::string(std::string_view key) const {
  TRY_ASSIGN(const JsonNode node, member(key));
  if (!node.value_->is_string()) return node.error("is not a string");
  return node.value_->get<std::string>();
}

Result<std::string> JsonNode::string_or(std::string_view key, std::string fallback) const {
  if (!find(key)) return fallback;
  return string(key);
}

Result<bool> JsonNode::boolean(std::string_view key) const {
  TRY_ASSIGN(const JsonNode node, member(key));
  if (!node.value_->is_boolean()) return node.error("is neither true nor false");
  return node.value_->get<bool>();
}

Result<bool> JsonNode::boolean_or(std::string_view key, bool fallback) const {
  if (!find(key)) return fallback;
  return boolean(key);
}

Result<int64_t> JsonNode::integer(std::string_view key) const {
  TRY_ASSIGN(const JsonNode node, member(key));
  const json& value = *node.value_;
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX);
  if (!fits) return node.error("is not an integer");
  return value.get<int64_t>();
}

Status JsonNode::only(std::initializer_list<std::string_view> keys) const {
  if (!value_->is_object()) return error("is not an object");
  for (const auto& [key, unused] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return error(fmt::format("has the key '{}', which is not known", printable(key)));
    }
  }
  return {};
}

Result<std::vector<JsonNode>> JsonNode::elements() const {
  if (!value_->is_array()) return error("is not an array");
  std::vector<JsonNode> nodes;
  for (size_t i = 0; i < value_->size(); ++i) {
    nodes.emplace_back(*path_, (*value_)[i], fmt::format("{}[{}]", name_, i));
  }
  return nodes;
}

}  // namespace reckon
