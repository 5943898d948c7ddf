#include "formats/pretokenizer.h"

#include "base/utf8.h"
#include "formats/normalizer.h"
#include "formats/unicode_classes.h"

namespace reckon {
namespace {

// Cuts a text where separators are, which are announced in order.
class Cutter {
 public:
  Cutter(std::string_view text, SplitBehavior behavior, const PieceSink& piece)
      : text_(text), behavior_(behavior), piece_(piece) {}

  void separator(size_t begin, size_t end) {
    const bool follows_one = begin == separator_end_ && separator_end_ > 0;
    const bool joins = behavior_ == SplitBehavior::kMergedWithPrevious ||
                       (behavior_ == SplitBehavior::kContiguous && follows_one);
    // What comes directly after a separator is never joined to a text before it.
    if (!joins) cut(begin);
    separator_end_ = end;
    if (behavior_ == SplitBehavior::kRemoved) {
      begin_ = end;
    } else if (behavior_ == SplitBehavior::kContiguous) {
      open_ = true;
    } else if (behavior_ != SplitBehavior::kMergedWithNext) {
      cut(end);
    }
  }
  // Text that is no separator begins here.
  void text_at(size_t at) {
    if (open_) cut(at);
    open_ = false;
  }
  void finish() { cut(text_.size()); }

 private:
  void cut(size_t at) {
    if (begin_ < at) piece_(text_.substr(begin_, at - begin_));
    begin_ = at;
  }

  std::string_view text_;
  SplitBehavior behavior_;
  const PieceSink& piece_;
  size_t begin_ = 0;  // of the piece that is not yet cut off
  size_t separator_end_ = 0;
  bool open_ = false;  // it is a run of separators
};

void split_literal(std::string_view text, std::string_view separator, SplitBehavior behavior,
                   const PieceSink& piece) {
  Cutter cutter(text, behavior, piece);
  size_t at = 0;
  for (size_t found = text.find(separator); found != std::string_view::npos;
       found = text.find(separator, at)) {
    if (found > at) cutter.text_at(at);
    at = found + separator.size();
    cutter.separator(found, at);
  }
  if (at < text.size()) cutter.text_at(at);
  cutter.finish();
}

void split_digits(std::string_view text, SplitBehavior behavior, const PieceSink& piece) {
  Cutter cutter(text, behavior, piece);
  for (size_t at = 0; at < text.size();) {
    const Utf8Char next = decode_utf8(text.substr(at));
    if (is_number_v17(next.code_point)) {
      cutter.separator(at, at + next.length);
    } else {
      cutter.text_at(at);
    }
    at += next.length;
  }
  cutter.finish();
}

}  // namespace

void PreTokenizer::add_pattern(SplitPattern pattern) {
  steps_.push_back({.kind = Kind::kPattern, .pattern = pattern});
}

void PreTokenizer::add_literal(std::string_view separator, SplitBehavior behavior) {
  steps_.push_back(
      {.kind = Kind::kLiteral, .literal = std::string(separator), .behavior = behavior});
}

void PreTokenizer::add_digits(SplitBehavior behavior) {
  steps_.push_back({.kind = Kind::kDigits, .behavior = behavior});
}

void PreTokenizer::add_metaspace(std::string_view mark, PrependScheme scheme, bool splits) {
  steps_.push_back(
      {.kind = Kind::kMetaspace, .literal = std::string(mark), .scheme = scheme, .splits = splits});
}

void PreTokenizer::add_prefix_space() {
  steps_.push_back({.kind = Kind::kPrefixSpace});
}

void PreTokenizer::split(std::string_view text, Start start, const PieceSink& piece) const {
  if (!text.empty()) split_from(0, text, start, piece);
}

void PreTokenizer::split_from(size_t index, std::string_view text, Start start,
                              const PieceSink& piece) const {
  if (index == steps_.size()) return piece(text);
  const Step& step = steps_[index];
  std::string changed;
  std::string_view whole = text;
  const PieceSink next = [&](std::string_view part) {
    const bool first = part.data() == whole.data();
    split_from(index + 1, part, first ? start : Start::kLater, piece);
  };
  switch (step.kind) {
    case Kind::kPattern:
      return split_by_pattern(step.pattern, text, next);
    case Kind::kLiteral:
      return split_literal(text, step.literal, step.behavior, next);
    case Kind::kDigits:
      return split_digits(text, step.behavior, next);
    case Kind::kPrefixSpace:
      if (start == Start::kContinues || text.starts_with(' ')) return next(text);
      changed.append(" ").append(text);
      whole = changed;
      return next(whole);
    case Kind::kMetaspace: {
      changed = replace_all(text, " ", step.literal);
      const bool wanted = step.scheme == PrependScheme::kAlways
                              ? start != Start::kContinues
                              : step.scheme == PrependScheme::kFirst && start == Start::kFirst;
      if (wanted && !changed.starts_with(step.literal)) changed.insert(0, step.literal);
      whole = changed;
      if (!step.splits) return next(whole);
      return split_literal(whole, step.literal, SplitBehavior::kMergedWithNext, next);
    }
  }
}

}  // namespace reckon
