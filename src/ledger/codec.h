// Private to the module: structs to JSON and back from one description of their fields.
//
// A struct S is described by
//   template <typename Fields> void describe(Fields& fields, Like<S> auto& s) {
//     fields("name", s.name); ... fields.rest(s.extra);
//   }
// An absent field keeps its default unless it is `fields.required`; a field of the wrong type is an
// error that names its path; fields that the description does not list go to `extra` and come back
// out.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace reckon::ledger::codec {

using Json = nlohmann::json;

template <typename T, typename S>
concept Like = std::same_as<std::remove_const_t<T>, S>;

// Specialised for each enum that is written by name: `static constexpr std::array kTable` of
// (value, name) pairs.
template <typename Enum>
struct Names;

template <typename Enum>
std::string_view name_of(Enum value) {
  for (const auto& [known, name] : Names<Enum>::kTable) {
    if (known == value) return name;
  }
  RECKON_CHECK(false);
}

template <typename Enum>
std::optional<Enum> value_of(std::string_view name) {
  for (const auto& [value, known] : Names<Enum>::kTable) {
    if (known == name) return value;
  }
  return std::nullopt;
}

enum class Empties { kOmit, kWrite };  // empty strings, lists and maps, and unset optionals

class Writer {
 public:
  explicit Writer(Empties empties) : empties_(empties) {}

  template <typename T>
  void operator()(const char* name, const T& value) {
    Json json = write(value, empties_);
    const bool empty = json.is_null() || (json.is_string() && value_is_empty(value)) ||
                       (json.is_structured() && json.empty());
    if (!empty || empties_ == Empties::kWrite) object_[name] = std::move(json);
  }
  template <typename T>
  void required(const char* name, const T& value) {
    object_[name] = write(value, empties_);
  }
  void rest(const Json& extra) {
    for (const auto& [key, value] : extra.items()) object_.emplace(key, value);
  }
  Json take() { return std::move(object_); }

  template <typename T>
  static Json write(const T& value, Empties empties) {
    if constexpr (std::is_enum_v<T>) {
      return std::string(name_of(value));
    } else if constexpr (requires(Writer & writer) { describe(writer, value); }) {
      Writer writer(empties);
      describe(writer, value);
      return writer.take();
    } else {
      return write_plain(value, empties);
    }
  }

 private:
  template <typename T>
  static bool value_is_empty(const T& value) {
    if constexpr (std::same_as<T, std::string>) return value.empty();
    return false;
  }

  template <typename T>
  static Json write_plain(const T& value, Empties) {
    return Json(value);
  }
  template <typename T>
  static Json write_plain(const std::optional<T>& value, Empties empties) {
    return value ? write(*value, empties) : Json();
  }
  template <typename T>
  static Json write_plain(const std::vector<T>& values, Empties empties) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(write(value, empties));
    return list;
  }

  Empties empties_;
  Json object_ = Json::object();
};

class Reader {
 public:
  Reader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object_.is_object()) fail(path_, "an object", object_);
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    if (!status_.ok()) return;
    known_.insert(name);
    if (const auto found = object_.find(name); found != object_.end()) {
      status_ = read(*found, value, path_.empty() ? name : path_ + "." + name);
    }
  }
  template <typename T>
  void required(const char* name, T& value) {
    if (status_.ok() && !object_.contains(name)) {
      status_ = failed(fmt::format("{}{}'{}' is missing", path_, path_.empty() ? "" : ": ", name));
    }
    (*this)(name, value);
  }
  void rest(Json& extra) {
    if (!status_.ok()) return;
    extra = Json::object();
    for (const auto& [key, value] : object_.items()) {
      if (!known_.contains(key)) extra[key] = value;
    }
  }
  [[nodiscard]] Status status() const { return status_; }

  template <typename T>
  static Status read(const Json& json, T& value, const std::string& path) {
    if constexpr (std::is_enum_v<T>) {
      const std::optional<T> known = json.is_string()
                                         ? value_of<T>(json.template get_ref<const std::string&>())
                                         : std::nullopt;
      if (!known) return wrong(path, "one of its known names", json);
      value = *known;
      return {};
    } else if constexpr (requires(Reader & reader) { describe(reader, value); }) {
      Reader reader(json, path);
      if (reader.status().ok()) describe(reader, value);
      return reader.status();
    } else {
      return read_plain(json, value, path);
    }
  }

 private:
  static Error wrong(const std::string& path, std::string_view expected, const Json& json) {
    return failed(fmt::format("{} is a {}: expected {}", path.empty() ? "body" : path,
                              json.type_name(), expected));
  }
  void fail(const std::string& path, std::string_view expected, const Json& json) {
    status_ = wrong(path, expected, json);
  }

  static Status read_plain(const Json& json, Json& value, const std::string&) {
    value = json;
    return {};
  }
  static Status read_plain(const Json& json, std::string& value, const std::string& path) {
    if (!json.is_string()) return wrong(path, "a string", json);
    value = json.get<std::string>();
    return {};
  }
  static Status read_plain(const Json& json, bool& value, const std::string& path) {
    if (!json.is_boolean()) return wrong(path, "true or false", json);
    value = json.get<bool>();
    return {};
  }
  static Status read_plain(const Json& json, double& value, const std::string& path) {
    if (!json.is_number()) return wrong(path, "a number", json);
    value = json.get<double>();
    return {};
  }
  static Status read_plain(const Json& json, uint64_t& value, const std::string& path) {
    if (!json.is_number_unsigned()) return wrong(path, "an integer of 0 or more", json);
    value = json.get<uint64_t>();
    return {};
  }
  static Status read_plain(const Json& json, int64_t& value, const std::string& path) {
    const bool fits = json.is_number_unsigned()
                          ? json.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()}
                          : json.is_number_integer();
    if (!fits) return wrong(path, "a 64-bit integer", json);
    value = json.get<int64_t>();
    return {};
  }
  template <typename T>
  static Status read_plain(const Json& json, std::optional<T>& value, const std::string& path) {
    value.reset();
    return json.is_null() ? Status() : read(json, value.emplace(), path);
  }
  template <typename T>
  static Status read_plain(const Json& json, std::vector<T>& values, const std::string& path) {
    if (!json.is_array()) return wrong(path, "a list", json);
    values.clear();
    for (size_t i = 0; i < json.size(); ++i) {
      TRY(read(json[i], values.emplace_back(), fmt::format("{}[{}]", path, i)));
    }
    return {};
  }
  template <typename T>
  static Status read_plain(const Json& json, std::map<std::string, T>& values,
                           const std::string& path) {
    if (!json.is_object()) return wrong(path, "an object", json);
    values.clear();
    for (const auto& [key, item] : json.items()) TRY(read(item, values[key], path + "." + key));
    return {};
  }

  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

}  // namespace reckon::ledger::codec
