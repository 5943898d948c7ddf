#include "ledger/reported.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/yaml_tree.h"
#include "ledger/record.h"

namespace reckon::ledger {
namespace {

using Kind = YamlNode::Kind;

constexpr std::array<std::string_view, 5> kFileKeys{"source", "device_name", "device", "backend",
                                                    "entries"};
constexpr std::array<std::string_view, 24> kEntryKeys{
    "name",      "idea",     "device_name",   "device", "model",        "family",
    "switch",    "switches", "weight_format", "chunk",  "rows",         "metric",
    "unit",      "better",   "base",          "arm",    "effect",       "verdict",
    "mechanism", "detail",   "conditions",    "lever",  "revisit_when", "links"};
constexpr std::array<std::string_view, 3> kLinkKeys{"lever_entry", "superseded_by", "reason"};

// Reads the keys of one map, all of them known.
class Map {
 public:
  static Result<Map> of(const YamlNode& node, const std::string& path,
                        std::span<const std::string_view> keys) {
    if (node.kind != Kind::kMap) return yaml_error(path, node.line, "expected a map");
    for (const YamlNode::Member& member : node.members) {
      if (std::find(keys.begin(), keys.end(), member.key) == keys.end()) {
        return yaml_error(path, member.key_line, fmt::format("unknown key '{}'", member.key));
      }
    }
    return Map(node, path);
  }

  const YamlNode* find(std::string_view key) const { return node_->find(key); }

  Result<std::string> text(std::string_view key) const {
    const YamlNode* found = find(key);
    if (found == nullptr) return std::string();
    if (found->kind != Kind::kScalar) return wrong(*found, key, "a text");
    return found->scalar;
  }
  Result<std::string> required(std::string_view key) const {
    TRY_ASSIGN(std::string value, text(key));
    if (value.empty()) return yaml_error(path_, node_->line, fmt::format("'{}' is missing", key));
    return value;
  }
  Result<std::vector<std::string>> texts(std::string_view key) const {
    std::vector<std::string> values;
    const YamlNode* found = find(key);
    if (found == nullptr) return values;
    if (found->kind == Kind::kScalar) return std::vector{found->scalar};
    for (const YamlNode& item : found->items) {
      if (item.kind != Kind::kScalar) return wrong(item, key, "a list of texts");
      values.push_back(item.scalar);
    }
    return values;
  }
  Result<std::vector<double>> numbers(std::string_view key) const {
    TRY_ASSIGN(const std::vector<std::string> values, texts(key));
    std::vector<double> numbers;
    for (const std::string& value : values) {
      const auto number = parse<double>(value);
      if (!number || !std::isfinite(*number)) return wrong(*find(key), key, "numbers");
      numbers.push_back(*number);
    }
    return numbers;
  }
  Result<int64_t> whole(std::string_view key) const {
    TRY_ASSIGN(const std::string value, text(key));
    if (value.empty()) return int64_t{0};
    const auto number = parse<int64_t>(value);
    if (!number || *number < 0) return wrong(*find(key), key, "a whole number");
    return *number;
  }

  Error wrong(const YamlNode& node, std::string_view key, std::string_view expected) const {
    return yaml_error(path_, node.line, fmt::format("{}: expected {}", key, expected));
  }
  Error error(const std::string& message) const { return yaml_error(path_, node_->line, message); }
  const std::string& path() const { return path_; }

 private:
  Map(const YamlNode& node, const std::string& path) : node_(&node), path_(path) {}

  template <typename Number>
  static std::optional<Number> parse(const std::string& text) {
    Number number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool all = failure == std::errc() && end == text.data() + text.size();
    return all ? std::optional(number) : std::nullopt;
  }

