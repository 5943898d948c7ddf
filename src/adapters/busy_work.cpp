#include "adapters/busy_work.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>

namespace reckon::adapters {

bool busy_work_allowed() {
  const char* value = std::getenv("RECKON_TEST_SWITCHES");
  return value != nullptr && std::string_view(value) == "1";
}

Result<int64_t> parse_busy_percent(const std::string& text) {
  int64_t percent = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, percent);
  if (error == std::errc() && stop == end && percent >= 0 && percent <= 100) return percent;
  return usage_error(fmt::format("{}={}: allowed are 0 to 100", kBusySwitch, text));
}

experiment::DispatchRow busy_row(int64_t percent) {
  return {"decode", "busy_work", "1", "spin", fmt::format("percent={}", percent), ""};
}

void do_busy_work(int64_t ns) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::nanoseconds(ns);
  while (Clock::now() < end) {
  }
}

}  // namespace reckon::adapters
