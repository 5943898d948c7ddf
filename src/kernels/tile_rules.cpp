#include "kernels/tile_rules.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

#include "base/check.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "base/yaml_tree.h"
#include "kernels/tile_rules_generated.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

constexpr uintmax_t kMostFileBytes = 1 << 20;
constexpr std::string_view kRange = "..";
constexpr Op kTiledOps[] = {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu};
constexpr TileShape kShapes[] = {TileShape::kTall, TileShape::kWide, TileShape::kSquare};

using Keys = std::vector<std::string>;

// The scalars of one map of the file, and errors that say where.
class Reader {
 public:
  Reader(const std::string& path, const YamlNode& map, std::string what)
      : path_(path), map_(map), what_(std::move(what)) {}

  // A map with all of these keys, and none but these and `optional`.
  [[nodiscard]] Status check(const Keys& required, const Keys& optional = {}) const {
    if (map_.kind != YamlNode::Kind::kMap) {
      return error(map_.line, "expected a map with " + join(required, ", "));
    }
    Keys known = required;
    known.insert(known.end(), optional.begin(), optional.end());
    for (const YamlNode::Member& member : map_.members) {
      if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
      const std::string near = nearest(member.key, known);
      return error(member.key_line, "unknown key '" + member.key + "'" +
                                        (near.empty() ? "; expected " + join(known, ", ")
                                                      : "; did you mean '" + near + "'?"));
    }
    for (const std::string& key : required) {
      if (map_.find(key) == nullptr) return error(map_.line, "'" + key + "' is missing");
    }
    return {};
  }

  [[nodiscard]] const YamlNode& node(const std::string& key) const { return *map_.find(key); }

  [[nodiscard]] Result<std::string> text(const std::string& key) const {
    const YamlNode& value = node(key);
    if (value.kind != YamlNode::Kind::kScalar || value.scalar.empty()) {
      return expected(value, key, "a text");
    }
    return value.scalar;
  }

  [[nodiscard]] Result<int64_t> number(const std::string& key) const {
    return number_of(node(key), key);
  }
  [[nodiscard]] Result<int64_t> number_of(const YamlNode& value, const std::string& key) const {
    int64_t number = 0;
    if (value.kind != YamlNode::Kind::kScalar || !parse(value.scalar, number)) {
      return expected(value, key, "a whole number from 1");
    }
    return number;
  }

  [[nodiscard]] Result<NumberRange> range(const std::string& key) const {
    const YamlNode& value = node(key);
    const std::string_view text = value.scalar;
    const size_t dots = text.find(kRange);
    NumberRange range;
    bool good = value.kind == YamlNode::Kind::kScalar && parse(text.substr(0, dots), range.low);
    if (dots == std::string_view::npos) {
      range.high = range.low;
    } else if (dots + kRange.size() < text.size()) {
      good = good && parse(text.substr(dots + kRange.size()), range.high);
    }
    if (!good || range.low > range.high) {
      return expected(value, key, "a range of whole numbers from 1: 512..2048, 512.. or 512");
    }
    return range;
  }

  // The one of `choices` that has this name.
  template <typename T>
  [[nodiscard]] Result<T> choice(const std::string& key, std::span<const T> choices,
                                 std::string_view (*name)(T)) const {
    const YamlNode& value = node(key);
    Keys names;
    for (const T& one : choices) {
      if (value.kind == YamlNode::Kind::kScalar && value.scalar == name(one)) return one;
      names.emplace_back(name(one));
    }
    return expected(value, key, join(names, " or "));
  }

  [[nodiscard]] Error expected(const YamlNode& value, const std::string& key,
                               const std::string& what) const {
    const std::string found = value.kind == YamlNode::Kind::kScalar ? "'" + value.scalar + "'"
                              : value.kind == YamlNode::Kind::kNull ? "empty"
                              : value.kind == YamlNode::Kind::kList ? "a list"
                                                                    : "a map";
    return error(value.line, "'" + key + "' is " + found + ": expected " + what);
  }

  [[nodiscard]] Error error(int line, const std::string& message) const {
    return yaml_error(path_, std::max(line, 1), what_.empty() ? message : what_ + ": " + message);
  }

 private:
  static bool parse(std::string_view text, int64_t& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() && number >= 1;
  }

  const std::string& path_;
  const YamlNode& map_;
  std::string what_;
};

Result<DType> type_of(const Reader& reader) {
  TRY_ASSIGN(const std::string name, reader.text("type"));
  const std::optional<DType> type = dtype_from_name(name);
  if (!type) {
    return reader.expected(reader.node("type"), "type",
                           "an element type (q4_0) or, of a rule, any");
  }
  return *type;
}

