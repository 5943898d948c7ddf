// A way into a JSON document, a small part of JSONPath:
//
//   $              the document
//   .name          a member; letters, digits, "_" and "-", or any text as ["a name"]
//   [2]  [-1]      an element, counted from 0, or from the end
//
// Pure and thread-safe.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace reckon::adapters {

class JsonPath {
 public:
  // Usage errors say where the path stops making sense.
  [[nodiscard]] static Result<JsonPath> parse(std::string_view text);

  // The number there; kFailed says how far the path leads and what is there instead.
  [[nodiscard]] Result<double> number(const nlohmann::json& document) const;

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  using Step = std::variant<std::string, int64_t>;
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace reckon::adapters
