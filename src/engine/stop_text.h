// Ends a text before the first of some stop strings, however the text comes in pieces: what could
// still become one is held back. Which one counts does not depend on the pieces: the first to be
// complete, and of several that end together the longest. One generation's; not thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reckon::engine {

class StopText {
 public:
  // A usage error where a stop string is empty or not UTF-8. Without any, everything passes.
  [[nodiscard]] static Result<StopText> create(std::vector<std::string> stops);

  // The text that certainly stands before every stop string; after stopped(), "".
  [[nodiscard]] std::string push(std::string_view text);
  // Ends the text: what was held back.
  [[nodiscard]] std::string flush();
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace reckon::engine
