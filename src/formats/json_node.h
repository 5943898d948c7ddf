// A value of a JSON file together with where it is, so that every error names the file and the key.
// Refers to the parsed file, which outlives it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon {

class JsonNode {
 public:
  // `name` is "" for the whole file. Neither `path` nor `value` is copied.
  JsonNode(const std::string& path, const nlohmann::json& value, std::string name)
      : path_(&path), value_(&value), name_(std::move(name)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] bool is_object() const;
  // "<path>: '<name>' <message>".
  [[nodiscard]] Error error(std::string_view message) const;

  // Of an object. find() gives none where the key is absent or null; the others fail there, unless
  // they have a fallback, and where the value is of another type.
  [[nodiscard]] std::optional<JsonNode> find(std::string_view key) const;
  [[nodiscard]] Result<JsonNode> member(std::string_view key) const;
  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  [[nodiscard]] Result<std::string> string_or(std::string_view key, std::string fallback) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<int64_t> integer(std::string_view key) const;
  // An error naming the first key that is not in the list.
  [[nodiscard]] Status only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] Result<std::vector<JsonNode>> elements() const;  // of an array

 private:
  const std::string* path_;
  const nlohmann::json* value_;
  std::string name_;
};

}  // namespace reckon
