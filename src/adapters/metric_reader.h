// Reads a program's metric out of what it printed. Pure and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "adapters/json_path.h"
#include "adapters/line_regex.h"
#include "base/result.h"

namespace reckon::adapters {

class MetricReader {
 public:
  // "json:PATH" or "regex:PATTERN". Usage errors.
  [[nodiscard]] static Result<MetricReader> parse(std::string_view read);

  // json: standard output as one document, else the last line of it that is an object or a list.
  // regex: standard output, and where no line of that matches, standard error. kFailed: what was
  // looked for and what is there instead.
  [[nodiscard]] Result<double> read(const std::string& output, const std::string& errors) const;

 private:
  explicit MetricReader(std::variant<JsonPath, LineRegex> how) : how_(std::move(how)) {}
  std::variant<JsonPath, LineRegex> how_;
};

}  // namespace reckon::adapters
