#include "experiment/queue_fields.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace reckon::experiment {

Status Fields::check(std::span<const std::string> allowed) const {
  if (map_.kind != YamlNode::Kind::kMap) return error(map_.line, "expected a map of keys");
  for (const YamlNode::Member& member : map_.members) {
    if (std::find(allowed.begin(), allowed.end(), member.key) != allowed.end()) continue;
    const std::string known = nearest(member.key, allowed);
    return error(member.key_line,
                 fmt::format("unknown key '{}'; {}", member.key,
                             known.empty() ? "known are " + join(allowed, ", ")
                                           : fmt::format("did you mean '{}'?", known)));
  }
  return {};
}

const YamlNode* Fields::find(std::string_view key) const {
  const YamlNode* node = map_.find(key);
  return node == nullptr && defaults_ != nullptr ? defaults_->find(key) : node;
}

Result<std::string> Fields::text(const std::string& key) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return std::string();
  if (node->kind != YamlNode::Kind::kScalar || node->scalar.empty()) {
    return error(node->line, fmt::format("'{}' must be a word or a text", key));
  }
  return node->scalar;
}

Result<std::string> Fields::required(const std::string& key) const {
  TRY_ASSIGN(std::string value, text(key));
  if (value.empty()) return error(map_.line, fmt::format("'{}' is missing", key));
  return value;
}

Result<int64_t> Fields::integer(const std::string& key, int64_t minimum, int64_t maximum,
                                int64_t absent) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return absent;
  int64_t value = 0;
  const char* begin = node->scalar.data();
  const char* end = begin + node->scalar.size();
  const auto [stop, failure] = std::from_chars(begin, end, value);
  if (node->kind != YamlNode::Kind::kScalar || failure != std::errc() || stop != end ||
      value < minimum || value > maximum) {
    return error(node->line,
                 fmt::format("'{}' must be a whole number from {} to {}", key, minimum, maximum));
  }
  return value;
}

Result<std::optional<std::vector<std::string>>> Fields::texts(const std::string& key) const {
  const YamlNode* node = find(key);
  if (node == nullptr) return std::optional<std::vector<std::string>>();
  std::vector<std::string> values;
  if (node->kind == YamlNode::Kind::kScalar && !node->scalar.empty()) {
    values.push_back(node->scalar);
  } else if (node->kind == YamlNode::Kind::kList) {
    for (const YamlNode& item : node->items) {
      if (item.kind != YamlNode::Kind::kScalar) {
        return error(item.line, fmt::format("'{}' must be a list of words or texts", key));
      }
      values.push_back(item.scalar);
    }
  } else {
    return error(node->line, fmt::format("'{}' must be a text or a list of them", key));
  }
  return std::optional(std::move(values));
}

Result<std::vector<Fields::Entry>> Fields::entries(const std::string& key) const {
  const YamlNode* node = find(key);
  std::vector<Entry> list;
  if (node == nullptr) return list;
  if (node->kind != YamlNode::Kind::kMap) {
    return error(node->line, fmt::format("'{}' must be a map", key));
  }
  for (const YamlNode::Member& member : node->members) {
    if (member.value.kind != YamlNode::Kind::kScalar || member.value.scalar.empty()) {
      return error(member.key_line, fmt::format("'{}' needs a value", member.key));
    }
    list.push_back({member.key, member.value.scalar, member.key_line});
  }
  return list;
}

Error Fields::error(int line, const std::string& message) const {
  return yaml_error(path_, line, what_.empty() ? message : what_ + ": " + message);
}

Error Fields::key_error(const std::string& key, const std::string& message) const {
  const YamlNode* node = find(key);
  return error(node == nullptr ? map_.line : node->line, message);
}

}  // namespace reckon::experiment
