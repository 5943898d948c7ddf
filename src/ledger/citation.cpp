#include "ledger/citation.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/yaml_tree.h"

namespace reckon::ledger {
namespace {

constexpr std::string_view kMark = "ledger: ";
constexpr std::string_view kUnmeasured = "unmeasured";
constexpr std::string_view kRange = "..";

std::string_view word_at(std::string_view line, size_t from) {
  size_t end = from;
  const auto in_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  while (end < line.size() && in_word(line[end])) ++end;
  return line.substr(from, end - from);
}

Status add_cited(const YamlNode& node, const std::string& path, Citation& citation) {
  const std::vector<YamlNode> one{node};
  for (const YamlNode& item : node.kind == YamlNode::Kind::kList ? node.items : one) {
    if (item.kind != YamlNode::Kind::kScalar) {
      return yaml_error(path, item.line, "ledger: expected an entry, a list of them or unmeasured");
    }
    if (item.scalar == kUnmeasured) {
      citation.unmeasured = true;
    } else {
      citation.entries.push_back(item.scalar);
    }
  }
  return {};
}

Result<Condition> condition_of(const YamlNode::Member& member, const std::string& path) {
  Condition condition{member.key, {}, false};
  const YamlNode& value = member.value;
  if (value.kind == YamlNode::Kind::kScalar) {
    const size_t dots = value.scalar.find(kRange);
    condition.range = dots != std::string::npos;
    condition.values = condition.range ? std::vector{value.scalar.substr(0, dots),
                                                     value.scalar.substr(dots + kRange.size())}
                                       : std::vector{value.scalar};
    return condition;
  }
  for (const YamlNode& item : value.items) {
    if (item.kind == YamlNode::Kind::kScalar) condition.values.push_back(item.scalar);
  }
  if (condition.values.empty() || condition.values.size() != value.items.size()) {
    return yaml_error(
        path, member.key_line,
        fmt::format("when.{}: expected a value, a list of values or a range", member.key));
  }
  return condition;
}

Status add_conditions(const YamlNode& node, const std::string& path, Citation& citation) {
  const YamlNode* when = node.find("when");
  if (when == nullptr) return {};
  if (when->kind != YamlNode::Kind::kMap) {
    return yaml_error(path, when->line, "when: expected a map of a scope's fields");
  }
  for (const YamlNode::Member& member : when->members) {
    TRY_ASSIGN(Condition condition, condition_of(member, path));
    citation.conditions.push_back(std::move(condition));
  }
  return {};
}

Result<Citation> citation_of(const YamlNode& item, const YamlNode& file, const std::string& path) {
  Citation citation{path, item.line, "rule", {}, false, {}, "", ""};
  if (item.kind != YamlNode::Kind::kMap) {
    return yaml_error(path, item.line, "a rule is a map: expected its ledger and when");
  }
  const YamlNode* key = item.find("key");
  const YamlNode* value = item.find("value");
  if (key != nullptr && value != nullptr) {
    citation.switch_key = key->scalar;
    citation.switch_value = value->scalar;
    citation.what = fmt::format("switch {}={}", key->scalar, value->scalar);
  }
  const YamlNode* cited = item.find("ledger");
  if (cited == nullptr) cited = file.find("ledger");
  if (cited != nullptr) TRY(add_cited(*cited, path, citation));
  TRY(add_conditions(file, path, citation));
  TRY(add_conditions(item, path, citation));
  return citation;
}

}  // namespace

std::vector<Citation> citations_in_comments(std::string_view text, const std::string& path) {
  std::vector<Citation> found;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    for (size_t at = line.find(kMark); at != std::string::npos; at = line.find(kMark, at + 1)) {
      const std::string_view word = word_at(line, at + kMark.size());
      Citation citation{path, number, "comment", {}, word == kUnmeasured, {}, "", ""};
      if (word.starts_with("rk-") && word != "rk-") citation.entries.emplace_back(word);
      if (citation.unmeasured || !citation.entries.empty()) found.push_back(std::move(citation));
    }
  }
  return found;
}

Result<std::vector<Citation>> citations_in_rules(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const YamlNode file, parse_yaml(text, path));
  const YamlNode* list = file.find("rules");
  if (list == nullptr) list = file.find("switches");
  if (list == nullptr || list->kind != YamlNode::Kind::kList) {
    return yaml_error(path, 1, "expected a list called rules or switches");
  }
  std::vector<Citation> found;
  for (const YamlNode& item : list->items) {
    TRY_ASSIGN(Citation citation, citation_of(item, file, path));
    found.push_back(std::move(citation));
  }
  return found;
}

}  // namespace reckon::ledger
