// Reads the fields of one map of a queue file. Internal to the readers of queues. Every error is a
// usage error "FILE:LINE: WHAT: …". Pure; not thread-safe.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml_tree.h"

namespace reckon::experiment {

class Fields {
 public:
  // `defaults`: a second map that stands in for what the first one lacks. All must outlive this.
  Fields(const std::string& path, const YamlNode& map, std::string what,
         const YamlNode* defaults = nullptr)
      : path_(path), map_(map), defaults_(defaults), what_(std::move(what)) {}

  // Is it a map, with no key that is not among `allowed`?
  [[nodiscard]] Status check(std::span<const std::string> allowed) const;

  // nullptr where it is absent.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;

  // "" where it is absent.
  [[nodiscard]] Result<std::string> text(const std::string& key) const;
  [[nodiscard]] Result<std::string> required(const std::string& key) const;
  [[nodiscard]] Result<int64_t> integer(const std::string& key, int64_t minimum, int64_t maximum,
                                        int64_t absent) const;
  // A scalar, or a list of them; unset where it is absent.
  [[nodiscard]] Result<std::optional<std::vector<std::string>>> texts(const std::string& key) const;
  // A map of scalars with the line of each key; empty where it is absent.
  struct Entry {
    std::string key, value;
    int line = 0;
  };
  [[nodiscard]] Result<std::vector<Entry>> entries(const std::string& key) const;

  // A scalar through one of the parsers of queue.h, its error with the line in front.
  template <typename T>
  [[nodiscard]] Result<std::optional<T>> parsed(const std::string& key,
                                                Result<T> (*parse)(std::string_view)) const {
    TRY_ASSIGN(const std::string value, text(key));
    if (value.empty()) return std::optional<T>();
    Result<T> result = parse(value);
    if (!result.ok()) {
      return error(find(key)->line, fmt::format("'{}': {}", key, result.error().message));
    }
    return std::optional<T>(std::move(result).value());
  }

  [[nodiscard]] Error error(int line, const std::string& message) const;
  // At the key's line, or the map's where it is absent.
  [[nodiscard]] Error key_error(const std::string& key, const std::string& message) const;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& what() const { return what_; }

 private:
  const std::string& path_;
  const YamlNode& map_;
  const YamlNode* defaults_;
  std::string what_;
};

}  // namespace reckon::experiment
