#include "adapters/line_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace reckon::adapters {
namespace {

constexpr uint32_t kMatchLimit = 1'000'000;
constexpr uint32_t kDepthLimit = 10'000;
constexpr uint32_t kHeapLimitKib = 32 * 1024;
constexpr size_t kShown = 100;

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  const int length = pcre2_get_error_message(error, text, sizeof text);
  return length > 0 ? std::string(text, text + length) : fmt::format("error {}", error);
}

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

// As programs print numbers: "1234.5", "+3e-4", with spaces around.
std::optional<double> parse_number(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
  if (text.starts_with('+')) text.remove_prefix(1);
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

void LineRegex::Free::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Result<LineRegex> LineRegex::parse(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  LineRegex regex;
  regex.pattern_ = one_line(pattern);
  regex.code_.reset(pcre2_compile(units(pattern), pattern.size(), 0, &error, &offset, nullptr));
  if (regex.code_) return regex;
  return usage_error(fmt::format("regular expression '{}', at character {}: {}", regex.pattern_,
                                 offset + 1, message_of(error)));
}

Result<double> LineRegex::number(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(
      pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  const std::unique_ptr<pcre2_match_context, FreeMatch> context(
      pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_depth_limit(context.get(), kDepthLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKib);
  while (!text.empty()) {
    if (text.back() == '\n') text.remove_suffix(1);
    const size_t before = text.rfind('\n');
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    std::string_view line = text.substr(begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const int groups =
        pcre2_match(code_.get(), units(line), line.size(), 0, 0, match.get(), context.get());
    if (groups > 0) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
      const int group = pcre2_get_ovector_count(match.get()) > 1 ? 1 : 0;
      std::string_view found;
      if (group < groups && ends[2 * group] <= ends[2 * group + 1]) {
        found = line.substr(ends[2 * group], ends[2 * group + 1] - ends[2 * group]);
      }
      if (const std::optional<double> number = parse_number(found)) return *number;
      return failed(fmt::format("regular expression '{}' found no number but '{}' in '{}'",
                                pattern_, shorten(one_line(found), kShown),
                                shorten(one_line(line), kShown)));
    }
    if (groups != PCRE2_ERROR_NOMATCH) {
      return failed(
          fmt::format("regular expression '{}' gave up: {}", pattern_, message_of(groups)));
    }
    text = text.substr(0, begin);
  }
  return failed(fmt::format("regular expression '{}' matches no line", pattern_));
}

}  // namespace reckon::adapters
