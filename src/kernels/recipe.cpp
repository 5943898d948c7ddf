#include "kernels/recipe.h"

#include <algorithm>
#include <utility>

#include "base/regular_file.h"
#include "base/text.h"
#include "base/yaml_tree.h"
#include "kernels/variants.h"

namespace reckon::kernels {
namespace {

constexpr uintmax_t kMostBytes = 1 << 20;

const std::vector<std::string>& fields() {
  static const std::vector<std::string> names = {"backend", "device.vendor", "device.isa",
                                                 "device.units"};
  return names;
}

std::string value_of(const Device& device, const std::string& field) {
  if (field == "backend") return device.backend;
  if (field == "device.vendor") return device.vendor;
  if (field == "device.units") return std::to_string(device.cores);
  return device.backend == "cpu" ? std::string(isa_name(device.best_isa)) : device.features;
}

bool hold(const Recipe::Conditions& conditions, const Device& device) {
  return std::ranges::all_of(conditions, [&](const Recipe::Condition& condition) {
    return std::ranges::find(condition.values, value_of(device, condition.field)) !=
           condition.values.end();
  });
}

// "for backend cpu, device.isa amx or avx512; this is backend cpu, device.isa avx2"
std::string mismatch(const Recipe::Conditions& conditions, const Device& device) {
  std::vector<std::string> wanted;
  std::vector<std::string> here;
  for (const Recipe::Condition& condition : conditions) {
    wanted.push_back(condition.field + " " + join(condition.values, " or "));
    here.push_back(condition.field + " " + value_of(device, condition.field));
  }
  return one_line("for " + join(wanted, ", ") + "; this is " + join(here, ", "));
}

Status expect(const std::string& path, const YamlNode& node, YamlNode::Kind kind,
              const std::string& what) {
  if (node.kind == kind) return {};
  return yaml_error(path, node.line, "expected " + what);
}

Result<std::string> word(const std::string& path, const YamlNode& map, const std::string& key) {
  const YamlNode* node = map.find(key);
  if (node == nullptr) return yaml_error(path, map.line, "'" + key + "' is missing");
  TRY(expect(path, *node, YamlNode::Kind::kScalar, "a word as '" + key + "'"));
  return node->scalar;
}

Status known_keys(const std::string& path, const YamlNode& map,
                  const std::vector<std::string>& keys) {
  for (const YamlNode::Member& member : map.members) {
    if (std::ranges::find(keys, member.key) != keys.end()) continue;
    return yaml_error(path, member.key_line,
                      "unknown key '" + member.key + "'; known are " + join(keys, ", "));
  }
  return {};
}

Result<Recipe::Condition> read_condition(const YamlNode::Member& member, const std::string& path) {
  Recipe::Condition condition{member.key, {}};
  const std::vector<YamlNode> one{member.value};
  const bool is_list = member.value.kind == YamlNode::Kind::kList;
  const std::vector<YamlNode>& values = is_list ? member.value.items : one;
  const bool plain = std::ranges::all_of(values, [](const YamlNode& value) {
    return value.kind == YamlNode::Kind::kScalar && value.scalar.find("..") == std::string::npos;
  });
  if (!plain || values.empty()) {
    return yaml_error(path, member.key_line,
                      "when." + member.key + ": expected a value or a list of values");
  }
  for (const YamlNode& value : values) condition.values.push_back(value.scalar);
  return condition;
}

Result<Recipe::Conditions> read_when(const YamlNode& map, const std::string& path) {
  Recipe::Conditions conditions;
  const YamlNode* when = map.find("when");
  if (when == nullptr) return conditions;
  TRY(expect(path, *when, YamlNode::Kind::kMap, "a map of " + join(fields(), ", ")));
  TRY(known_keys(path, *when, fields()));
  for (const YamlNode::Member& member : when->members) {
    TRY_ASSIGN(Recipe::Condition condition, read_condition(member, path));
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

Status read_setting(const YamlNode& item, Recipe& recipe) {
  TRY(expect(recipe.path, item, YamlNode::Kind::kMap, "a map of key, value and ledger"));
  TRY(known_keys(recipe.path, item, {"key", "value", "ledger", "when"}));
  Recipe::Setting setting;
  setting.line = item.line;
  TRY_ASSIGN(setting.key, word(recipe.path, item, "key"));
  TRY_ASSIGN(setting.value, word(recipe.path, item, "value"));
  TRY_ASSIGN(setting.when, read_when(item, recipe.path));
  for (const Recipe::Setting& other : recipe.settings) {
    if (other.key != setting.key || (!other.when.empty() && !setting.when.empty())) continue;
    return yaml_error(
        recipe.path, item.line,
        "'" + setting.key + "' stands twice, first in line " + std::to_string(other.line));
  }
  recipe.settings.push_back(std::move(setting));
  return {};
}

// Of a line that is left out.
Status known_switch(const std::string& key) {
  if (find_switch(key) != nullptr) return {};
  return SwitchSet().set(key, "");  // which says what is meant
}

}  // namespace

Result<std::vector<std::string>> Recipe::apply(const Device& device, SwitchSet& switches) const {
  if (!hold(when, device)) return usage_error(path + ": a recipe " + mismatch(when, device));
  std::vector<std::string> left_out;
  std::vector<const Setting*> taken;
  for (const Setting& setting : settings) {
    const bool holds = hold(setting.when, device);
    const Status set = holds ? switches.set(setting.key, setting.value) : known_switch(setting.key);
    if (!set.ok()) return yaml_error(path, setting.line, set.error().message);
    if (!holds) {
      left_out.push_back(yaml_error(path, setting.line,
                                    setting.key + "=" + setting.value +
                                        " is left out: " + mismatch(setting.when, device))
                             .message);
      continue;
    }
    const auto twice = std::ranges::find(taken, setting.key, &Setting::key);
    if (twice != taken.end()) {
      return yaml_error(path, setting.line,
                        "'" + setting.key + "' is set in line " + std::to_string((*twice)->line) +
                            ", too, and both conditions hold here");
    }
    taken.push_back(&setting);
  }
  return left_out;
}

Result<Recipe> parse_recipe(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, path));
  TRY(expect(path, root, YamlNode::Kind::kMap, "a map of when, ledger and switches"));
  TRY(known_keys(path, root, {"when", "ledger", "switches"}));
  Recipe recipe;
  recipe.path = path;
  TRY_ASSIGN(recipe.when, read_when(root, path));
  const YamlNode* list = root.find("switches");
  if (list == nullptr) return yaml_error(path, root.line, "'switches' is missing");
  TRY(expect(path, *list, YamlNode::Kind::kList, "a list as 'switches'"));
  for (const YamlNode& item : list->items) TRY(read_setting(item, recipe));
  return recipe;
}

Result<Recipe> load_recipe(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_small_file(path, kMostBytes));
  return parse_recipe(text, path);
}

}  // namespace reckon::kernels
