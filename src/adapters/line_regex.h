// A regular expression (PCRE2) that finds a number in a line. Its work on one line is limited, so
// that no expression holds up an experiment.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct pcre2_real_code_8;

namespace reckon::adapters {

class LineRegex {
 public:
  // Usage errors say what is wrong with it, and where.
  [[nodiscard]] static Result<LineRegex> parse(const std::string& pattern);

  // Its first group, or all of it where it has none, in the last line that it matches. kFailed: no
  // line matches, matching one took too long, or what it found is no number.
  [[nodiscard]] Result<double> number(std::string_view text) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::string pattern_;
  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

}  // namespace reckon::adapters
