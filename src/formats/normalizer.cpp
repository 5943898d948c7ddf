#include "formats/normalizer.h"

#include "formats/nfc.h"

namespace reckon {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

namespace {

std::string collapse_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

void Normalizer::add_nfc() {
  steps_.push_back({Kind::kNfc, {}, {}});
}

void Normalizer::add_prepend(std::string_view text) {
  steps_.push_back({Kind::kPrepend, {}, std::string(text)});
}

void Normalizer::add_replace(std::string_view from, std::string_view to) {
  steps_.push_back({Kind::kReplace, std::string(from), std::string(to)});
}

void Normalizer::add_collapse_spaces() {
  steps_.push_back({Kind::kCollapseSpaces, {}, {}});
}

void Normalizer::add_strip_end(std::string_view text) {
  steps_.push_back({Kind::kStripEnd, std::string(text), {}});
}

std::string Normalizer::apply(std::string_view text, Start start) const {
  std::string out(text);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Kind::kNfc:
        out = nfc(out);
        break;
      case Kind::kPrepend:
        if (!out.empty() && start == Start::kBegins) out.insert(0, step.to);
        break;
      case Kind::kReplace:
        out = replace_all(out, step.from, step.to);
        break;
      case Kind::kCollapseSpaces:
        out = collapse_spaces(out);
        break;
      case Kind::kStripEnd:
        while (out.ends_with(step.from)) out.resize(out.size() - step.from.size());
        break;
    }
  }
  return out;
}

}  // namespace reckon
