#include "formats/tokenizer_json_steps.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "formats/byte_alphabet.h"
#include "formats/vocabulary.h"

namespace reckon {
namespace {

Error unknown_type(const JsonNode& node, std::string_view type, std::string_view expected) {
  return node.error(fmt::format("has the type {}: expected one of {}",
                                nlohmann::json(std::string(type)).dump(-1, ' ', true), expected));
}

// A string as it stands in the file, on one line.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true);
}

struct TextPattern {
  std::string text;
  bool is_regex = false;
};

// {"String": ...} or {"Regex": ...}. A regular expression without operators is a string, too.
Result<TextPattern> read_pattern(const JsonNode& node) {
  TRY_ASSIGN(const JsonNode pattern, node.member("pattern"));
  TRY(pattern.only({"String", "Regex"}));
  TextPattern out;
  if (pattern.find("String")) {
    TRY_ASSIGN(out.text, pattern.string("String"));
  } else {
    TRY_ASSIGN(out.text, pattern.string("Regex"));
    out.is_regex = out.text.find_first_of("\\^$.|?*+()[]{}") != std::string::npos;
  }
  if (out.text.empty()) return pattern.error("is empty");
  return out;
}

Result<SplitBehavior> read_behavior(const JsonNode& node) {
  constexpr std::pair<std::string_view, SplitBehavior> kNames[] = {
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous},
  };
  TRY_ASSIGN(const std::string name, node.string("behavior"));
  for (const auto& [known, behavior] : kNames) {
    if (known == name) return behavior;
  }
  return node.error(fmt::format("has the behavior {}, which is not known", json_text(name)));
}

Status read_split(const JsonNode& node, PreTokenizer& pre) {
  TRY(node.only({"type", "pattern", "behavior", "invert"}));
  TRY_ASSIGN(const TextPattern pattern, read_pattern(node));
  TRY_ASSIGN(const SplitBehavior behavior, read_behavior(node));
  TRY_ASSIGN(const bool invert, node.boolean_or("invert", false));
  if (!pattern.is_regex) {
    if (invert) return node.error("inverts a string, which is not supported");
    pre.add_literal(pattern.text, behavior);
    return {};
  }
  const auto known = split_pattern_from_regex(pattern.text);
  if (!known) {
    return node.error(
        fmt::format("splits by {}, which is none of the regular expressions that are known "
                    "(GPT-2, Qwen 2 to 3.5, Llama 3, GLM 4, DeepSeek V3)",
                    json_text(pattern.text)));
  }
  // Removing what no match takes is isolating matches where they take everything.
  const bool isolates =
      behavior == SplitBehavior::kIsolated ||
      (behavior == SplitBehavior::kRemoved && invert && covers_everything(*known));
  if (!isolates) {
    return node.error("does not isolate what its regular expression matches: not supported");
  }
  pre.add_pattern(*known);
  return {};
}

// The mark that stands for a space: one character.
Result<std::string> read_replacement(const JsonNode& node) {
  TRY_ASSIGN(std::string mark, node.string("replacement"));
  if (mark.empty() || decode_utf8(mark).length != mark.size()) {
    return node.error(
        fmt::format("has the replacement {}: expected one character", json_text(mark)));
  }
  return mark;
}

Result<PrependScheme> read_scheme(const JsonNode& node) {
  TRY_ASSIGN(const std::string name, node.string_or("prepend_scheme", "always"));
  TRY_ASSIGN(const bool adds, node.boolean_or("add_prefix_space", true));
  if (!adds && name != "never") {
    return node.error("has no prefix space, but a prepend_scheme other than \"never\"");
  }
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return node.error(fmt::format("has the prepend_scheme {}, which is not known", json_text(name)));
}

