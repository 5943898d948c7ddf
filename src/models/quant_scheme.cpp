#include "models/quant_scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/yaml_tree.h"

namespace reckon::models {
namespace {

constexpr uintmax_t kMostFileBytes = 1 << 20;

struct NamedScheme {
  std::string_view name;
  std::optional<DType> matrices;
};

constexpr std::array kSchemes{
    NamedScheme{"none", std::nullopt}, NamedScheme{"q4", DType::kP4},
    NamedScheme{"q8", DType::kP8},     NamedScheme{"f16", DType::kF16},
    NamedScheme{"bf16", DType::kBF16},
};

const NamedScheme* find_scheme(std::string_view name) {
  const auto* found = std::ranges::find(kSchemes, name, &NamedScheme::name);
  return found == kSchemes.end() ? nullptr : found;
}

std::string_view name_of(std::optional<DType> type) {
  return std::ranges::find(kSchemes, type, &NamedScheme::matrices)->name;
}

// * is any characters, ? one. After a mismatch only the last * takes one more, so that no pattern
// is slow.
bool fits(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

// Any of several patterns with | between them.
bool fits_any(std::string_view patterns, std::string_view text) {
  while (true) {
    const size_t end = patterns.find('|');
    if (fits(patterns.substr(0, end), text)) return true;
    if (end == std::string_view::npos) return false;
    patterns.remove_prefix(end + 1);
  }
}

bool names_file(std::string_view text) {
  return text.ends_with(".yaml") || text.ends_with(".yml");
}

}  // namespace

Result<QuantScheme> QuantScheme::parse(std::string_view text) {
  if (const NamedScheme* named = find_scheme(text)) {
    QuantScheme scheme;
    scheme.matrices_ = named->matrices;
    return scheme;
  }
  if (names_file(text)) {
    const std::string path(text);
    TRY_ASSIGN(const std::string rules, read_small_file(path, kMostFileBytes));
    return parse_rules(rules, path);
  }
  return usage_error(fmt::format("unknown quantisation '{}'; expected {} or a .yaml file", text,
                                 join(names(), ", ")));
}

Result<QuantScheme> QuantScheme::parse_rules(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, path));
  if (root.kind != YamlNode::Kind::kList || root.items.empty()) {
    return yaml_error(path, std::max(root.line, 1), "expected a list of patterns: - \"*\": q4");
  }
  QuantScheme scheme;
  scheme.path_ = path;
  for (const YamlNode& item : root.items) {
    if (item.kind != YamlNode::Kind::kMap || item.members.size() != 1) {
      return yaml_error(path, item.line, "expected one pattern and its type: - \"*.weight\": q8");
    }
    const YamlNode::Member& member = item.members[0];
    const NamedScheme* type = find_scheme(member.value.scalar);
    if (member.value.kind != YamlNode::Kind::kScalar || type == nullptr) {
      return yaml_error(path, member.value.line,
                        fmt::format("'{}' is '{}': expected {}", one_line(member.key),
                                    one_line(member.value.scalar), join(names(), " or ")));
    }
    if (member.key.empty()) return yaml_error(path, member.key_line, "a pattern is empty");
    scheme.rules_.push_back({member.key, type->matrices, member.key_line});
  }
  return scheme;
}

std::vector<std::string> QuantScheme::names() {
  std::vector<std::string> names;
  for (const NamedScheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

bool QuantScheme::packs() const {
  return matrices_.has_value() ||
         std::ranges::any_of(rules_, [](const Rule& rule) { return rule.type.has_value(); });
}

const QuantScheme::Rule* QuantScheme::rule_for(std::string_view tensor) const {
  const auto found = std::ranges::find_if(
      rules_, [tensor](const Rule& rule) { return fits_any(rule.pattern, tensor); });
  return found == rules_.end() ? nullptr : &*found;
}

std::optional<DType> QuantScheme::type_of(std::string_view tensor) const {
  if (rules_.empty()) return matrices_;
  const Rule* rule = rule_for(tensor);
  return rule == nullptr ? std::nullopt : rule->type;
}

std::string QuantScheme::id() const {
  if (rules_.empty()) return std::string(name_of(matrices_));
  Hasher hasher;
  for (const Rule& rule : rules_) hasher.add_field(rule.pattern).add_field(name_of(rule.type));
  return "mixed-" + hasher.hex().substr(0, 8);
}

std::vector<std::string> QuantScheme::unused(std::span<const std::string> matrices) const {
  std::vector<bool> used(rules_.size(), false);
  for (const std::string& name : matrices) {
    if (const Rule* rule = rule_for(name)) used[static_cast<size_t>(rule - rules_.data())] = true;
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (used[i]) continue;
    lines.push_back(fmt::format("{}:{}: '{}' decides for no matrix of this model", path_,
                                rules_[i].line, one_line(rules_[i].pattern)));
  }
  return lines;
}

}  // namespace reckon::models