Result<TileDevice> device_of(const std::string& path, const YamlNode& node) {
  const Reader reader(path, node, "when");
  TRY(reader.check({"backend", "device.vendor", "device.isa", "device.units"}));
  TileDevice device;
  TRY_ASSIGN(device.backend, reader.text("backend"));
  TRY_ASSIGN(device.vendor, reader.text("device.vendor"));
  TRY_ASSIGN(device.isa, reader.text("device.isa"));
  TRY_ASSIGN(device.units, reader.number("device.units"));
  return device;
}

Result<TunedShape> shape_of(const std::string& path, const YamlNode& node) {
  const Reader reader(path, node, "shape");
  TRY(reader.check({"op", "type", "n", "k"}));
  TunedShape shape;
  TRY_ASSIGN(shape.op, reader.choice<Op>("op", kTiledOps, op_name));
  TRY_ASSIGN(shape.type, type_of(reader));
  TRY_ASSIGN(shape.n, reader.number("n"));
  TRY_ASSIGN(shape.k, reader.number("k"));
  return shape;
}

Result<TileRule> rule_of(const std::string& path, const YamlNode& node) {
  const Reader reader(path, node, "rule");
  TRY(reader.check({"op", "type", "n", "k", "rows", "tile"}));
  TileRule rule;
  TRY_ASSIGN(rule.op, reader.choice<Op>("op", kTiledOps, op_name));
  if (reader.node("type").scalar != "any") {
    TRY_ASSIGN(rule.type, type_of(reader));
  }
  TRY_ASSIGN(rule.n, reader.range("n"));
  TRY_ASSIGN(rule.k, reader.range("k"));
  TRY_ASSIGN(rule.rows, reader.range("rows"));
  TRY_ASSIGN(rule.tile, reader.choice<TileShape>("tile", kShapes, tile_shape_name));
  return rule;
}

// The items of a list, each through `read`.
template <typename T>
Status read_list(const Reader& reader, const std::string& path, const std::string& key,
                 Result<T> (*read)(const std::string&, const YamlNode&), std::vector<T>& out) {
  const YamlNode& list = reader.node(key);
  if (list.kind != YamlNode::Kind::kList) return reader.expected(list, key, "a list");
  for (const YamlNode& item : list.items) {
    TRY_ASSIGN(T one, read(path, item));
    out.push_back(std::move(one));
  }
  return {};
}

// "576", "576 to 1536".
std::string span_text(int64_t low, int64_t high) {
  return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
}

// "n=100 (tuned at 576 to 1536)"; "" where the value is among or between those of `shapes`.
std::string outside_span(const char* name, int64_t value, std::span<const TunedShape> shapes,
                         int64_t TunedShape::*member) {
  const auto [low, high] = std::ranges::minmax_element(shapes, {}, member);
  if (value >= (*low).*member && value <= (*high).*member) return "";
  return std::string(name) + "=" + std::to_string(value) + " (tuned at " +
         span_text((*low).*member, (*high).*member) + ")";
}

std::string device_text(const TileDevice& device) {
  return device.backend + " " + device.vendor + " " + device.isa + " of " +
         std::to_string(device.units) + " units";
}

template <typename T>
std::string list_text(const std::vector<T>& values) {
  std::vector<std::string> texts;
  for (const T& value : values) texts.push_back(std::to_string(value));
  return join(texts, ", ");
}

}  // namespace

std::string NumberRange::text() const {
  if (low == high) return std::to_string(low);
  return std::to_string(low) + std::string(kRange) + (high == kNoEnd ? "" : std::to_string(high));
}

bool TileRule::fits(const OpCall& call) const {
  return op == call.op && (!type || *type == call.weight_type) && n.contains(call.n) &&
         k.contains(call.k) && rows.contains(call.rows);
}

std::string TileRule::text() const {
  std::string text =
      std::string(op_name(op)) + " " + (type ? std::string(dtype_name(*type)) : "any");
  const NumberRange all;
  if (!(n == all)) text += " n=" + n.text();
  if (!(k == all)) text += " k=" + k.text();
  if (!(rows == all)) text += " rows=" + rows.text();
  return text;
}

TileDevice tile_device(const Device& device, int threads) {
  const bool cpu = device.backend == "cpu";
  return {device.backend, device.vendor,
          cpu ? std::string(isa_name(device.best_isa)) : device.features,
          cpu ? threads : device.cores};
}

size_t TileRules::find(const OpCall& call) const {
  const auto rule = std::ranges::find_if(rules, [&](const TileRule& r) { return r.fits(call); });
  return rule == rules.end() ? 0 : static_cast<size_t>(rule - rules.begin()) + 1;
}

