// Turns a stream of token bytes into complete UTF-8 text: a character that is split over tokens is
// held back until its last byte arrives. Bytes that can never become valid UTF-8 give U+FFFD, one
// for each maximal invalid part (Unicode 15, section 3.9, as Python's errors="replace" does).
// One stream belongs to one generation; not thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace reckon {

class Utf8Stream {
 public:
  // The text that `bytes` completes: valid UTF-8, possibly empty. At most 3 bytes are held back.
  [[nodiscard]] std::string push(std::string_view bytes);
  // Ends the stream: U+FFFD where an incomplete character was held back, else "".
  [[nodiscard]] std::string flush();

 private:
  std::string held_;
};

}  // namespace reckon
