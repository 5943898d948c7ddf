// Reads fields out of JSON that may be anything. Not thread-safe.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace reckon::experiment {

// Reads one field after the other; the first one that is missing or mistyped is the error, and
// from then on nothing is read.
class JsonFields {
 public:
  // `what` starts the message: "round protocol".
  JsonFields(const nlohmann::json& object, std::string what)
      : object_(object), what_(std::move(what)) {
    if (!object.is_object()) error_ = failed(what_ + ": expected an object");
  }

  template <typename T>
  void read(const char* key, T& value) {
    if (error_) return;
    const auto found = object_.find(key);
    if (found == object_.end()) {
      error_ = failed(fmt::format("{}: '{}' is missing", what_, key));
      return;
    }
    try {
      found->get_to(value);
    } catch (const nlohmann::json::exception&) {
      error_ = failed(fmt::format("{}: '{}' is of the wrong type", what_, key));
    }
  }

  // Leaves the value alone where the field is absent.
  template <typename T>
  void read_optional(const char* key, T& value) {
    if (!error_ && object_.contains(key)) read(key, value);
  }

  [[nodiscard]] Status status() const { return error_ ? Status(*error_) : Status(); }

 private:
  const nlohmann::json& object_;
  std::string what_;
  std::optional<Error> error_;
};

// The text as JSON, or kFailed with `what` in front.
[[nodiscard]] inline Result<nlohmann::json> parse_json(std::string_view text,
                                                       const std::string& what) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return failed(what + ": not JSON");
  return json;
}

// One line, always valid UTF-8: other bytes are replaced.
[[nodiscard]] inline std::string json_line(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace reckon::experiment