std::string TileRules::outside(const OpCall& call, int64_t chunk, const TileDevice& now) const {
  std::vector<std::string> parts;
  if (!(now == device)) {
    parts.push_back("on " + device_text(now) + " (tuned on " + device_text(device) + ")");
  }
  if (std::ranges::find(chunks, chunk) == chunks.end()) {
    parts.push_back("chunk " + std::to_string(chunk) + " (tuned at " + list_text(chunks) + ")");
  }
  std::vector<TunedShape> alike;
  std::ranges::copy_if(shapes, std::back_inserter(alike), [&](const TunedShape& shape) {
    return shape.op == call.op && shape.type == call.weight_type;
  });
  if (alike.empty()) {
    parts.push_back(std::string(op_name(call.op)) + " of " +
                    std::string(dtype_name(call.weight_type)) + " (not tuned)");
  } else {
    parts.push_back(outside_span("n", call.n, alike, &TunedShape::n));
    parts.push_back(outside_span("k", call.k, alike, &TunedShape::k));
  }
  std::erase(parts, "");
  return join(parts, ", ");
}

Result<TileRules> parse_tile_rules(std::string_view text, const std::string& path) {
  TRY_ASSIGN(const YamlNode root, parse_yaml(text, path));
  const Reader reader(path, root, "");
  TRY(reader.check({"name", "date", "ledger", "when", "chunks", "shapes", "rules"},
                   {"model", "command"}));
  TileRules rules;
  rules.path = path;
  rules.content_hash = hash_hex(text).substr(0, 16);
  TRY_ASSIGN(rules.name, reader.text("name"));
  if (rules.name.find_first_of(" \t\n;:#") != std::string::npos) {
    return reader.expected(reader.node("name"), "name", "one word without ; : and #");
  }
  TRY_ASSIGN(rules.date, reader.text("date"));
  TRY_ASSIGN(rules.ledger, reader.text("ledger"));
  TRY_ASSIGN(rules.device, device_of(path, reader.node("when")));
  const YamlNode& chunks = reader.node("chunks");
  if (chunks.kind != YamlNode::Kind::kList || chunks.items.empty()) {
    return reader.expected(chunks, "chunks", "a list of whole numbers: [128, 512]");
  }
  for (const YamlNode& item : chunks.items) {
    TRY_ASSIGN(const int64_t chunk, reader.number_of(item, "chunks"));
    rules.chunks.push_back(chunk);
  }
  TRY(read_list(reader, path, "shapes", shape_of, rules.shapes));
  TRY(read_list(reader, path, "rules", rule_of, rules.rules));
  return rules;
}

Result<std::shared_ptr<const TileRules>> load_tile_rules(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_small_file(path, kMostFileBytes));
  TRY_ASSIGN(TileRules rules, parse_tile_rules(text, path));
  return std::make_shared<const TileRules>(std::move(rules));
}

std::string tile_rules_text(const TileRules& rules, const std::string& comment) {
  std::string text;
  for (const std::string& line : split(comment, '\n')) text += "# " + line + "\n";
  text += "name: " + rules.name + "\ndate: " + rules.date + "\nledger: " + rules.ledger +
          "\nwhen: {backend: " + rules.device.backend + ", device.vendor: " + rules.device.vendor +
          ", device.isa: \"" + rules.device.isa +
          "\", device.units: " + std::to_string(rules.device.units) + "}\nchunks: [" +
          list_text(rules.chunks) + "]\nshapes:\n";
  for (const TunedShape& shape : rules.shapes) {
    text += "  - {op: " + std::string(op_name(shape.op)) +
            ", type: " + std::string(dtype_name(shape.type)) + ", n: " + std::to_string(shape.n) +
            ", k: " + std::to_string(shape.k) + "}\n";
  }
  text += rules.rules.empty() ? "rules: []\n" : "rules:\n";
  for (const TileRule& rule : rules.rules) {
    text += "  - {op: " + std::string(op_name(rule.op)) +
            ", type: " + (rule.type ? std::string(dtype_name(*rule.type)) : "any") +
            ", n: " + rule.n.text() + ", k: " + rule.k.text() + ", rows: " + rule.rows.text() +
            ", tile: " + std::string(tile_shape_name(rule.tile)) + "}\n";
  }
  return text;
}

const std::vector<std::shared_ptr<const TileRules>>& shipped_tile_rules() {
  static const std::vector<std::shared_ptr<const TileRules>> shipped = [] {
    std::vector<std::shared_ptr<const TileRules>> all;
    for (const GeneratedTileRules& generated : kGeneratedTileRules) {
      if (generated.name == nullptr) continue;  // what stands for an empty table
      Result<TileRules> rules = parse_tile_rules(generated.text, generated.name);
      RECKON_CHECK(rules.ok());
      rules->path.clear();
      all.push_back(std::make_shared<const TileRules>(std::move(rules).value()));
    }
    return all;
  }();
  return shipped;
}

std::shared_ptr<const TileRules> shipped_tile_rules_for(const TileDevice& device) {
  std::shared_ptr<const TileRules> found;
  for (const auto& rules : shipped_tile_rules()) {
    if (rules->device == device) return rules;
    if (found == nullptr && rules->device.backend == device.backend) found = rules;
  }
  return found;
}

}  // namespace reckon::kernels
