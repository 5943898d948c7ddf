#include "cli/line_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/signals.h"

namespace reckon::cli {

Result<LineInput::Filled> LineInput::fill() {
  begin_ = end_ = 0;
  for (;;) {
    if (!Interrupts::wait_readable(fd_)) return Filled::kInterrupted;
    const ssize_t count = read(fd_, buffer_.data(), buffer_.size());
    if (count >= 0) {
      end_ = static_cast<size_t>(count);
      return count > 0 ? Filled::kSome : Filled::kEnd;
    }
    if (errno != EINTR && errno != EAGAIN) {
      return failed(fmt::format("cannot read standard input: {}", std::strerror(errno)));
    }
  }
}

bool LineInput::take(std::string& line, bool& too_long) {
  const char* const begin = buffer_.data() + begin_;
  const char* const end = buffer_.data() + end_;
  const char* const stop = std::find(begin, end, '\n');
  if (!too_long) line.append(begin, stop);
  too_long = too_long || line.size() > most_bytes_;
  begin_ = static_cast<size_t>(stop - buffer_.data()) + (stop == end ? 0 : 1);
  return stop != end;
}

Result<LineInput::Event> LineInput::next(std::string& line) {
  line.clear();
  bool too_long = false;
  for (bool whole = false; !whole;) {
    if (begin_ == end_) {
      TRY_ASSIGN(const Filled filled, fill());
      if (filled == Filled::kInterrupted) return Event::kInterrupted;
      if (filled == Filled::kEnd) {
        if (line.empty()) return Event::kEnd;
        break;
      }
    }
    whole = take(line, too_long);
  }
  if (too_long) return Event::kTooLong;
  if (line.ends_with('\r')) line.pop_back();
  return Event::kLine;
}

}  // namespace reckon::cli