  const YamlNode* node_;
  std::string path_;
};

struct Links {
  std::string lever_entry;  // names in the file
  std::string superseded_by;
  std::string reason;
};

struct Reported {
  std::string name;
  Event event;
  Links links;
};

Status read_device(const Map& map, IdeaBody& idea) {
  TRY_ASSIGN(const std::string name, map.text("device_name"));
  if (!name.empty()) idea.device_name = name;
  const YamlNode* node = map.find("device");
  if (node == nullptr) return {};
  constexpr std::array<std::string_view, 4> kKeys{"vendor", "isa", "units", "memory_gib"};
  TRY_ASSIGN(const Map device, Map::of(*node, map.path(), kKeys));
  DeviceKey& key = idea.scope.device;
  TRY_ASSIGN(key.vendor, device.text("vendor"));
  TRY_ASSIGN(key.isa, device.text("isa"));
  TRY_ASSIGN(key.units, device.whole("units"));
  TRY_ASSIGN(key.memory_gib, device.whole("memory_gib"));
  return {};
}

Status read_switch(const Map& map, Scope& scope) {
  const YamlNode* node = map.find("switch");
  if (node == nullptr) return map.error("'switch' is missing");
  constexpr std::array<std::string_view, 3> kKeys{"key", "base", "arm"};
  TRY_ASSIGN(const Map pair, Map::of(*node, map.path(), kKeys));
  TRY_ASSIGN(scope.switch_key, pair.required("key"));
  TRY_ASSIGN(scope.base_value, pair.required("base"));
  TRY_ASSIGN(scope.arm_value, pair.required("arm"));
  const YamlNode* others = map.find("switches");
  if (others == nullptr) return {};
  if (others->kind != Kind::kMap) return map.wrong(*others, "switches", "a map of switches");
  for (const YamlNode::Member& member : others->members) {
    scope.base_switches[member.key] = member.value.scalar;
  }
  scope.arm_switches = scope.base_switches;
  return {};
}

Status read_idea(const Map& map, IdeaBody& idea) {
  TRY_ASSIGN(idea.experiment, map.required("name"));
  TRY_ASSIGN(idea.text, map.required("idea"));
  TRY(read_device(map, idea));
  TRY(read_switch(map, idea.scope));
  TRY_ASSIGN(idea.model_name, map.required("model"));
  TRY_ASSIGN(idea.scope.model_family, map.text("family"));
  TRY_ASSIGN(idea.scope.weight_format, map.text("weight_format"));
  TRY_ASSIGN(idea.scope.chunk, map.whole("chunk"));
  TRY_ASSIGN(idea.scope.rows, map.whole("rows"));
  TRY_ASSIGN(idea.scope.metric, map.required("metric"));
  return {};
}

// The mean over rounds of the log ratio, above zero where the arm is better; as a share.
double effect_of(const Numbers& numbers) {
  double sum = 0;
  for (size_t i = 0; i < numbers.base_values.size(); ++i) {
    sum += std::log(numbers.arm_values[i] / numbers.base_values[i]);
  }
  const double mean = sum / static_cast<double>(numbers.base_values.size());
  return std::expm1(numbers.higher_is_better ? mean : -mean);
}

Result<Numbers> read_numbers(const Map& map, const std::string& metric) {
  Numbers numbers;
  numbers.metric = metric;
  TRY_ASSIGN(numbers.unit, map.text("unit"));
  TRY_ASSIGN(const std::string better, map.text("better"));
  if (!better.empty() && better != "lower" && better != "higher") {
    return map.error("better: expected lower or higher");
  }
  numbers.higher_is_better = better != "lower";
  TRY_ASSIGN(numbers.base_values, map.numbers("base"));
  TRY_ASSIGN(numbers.arm_values, map.numbers("arm"));
  TRY_ASSIGN(const std::vector<double> stated, map.numbers("effect"));
  const auto positive = [](double value) { return value > 0; };
  if (numbers.base_values.size() != numbers.arm_values.size() ||
      !std::all_of(numbers.base_values.begin(), numbers.base_values.end(), positive) ||
      !std::all_of(numbers.arm_values.begin(), numbers.arm_values.end(), positive)) {
    return map.error("base and arm: expected a number above zero for each round of both");
  }
  if (!stated.empty()) {
    numbers.effect = stated.front();
  } else if (!numbers.base_values.empty()) {
    numbers.effect = effect_of(numbers);
  }
  return numbers;
}

Result<std::optional<VerdictBody>> read_result(const Map& map, const std::string& metric) {
  TRY_ASSIGN(const std::string word, map.text("verdict"));
  if (word.empty()) return std::optional<VerdictBody>();
  VerdictBody body;
  const Result<Verdict> verdict = parse_verdict(word);
  if (!verdict.ok()) return map.error(verdict.error().message);
  body.verdict = *verdict;
  TRY_ASSIGN(Numbers numbers, read_numbers(map, metric));
  if (body.verdict == Verdict::kVoid) body.void_reason = VoidReason::kEqualDispatch;
  if (numbers.effect) body.numbers = std::move(numbers);
  TRY_ASSIGN(body.mechanism, map.text("mechanism"));
  TRY_ASSIGN(body.detail, map.text("detail"));
  TRY_ASSIGN(body.conditions, map.text("conditions"));
  TRY_ASSIGN(body.lever, map.text("lever"));
  TRY_ASSIGN(body.revisit_when, map.texts("revisit_when"));
  return std::optional(std::move(body));
}

Result<Links> read_links(const Map& map) {
  Links links;
  const YamlNode* node = map.find("links");
  if (node == nullptr) return links;
  TRY_ASSIGN(const Map stated, Map::of(*node, map.path(), kLinkKeys));
  TRY_ASSIGN(links.lever_entry, stated.text("lever_entry"));
  TRY_ASSIGN(links.superseded_by, stated.text("superseded_by"));
  TRY_ASSIGN(links.reason, stated.text("reason"));
  if (!links.superseded_by.empty() && links.reason.empty()) {
    return stated.error("superseded_by wants a reason");
  }
  return links;
}

Result<Reported> read_entry(const YamlNode& node, const std::string& path,
                            const ImportedBody& defaults, const Signature& by) {
  TRY_ASSIGN(const Map map, Map::of(node, path, kEntryKeys));
  ImportedBody body = defaults;
  TRY(read_idea(map, body.idea));
  TRY_ASSIGN(body.result, read_result(map, body.idea.scope.metric));
  Reported reported;
  reported.name = body.idea.experiment;
  TRY_ASSIGN(reported.links, read_links(map));
  TRY_ASSIGN(reported.event,
             make_first_event(EventType::kImported, encode(body), by.writer, by.time));
  if (const Status status = check_body(reported.event); !status.ok()) {
    return map.error(status.error().message);
  }
  return reported;
}

using Ids = std::map<std::string, std::string>;  // name in the file -> entry

Result<std::string> id_of(const Ids& ids, const std::string& name, const std::string& path) {
  const auto found = ids.find(name);
  if (found != ids.end()) return found->second;
  return usage_error(fmt::format("{}: no entry of this file is called '{}'", path, name));
}

Status add_links(const Reported& entry, const Ids& ids, const std::string& path,
                 const Signature& by, std::vector<Event>& events) {
  if (!entry.links.lever_entry.empty()) {
    NoteBody note;
    TRY_ASSIGN(note.lever_entry, id_of(ids, entry.links.lever_entry, path));
    events.push_back(
        make_event(EventType::kNote, entry.event.entry, encode(note), by.writer, by.time));
  }
  if (!entry.links.superseded_by.empty()) {
    StatusBody status;
    status.reason = entry.links.reason;
    TRY_ASSIGN(status.by, id_of(ids, entry.links.superseded_by, path));
    events.push_back(
        make_event(EventType::kSuperseded, entry.event.entry, encode(status), by.writer, by.time));
  }
  return {};
}

}  // namespace

Result<std::vector<Event>> read_reported(std::string_view text, const std::string& path,
                                         const Signature& signature) {
  TRY_ASSIGN(const YamlNode file, parse_yaml(text, path));
  TRY_ASSIGN(const Map map, Map::of(file, path, kFileKeys));
  ImportedBody defaults;
  TRY_ASSIGN(defaults.source, map.required("source"));
  TRY_ASSIGN(defaults.idea.scope.backend, map.text("backend"));
  TRY(read_device(map, defaults.idea));
  const YamlNode* list = map.find("entries");
  if (list == nullptr || list->kind != Kind::kList) return map.error("entries: expected a list");
  std::vector<Reported> entries;
  std::vector<Event> events;
  Ids ids;
  for (const YamlNode& node : list->items) {
    TRY_ASSIGN(Reported entry, read_entry(node, path, defaults, signature));
    if (!ids.emplace(entry.name, entry.event.entry).second) {
      return yaml_error(path, node.line, fmt::format("'{}' stands twice", entry.name));
    }
    events.push_back(entry.event);
    entries.push_back(std::move(entry));
  }
  for (const Reported& entry : entries) TRY(add_links(entry, ids, path, signature, events));
  return events;
}

}  // namespace reckon::ledger
