#include "formats/text_finder.h"

#include <algorithm>

namespace reckon {

void TextFinder::add(std::string_view text, int32_t value) {
  uint32_t state = kRoot;
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    uint32_t to = child(state, byte);
    if (to == kRoot) {
      to = static_cast<uint32_t>(states_.size());
      states_.push_back({.sibling = states_[state].child, .byte = byte});
      states_[state].child = to;
      if (state == kRoot) first_[byte] = to;
    }
    state = to;
  }
  if (states_[state].length > 0) return;
  states_[state].length = static_cast<uint32_t>(text.size());
  states_[state].value = value;
}

// By depth: what a state falls back to is shorter, and is done before it.
void TextFinder::finish() {
  std::vector<uint32_t> order{kRoot};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t parent = order[i];
    for (uint32_t at = states_[parent].child; at != kRoot; at = states_[at].sibling) {
      State& state = states_[at];
      if (parent != kRoot) state.fallback = next(states_[parent].fallback, state.byte);
      const State& shorter = states_[state.fallback];
      if (state.length == 0) {
        state.length = shorter.length;
        state.value = shorter.value;
      }
      order.push_back(at);
    }
  }
}

std::vector<TextFinder::Match> TextFinder::find_all(std::string_view text) const {
  std::vector<Match> matches;
  uint32_t state = kRoot;
  for (size_t i = text.size(); i-- > 0;) {
    state = next(state, static_cast<uint8_t>(text[i]));
    const State& here = states_[state];
    if (here.length > 0) matches.push_back({i, here.length, here.value});
  }
  std::ranges::reverse(matches);
  return matches;
}

uint32_t TextFinder::child(uint32_t state, uint8_t byte) const {
  if (state == kRoot) return first_[byte];
  uint32_t at = states_[state].child;
  while (at != kRoot && states_[at].byte != byte) at = states_[at].sibling;
  return at;
}

uint32_t TextFinder::next(uint32_t state, uint8_t byte) const {
  for (;;) {
    const uint32_t to = child(state, byte);
    if (to != kRoot || state == kRoot) return to;
    state = states_[state].fallback;
  }
}

}  // namespace reckon