Status read_metaspace(const JsonNode& node, PreTokenizer& pre) {
  TRY(node.only({"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}));
  TRY_ASSIGN(const std::string mark, read_replacement(node));
  TRY_ASSIGN(const PrependScheme scheme, read_scheme(node));
  TRY_ASSIGN(const bool splits, node.boolean_or("split", true));
  pre.add_metaspace(mark, scheme, splits);
  return {};
}

Status read_byte_level(const JsonNode& node, PreTokenizer& pre) {
  TRY(node.only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  TRY_ASSIGN(const bool prefix, node.boolean("add_prefix_space"));
  TRY_ASSIGN(const bool regex, node.boolean_or("use_regex", true));
  if (prefix) pre.add_prefix_space();
  if (regex) pre.add_pattern(SplitPattern::kGpt2);
  return {};
}

}  // namespace

Status read_normalizer(const JsonNode& node, Normalizer& normalizer) {
  TRY_ASSIGN(const std::string type, node.string("type"));
  if (type == "Sequence") {
    TRY(node.only({"type", "normalizers"}));
    TRY_ASSIGN(const JsonNode list, node.member("normalizers"));
    TRY_ASSIGN(const auto steps, list.elements());
    for (const JsonNode& step : steps) TRY(read_normalizer(step, normalizer));
    return {};
  }
  if (type == "NFC") {
    TRY(node.only({"type"}));
    normalizer.add_nfc();
    return {};
  }
  if (type == "Prepend") {
    TRY(node.only({"type", "prepend"}));
    TRY_ASSIGN(const std::string text, node.string("prepend"));
    normalizer.add_prepend(text);
    return {};
  }
  if (type == "Replace") {
    TRY(node.only({"type", "pattern", "content"}));
    TRY_ASSIGN(const TextPattern pattern, read_pattern(node));
    TRY_ASSIGN(const std::string content, node.string("content"));
    if (pattern.is_regex) {
      return node.error(fmt::format("replaces {}: expected a string, not a regular expression",
                                    json_text(pattern.text)));
    }
    normalizer.add_replace(pattern.text, content);
    return {};
  }
  return unknown_type(node, type, "NFC, Prepend, Replace, Sequence");
}

Status read_pre_tokenizer(const JsonNode& node, PreTokenizer& pre, bool& byte_level) {
  if (byte_level) return node.error("comes after ByteLevel: expected that to be the last");
  TRY_ASSIGN(const std::string type, node.string("type"));
  if (type == "Sequence") {
    TRY(node.only({"type", "pretokenizers"}));
    TRY_ASSIGN(const JsonNode list, node.member("pretokenizers"));
    TRY_ASSIGN(const auto steps, list.elements());
    for (const JsonNode& step : steps) TRY(read_pre_tokenizer(step, pre, byte_level));
    return {};
  }
  if (type == "ByteLevel") {
    byte_level = true;
    return read_byte_level(node, pre);
  }
  if (type == "Split") return read_split(node, pre);
  if (type == "Metaspace") return read_metaspace(node, pre);
  if (type == "Digits") {
    TRY(node.only({"type", "individual_digits"}));
    TRY_ASSIGN(const bool each, node.boolean("individual_digits"));
    pre.add_digits(each ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
    return {};
  }
  return unknown_type(node, type, "ByteLevel, Digits, Metaspace, Sequence, Split");
}

std::string DecodeRules::bytes_of(std::string_view token) const {
  if (byte_level) return bytes_from_alphabet(token).value_or(std::string(token));
  if (byte_fallback) {
    if (const auto byte = byte_from_token_text(token)) return {static_cast<char>(*byte)};
  }
  std::string text(token);
  for (const auto& [from, to] : replace) text = replace_all(text, from, to);
  return text;
}

Status read_decoder(const JsonNode& node, DecodeRules& rules) {
  TRY_ASSIGN(const std::string type, node.string("type"));
  if (type == "Sequence") {
    TRY(node.only({"type", "decoders"}));
    TRY_ASSIGN(const JsonNode list, node.member("decoders"));
    TRY_ASSIGN(const auto steps, list.elements());
    for (const JsonNode& step : steps) TRY(read_decoder(step, rules));
    return {};
  }
  if (type == "ByteLevel") {
    rules.byte_level = true;
  } else if (type == "ByteFallback") {
    rules.byte_fallback = true;
  } else if (type == "Metaspace") {
    TRY_ASSIGN(std::string mark, read_replacement(node));
    TRY_ASSIGN(const PrependScheme scheme, read_scheme(node));
    rules.replace.emplace_back(std::move(mark), " ");
    rules.strips_space = scheme != PrependScheme::kNever;
  } else if (type == "Replace") {
    TRY(node.only({"type", "pattern", "content"}));
    TRY_ASSIGN(TextPattern pattern, read_pattern(node));
    TRY_ASSIGN(std::string content, node.string("content"));
    if (pattern.is_regex) return node.error("replaces a regular expression: expected a string");
    rules.replace.emplace_back(std::move(pattern.text), std::move(content));
  } else if (type == "Strip") {
    TRY(node.only({"type", "content", "start", "stop"}));
    TRY_ASSIGN(const std::string content, node.string("content"));
    TRY_ASSIGN(const int64_t start, node.integer("start"));
    TRY_ASSIGN(const int64_t stop, node.integer("stop"));
    if (content != " " || start != 1 || stop != 0) {
      return node.error("strips something else than one space at the start: not supported");
    }
    rules.strips_space = true;
  } else if (type != "Fuse") {
    return unknown_type(node, type,
                        "ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip");
  }
  return {};
}

namespace {

Status read_template(const JsonNode& node, Surroundings& around) {
  TRY(node.only({"type", "single", "pair", "special_tokens"}));
  TRY_ASSIGN(const JsonNode single, node.member("single"));
  TRY_ASSIGN(const auto parts, single.elements());
  TRY_ASSIGN(const JsonNode special, node.member("special_tokens"));
  bool behind = false;
  for (const JsonNode& part : parts) {
    TRY(part.only({"SpecialToken", "Sequence"}));
    if (part.find("Sequence")) {
      if (behind) return single.error("has the text twice: expected it once");
      behind = true;
      continue;
    }
    TRY_ASSIGN(const JsonNode token, part.member("SpecialToken"));
    TRY_ASSIGN(const std::string name, token.string("id"));
    TRY_ASSIGN(const JsonNode entry, special.member(name));
    TRY_ASSIGN(const JsonNode list, entry.member("ids"));
    TRY_ASSIGN(const auto ids, list.elements());
    for (const JsonNode& id : ids) {
      if (!id.value().is_number_integer()) return id.error("is not an integer");
      (behind ? around.after : around.before).push_back(id.value().get<int64_t>());
    }
  }
  if (!behind) return single.error("does not have the text");
  return {};
}

}  // namespace

Status read_post_processor(const JsonNode& node, Surroundings& around) {
  TRY_ASSIGN(const std::string type, node.string("type"));
  if (type == "ByteLevel") return {};
  if (type == "Sequence") {
    TRY(node.only({"type", "processors"}));
    TRY_ASSIGN(const JsonNode list, node.member("processors"));
    TRY_ASSIGN(const auto steps, list.elements());
    for (const JsonNode& step : steps) TRY(read_post_processor(step, around));
    return {};
  }
  if (type == "TemplateProcessing") {
    Surroundings inner;
    TRY(read_template(node, inner));
    around.before.insert(around.before.begin(), inner.before.begin(), inner.before.end());
    around.after.insert(around.after.end(), inner.after.begin(), inner.after.end());
    return {};
  }
  return unknown_type(node, type, "ByteLevel, Sequence, TemplateProcessing");
}

}  // namespace reckon
