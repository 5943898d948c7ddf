#include "formats/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "formats/unicode_classes.h"

namespace reckon {
namespace {

bool begins_with_word(std::string_view text) {
  if (text.empty()) return false;
  const Utf8Char first = decode_utf8(text);
  return first.status == Utf8Status::kValid && is_word(first.code_point);
}

// The last character of `text`: its length, 0 where the text is empty or no UTF-8 there.
Utf8Char last_char(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(4, text.size()); ++length) {
    const Utf8Char found = decode_utf8(text.substr(text.size() - length));
    if (found.status == Utf8Status::kValid && found.length == length) return found;
  }
  return {};
}

bool ends_with_word(std::string_view text) {
  const Utf8Char last = last_char(text);
  return last.status == Utf8Status::kValid && is_word(last.code_point);
}

size_t white_space_at_start(std::string_view text) {
  size_t length = 0;
  while (length < text.size()) {
    const Utf8Char next = decode_utf8(text.substr(length));
    if (next.status != Utf8Status::kValid || !is_white_space(next.code_point)) break;
    length += next.length;
  }
  return length;
}

size_t white_space_at_end(std::string_view text) {
  const size_t whole = text.size();
  while (true) {
    const Utf8Char last = last_char(text);
    if (last.status != Utf8Status::kValid || !is_white_space(last.code_point)) break;
    text.remove_suffix(last.length);
  }
  return whole - text.size();
}

}  // namespace

void AddedTokens::finish(const Normalizer& normalizer) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    std::string text = token.text;
    if (token.normalized) text = normalizer.apply(text, Normalizer::Start::kBegins);
    if (text.empty()) continue;
    (token.normalized ? normalized_ : raw_).add(text, static_cast<int32_t>(i));
  }
  raw_.finish();
  normalized_.finish();
}

void AddedTokens::split(std::string_view text, Form form, Special special,
                        const std::function<void(std::string_view)>& plain,
                        const std::function<void(int32_t)>& token) const {
  const TextFinder& finder = form == Form::kRaw ? raw_ : normalized_;
  size_t at = 0;     // what was matched before it is not looked at again, whether or not it counts
  size_t taken = 0;  // all before it was given out
  for (const TextFinder::Match& match : finder.find_all(text)) {
    if (match.begin < at) continue;
    size_t begin = match.begin;
    size_t end = at = match.begin + match.length;
    const AddedToken& found = tokens_[static_cast<size_t>(match.value)];
    if (found.special && special == Special::kIgnore) continue;
    if (found.single_word &&
        (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)))) {
      continue;
    }
    if (found.lstrip && begin > taken) {
      begin -= white_space_at_end(text.substr(taken, begin - taken));
    }
    if (found.rstrip) end += white_space_at_start(text.substr(end));
    if (taken < begin) plain(text.substr(taken, begin - taken));
    token(found.id);
    taken = end;
  }
  if (taken < text.size()) plain(text.substr(taken));
}

}  // namespace reckon
