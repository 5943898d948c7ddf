#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <numeric>

#include "base/utf8.h"

namespace reckon {
namespace {

// Levenshtein distance with one row of memory.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  // Of a short word something must be right: every key of two letters is two changes from "<<".
  size_t best_distance = std::min(std::max<size_t>(2, word.size() / 3) + 1, word.size());
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (true) {
    const size_t end = text.find(separator, start);
    parts.emplace_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += separator;
    text += parts[i];
  }
  return text;
}

std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const Utf8Char next = decode_utf8(text);
    const std::string_view bytes = text.substr(0, next.length);
    text.remove_prefix(next.length);
    if (bytes == "\n" || bytes == "\r" || bytes == "\t") {
      line += ' ';
    } else if (next.status == Utf8Status::kValid && next.code_point >= 0x20 &&
               (next.code_point < 0x7f || next.code_point > 0x9f)) {
      line += bytes;
    } else {
      for (const char c : bytes) line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return line;
}

std::string shorten(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  return std::string(text.substr(0, valid_utf8_prefix(text.substr(0, bytes)))) + "…";
}

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

std::string utc_timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace reckon
