// Splits text into the pieces within which a tokenizer's model works: steps, each of which splits
// the pieces of the one before. Const after it was built and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/split_pattern.h"

namespace reckon {

// What becomes of a separator: Hugging Face's names.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Where Metaspace puts a space before a piece that has none.
enum class PrependScheme { kAlways, kFirst, kNever };

class PreTokenizer {
 public:
  void add_pattern(SplitPattern pattern);
  void add_literal(std::string_view separator, SplitBehavior behavior);  // not empty
  // Number characters (Unicode 17): each by itself, or runs of them (kContiguous).
  void add_digits(SplitBehavior behavior);
  // Spaces become `mark` (one character), which begins a piece where `splits`.
  void add_metaspace(std::string_view mark, PrependScheme scheme, bool splits);
  void add_prefix_space();  // a space before each piece that has none

  // Whether `text` begins what the user wrote, for PrependScheme::kFirst, or comes later in it; or
  // continues a piece that was cut, so that no step puts anything before it.
  enum class Start { kFirst, kLater, kContinues };
  // Calls piece(...) for each piece of `text` (valid UTF-8), in order. Pieces are never empty and
  // live during the call.
  void split(std::string_view text, Start start, const PieceSink& piece) const;

 private:
  enum class Kind { kPattern, kLiteral, kDigits, kMetaspace, kPrefixSpace };
  struct Step {
    Kind kind;
    SplitPattern pattern = SplitPattern::kGpt2;
    std::string literal = {};
    SplitBehavior behavior = SplitBehavior::kIsolated;
    PrependScheme scheme = PrependScheme::kNever;
    bool splits = false;
  };
  void split_from(size_t step, std::string_view text, Start start, const PieceSink& piece) const;

  std::vector<Step> steps_;
};

}  // namespace reckon
