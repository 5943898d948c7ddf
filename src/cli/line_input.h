// Lines of a file descriptor, as a person or a script sends them. Not thread-safe; the descriptor
// is the caller's, and nobody else reads it meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/result.h"

namespace reckon::cli {

class LineInput {
 public:
  enum class Event {
    kLine,
    kTooLong,      // a line of more than the most bytes was skipped
    kInterrupted,  // Interrupts holds a Ctrl-C; what came of the line is dropped
    kEnd,
  };

  // Lines hold `most_bytes` at most, without their end (\n or \r\n), which the last one need not
  // have.
  LineInput(int fd, size_t most_bytes) : fd_(fd), most_bytes_(most_bytes) {}

  // Waits for a line. Fails where the descriptor cannot be read.
  [[nodiscard]] Result<Event> next(std::string& line);

 private:
  enum class Filled { kSome, kEnd, kInterrupted };

  [[nodiscard]] Result<Filled> fill();
  // Moves what was read of the line over; whether that was its end.
  [[nodiscard]] bool take(std::string& line, bool& too_long);

  int fd_;
  size_t most_bytes_;
  std::array<char, 1 << 16> buffer_;
  size_t begin_ = 0;  // what was read and not taken
  size_t end_ = 0;
};

}  // namespace reckon::cli
