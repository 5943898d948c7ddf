// The clock of everything that is timed here.
#pragma once

#include <chrono>
#include <cstdint>

namespace reckon::engine {

// Nanoseconds of a clock that never goes back, since some moment.
[[nodiscard]] inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace reckon::engine
