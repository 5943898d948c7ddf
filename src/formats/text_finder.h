// Where strings of a set begin in a text: at each place, the longest of them. Work that grows with
// the text and not with the strings, however alike they are. Const after finish(), thread-safe.
//
// An automaton of Aho and Corasick over the strings read backwards. Reading a text from its end,
// the state behind a place is the longest end of a string, read backwards, that begins at that
// place; so the longest whole string that begins there is that state's own or hangs on its chain of
// shorter ones, and is known when the automaton is built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace reckon {

class TextFinder {
 public:
  // `text` is not empty. Of equal strings the one added first counts.
  void add(std::string_view text, int32_t value);
  void finish();  // once, before any look-up

  struct Match {
    size_t begin = 0;
    size_t length = 0;
    int32_t value = 0;
  };
  // The longest string at each place where one begins, from left to right; matches overlap.
  [[nodiscard]] std::vector<Match> find_all(std::string_view text) const;

 private:
  static constexpr uint32_t kRoot = 0;  // no state's child, so that it stands for none as well
  struct State {
    uint32_t child = kRoot;    // the first
    uint32_t sibling = kRoot;  // the next child of the same state
    uint32_t fallback = kRoot;
    uint32_t length = 0;  // of the longest string that ends here, read backwards; 0: none does
    int32_t value = 0;
    uint8_t byte = 0;  // that leads here
  };
  [[nodiscard]] uint32_t child(uint32_t state, uint8_t byte) const;
  [[nodiscard]] uint32_t next(uint32_t state, uint8_t byte) const;

  std::vector<State> states_ = std::vector<State>(1);
  std::array<uint32_t, 256> first_{};  // the root's children
};

}  // namespace reckon
