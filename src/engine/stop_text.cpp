#include "engine/stop_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "formats/file_error.h"

namespace reckon::engine {
namespace {

// The length of the longest end of `text` that begins `stop` and does not complete it.
size_t unfinished(std::string_view text, std::string_view stop) {
  size_t length = std::min(text.size(), stop.size() - 1);
  while (!text.ends_with(stop.substr(0, length))) --length;
  return length;
}

}  // namespace

Result<StopText> StopText::create(std::vector<std::string> stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) return usage_error("a stop text is empty; expected what ends the answer");
    if (!valid_utf8(stop)) {
      return usage_error(fmt::format("the stop text '{}' is not UTF-8", printable(stop)));
    }
  }
  return StopText(std::move(stops));
}

std::string StopText::push(std::string_view text) {
  if (stopped_) return "";
  std::string out;
  for (const char c : text) {
    held_ += c;
    size_t keep = 0;
    size_t complete = 0;
    for (const std::string& stop : stops_) {
      if (held_.ends_with(stop)) complete = std::max(complete, stop.size());
      keep = std::max(keep, unfinished(held_, stop));
    }
    if (complete > 0) {
      stopped_ = true;
      out += held_.substr(0, held_.size() - complete);
      held_.clear();
      return out;
    }
    out += held_.substr(0, held_.size() - keep);
    held_.erase(0, held_.size() - keep);
  }
  return out;
}

std::string StopText::flush() {
  return std::exchange(held_, "");
}

}  // namespace reckon::engine
