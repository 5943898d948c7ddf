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

Status known_keys(const std::string& path, const YamlNode& map, std::vector<std::string> keys) {
  for (const YamlNode::Member& member : map.members) {
    if (std::ranges::find(keys, member.key) != keys.end()) continue;
    std::string known;
    for (const std::string& key : keys) known += (known.empty() ? "" : ", ") + key;
    return yaml_error(path, member.key_line,
                      "unknown key '" + member.key + "'; known are " + known);
  }
  return {};
}

Status read_when(const YamlNode& root, Recipe& recipe) {
  const YamlNode* when = root.find("when");
  if (when == nullptr) return {};
  TRY(expect(recipe.path, *when, YamlNode::Kind::kMap, "a map of backend and device.isa"));
  TRY(known_keys(recipe.path, *when, {"backend", "device.isa"}));
  if (when->find("backend") != nullptr) {
    TRY_ASSIGN(recipe.backend, word(recipe.path, *when, "backend"));
  }
  if (when->find("device.isa") != nullptr) {
    TRY_ASSIGN(recipe.isa, word(recipe.path, *when, "device.isa"));
  }
  return {};
}

Status read_setting(const YamlNode& item, Recipe& recipe) {
  TRY(expect(recipe.path, item, YamlNode::Kind::kMap, "a map of key, value and ledger"));
  TRY(known_keys(recipe.path, item, {"key", "value", "ledger", "when"}));
  Recipe::Setting setting;
  setting.line = item.line;
  TRY_ASSIGN(setting.key, word(recipe.path, item, "key"));
  TRY_ASSIGN(setting.value, word(recipe.path, item, "value"));
  for (const Recipe::Setting& other : recipe.settings) {
    if (other.key != setting.key) continue;
    return yaml_error(
        recipe.path, item.line,
        "'" + setting.key + "' stands twice, first in line " + std::to_string(other.line));
  }
  recipe.settings.push_back(std::move(setting));
  return {};
}

std::string isa_of(const Device& device) {
  return device.backend == "cpu" ? std::string(isa_name(device.best_isa)) : device.features;
}

}  // namespace

Status Recipe::apply(const Device& device, SwitchSet& switches) const {
  const std::string here = isa_of(device);
  if ((!backend.empty() && backend != device.backend) || (!isa.empty() && isa != here)) {
    return usage_error(path + ": a recipe for " +
                       (backend.empty() ? "any backend" : one_line(backend)) +
                       (isa.empty() ? "" : " with " + one_line(isa)) + "; this is " +
                       device.backend + " with " + here);
  }
  for (const Setting& setting : settings) {
    const Status set = switches.set(setting.key, setting.value);
    if (!set.ok()) return yaml_error(path, setting.line, set.error().message);
  }
  return {};
}

Result<Recipe> parse_recipe(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, path));
  TRY(expect(path, root, YamlNode::Kind::kMap, "a map of when, ledger and switches"));
  TRY(known_keys(path, root, {"when", "ledger", "switches"}));
  Recipe recipe;
  recipe.path = path;
  TRY(read_when(root, recipe));
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
