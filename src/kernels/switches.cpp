#include "kernels/switches.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "base/check.h"
#include "base/text.h"
#include "kernels/variants.h"

namespace reckon::kernels {
namespace {

SwitchInfo choice(std::string key, std::vector<std::string> values, std::vector<Op> ops,
                  std::vector<Phase> phases, std::string help) {
  SwitchInfo info;
  info.key = std::move(key);
  info.default_value = values.front();
  info.values = std::move(values);
  info.reach_ops = std::move(ops);
  info.reach_phases = std::move(phases);
  info.help = std::move(help);
  return info;
}

SwitchInfo integer_switch(std::string key, int64_t minimum, int64_t maximum,
                          std::string default_value, std::vector<std::string> words,
                          std::vector<Phase> phases, std::string help) {
  SwitchInfo info;
  info.key = std::move(key);
  info.kind = SwitchKind::kInteger;
  info.values = std::move(words);
  info.minimum = minimum;
  info.maximum = maximum;
  info.default_value = std::move(default_value);
  info.reach_phases = std::move(phases);
  info.help = std::move(help);
  return info;
}

// The ops that decode.verify_kernel decides.
std::vector<Op> verified_ops() {
  return {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu, Op::kExpertMatmulSwiglu,
          Op::kExpertMatmulCombine};
}

std::vector<SwitchInfo> make_registry() {
  const std::vector<Phase> generating = {Phase::kDecode, Phase::kVerify};
  std::vector<SwitchInfo> switches;
  switches.push_back(
      integer_switch("prefill.chunk", 1, 4096, "auto", {"auto"}, {Phase::kPrefill},
                     "tokens of one prefill pass; auto: 512 on a CPU, 2048 on a GPU"));
  switches.push_back(choice("numerics", {"auto", "reference"}, {}, {},
                            "auto: each phase by its own switches; reference: simple float32 "
                            "loops for everything"));
  switches.push_back(choice("prefill.numerics", {"fast", "exact"}, {}, {Phase::kPrefill},
                            "exact: prefill gives the same bits as decode"));
  switches.push_back(choice("prefill.tile_order", {"row", "band8"}, {Op::kMatmul},
                            {Phase::kPrefill},
                            "band8: walk bands of 8 weight-row tiles across all token tiles"));
  switches.push_back(choice("prefill.tile", {"auto", "tall", "wide", "square"},
                            {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu}, {Phase::kPrefill},
                            "the shape of a prefill matmul's tiles, where its kernel has several"));
  switches.push_back(choice("prefill.split_k", {"off", "exact", "fast"},
                            {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu}, {Phase::kPrefill},
                            "multiply parts of K side by side and add their sums"));
  switches.push_back(choice("prefill.tile_rules", {"shipped", "none"},
                            {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu}, {Phase::kPrefill},
                            "a rule file that chooses the tiles where prefill.tile is auto"));
  switches.back().kind = SwitchKind::kFile;
  std::vector<std::string> matmuls = {"auto"};
  for (std::string& name : variant_names(Op::kMatmul)) matmuls.push_back(std::move(name));
  switches.push_back(choice("prefill.matmul", std::move(matmuls),
                            {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu}, {Phase::kPrefill},
                            "run the matmuls of prefill by the named variant, or not at all"));
  std::vector<std::string> experts = {"auto"};
  for (std::string& name : variant_names(Op::kExpertMatmulSwiglu)) {
    experts.push_back(std::move(name));
  }
  const std::vector<Op> of_experts = {Op::kExpertMatmulSwiglu, Op::kExpertMatmulCombine};
  switches.push_back(
      choice("prefill.expert_matmul", std::move(experts), of_experts, {Phase::kPrefill},
             "run the expert matmuls of prefill by the named variant, or not at all"));
  switches.push_back(choice("moe.expert_tile", {"32", "16", "64"}, of_experts, {Phase::kPrefill},
                            "rows of an expert that share one pass of unpacking its weights"));
  switches.push_back(choice("moe.skip_empty", {"on", "off"}, of_experts, {Phase::kPrefill},
                            "on: blocks of 8 rows of an expert tile that are empty are skipped"));
  switches.push_back(choice("kv.type", {"auto", "f32", "f16"}, {Op::kAttention, Op::kRopeAttention},
                            {}, "elements of the KV cache; auto: f32 on a CPU, f16 on a GPU"));
  switches.push_back(choice("decode.graph", {"on", "off"}, {}, generating,
                            "on: a GPU replays a decode step as one captured graph"));
  switches.push_back(choice("decode.drafter", {"mtp", "lookup", "none"}, {}, generating,
                            "what drafts tokens that one pass verifies: the model's own head, "
                            "n-grams of the text so far, or a recorded run (to measure)"));
  switches.back().forms = {{"replay", 0, 1}};
  switches.push_back(integer_switch("decode.mtp_depth", 0, 8, "1", {"auto"}, generating,
                                    "drafts of a pass at most; auto: as many as pay here"));
  switches.push_back(choice("decode.confidence", {"off"}, {}, generating,
                            "stop drafting at a draft of a lower probability or top-2 margin"));
  switches.back().forms = {{"prob", 0, 1}, {"margin", 0, 1000}};
  switches.push_back(choice(
      "decode.verify_kernel", {"exact", "fast", "stream"}, verified_ops(), {Phase::kVerify},
      "matmuls that verify drafts; fast and stream may pick other tokens than plain decode"));
  switches.push_back(integer_switch("decode.multi_max", 1, 16, "4", {}, {Phase::kVerify},
                                    "verifies of up to so many rows stay exact with "
                                    "decode.verify_kernel=fast"));
  switches.back().reach_ops = verified_ops();
  switches.push_back(choice("cpu.isa", {"auto", "scalar", "avx2", "avx512", "amx"}, {}, {},
                            "the widest instruction set that kernels may use"));
  switches.push_back(integer_switch("cpu.threads", 1, 256, "all", {"all"}, {},
                                    "threads that kernels run on; all: every usable core"));
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    std::vector<std::string> values = {"auto"};
    if (is_composition(op)) values.emplace_back("parts");
    for (std::string& name : variant_names(op)) values.push_back(std::move(name));
    switches.push_back(choice("kernel." + std::string(op_name(op)), std::move(values), {op}, {},
                              "run this op by the named variant, or not at all"));
  }
  return switches;
}

// Digits only, no sign, space or leading zero, so that a number has one spelling.
bool parse_strict(std::string_view text, int64_t& number) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  if (text.size() > 1 && text.front() == '0') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// As parse_strict(), with a fraction that does not end in 0.
bool parse_decimal(std::string_view text, double& number) {
  constexpr size_t kMostDigits = 9;
  const size_t point = text.find('.');
  int64_t whole = 0;
  if (text.size() > kMostDigits || !parse_strict(text.substr(0, point), whole)) return false;
  if (point != std::string_view::npos) {
    const std::string_view fraction = text.substr(point + 1);
    const bool digits = fraction.find_first_not_of("0123456789") == std::string_view::npos;
    if (fraction.empty() || !digits || fraction.back() == '0') return false;
  }
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
}

// The number of "word:number"; false where the value is no such.
bool parse_form(std::string_view value, std::string_view word, double& number) {
  return value.size() > word.size() && value.starts_with(word) && value[word.size()] == ':' &&
         parse_decimal(value.substr(word.size() + 1), number);
}

bool allowed(const SwitchInfo& info, std::string_view value) {
  if (std::find(info.values.begin(), info.values.end(), value) != info.values.end()) return true;
  for (const SwitchForm& form : info.forms) {
    double number = 0;
    if (parse_form(value, form.word, number))
      return number >= form.minimum && number <= form.maximum;
  }
  if (info.kind == SwitchKind::kFile) return !value.empty();
  int64_t number = 0;
  return info.kind == SwitchKind::kInteger && parse_strict(value, number) &&
         number >= info.minimum && number <= info.maximum;
}

std::string form_text(const SwitchForm& form) {
  return form.word + ":NUMBER (" + std::to_string(static_cast<int64_t>(form.minimum)) + " to " +
         std::to_string(static_cast<int64_t>(form.maximum)) + ")";
}

std::string allowed_text(const SwitchInfo& info) {
  std::vector<std::string> words = info.values;
  for (const SwitchForm& form : info.forms) words.push_back(form_text(form));
  std::string text = join(words, ", ");
  if (info.kind == SwitchKind::kFile) text += " or a file";
  if (info.kind == SwitchKind::kInteger) {
    if (!text.empty()) text += " or ";
    text += std::to_string(info.minimum) + " to " + std::to_string(info.maximum);
  }
  return text;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

Error unknown_key(std::string_view key) {
  std::vector<std::string> keys;
  for (const SwitchInfo& info : switch_registry()) keys.push_back(info.key);
  std::string hint = suggestion(key, keys);
  if (hint.empty()) hint = "; docs/switches.md lists all " + std::to_string(keys.size());
  return usage_error("unknown switch '" + std::string(key) + "'" + hint);
}

Error bad_value(const SwitchInfo& info, std::string_view value) {
  return usage_error(info.key + "=" + std::string(value) + ": allowed are " + allowed_text(info) +
                     suggestion(value, info.values));
}

// The file of a switch that takes one; null where the value is a word.
Result<std::shared_ptr<const TileRules>> file_of(const SwitchInfo& info, std::string_view value) {
  if (std::find(info.values.begin(), info.values.end(), value) != info.values.end()) {
    return std::shared_ptr<const TileRules>();
  }
  Result<std::shared_ptr<const TileRules>> rules = load_tile_rules(std::string(value));
  if (rules.ok()) return rules;
  return Error{rules.error().kind,
               info.key + ": " + rules.error().message + suggestion(value, info.values)};
}

}  // namespace

std::span<const SwitchInfo> switch_registry() {
  static const std::vector<SwitchInfo> registry = make_registry();
  return registry;
}

const SwitchInfo* find_switch(std::string_view key) {
  static const auto by_key = [] {
    std::unordered_map<std::string_view, const SwitchInfo*> map;
    for (const SwitchInfo& info : switch_registry()) map.emplace(info.key, &info);
    return map;
  }();
  const auto found = by_key.find(key);
  return found == by_key.end() ? nullptr : found->second;
}

Status SwitchSet::set(std::string_view key, std::string_view value) {
  const SwitchInfo* info = find_switch(key);
  if (info == nullptr) return unknown_key(key);
  if (!allowed(*info, value)) return bad_value(*info, value);
  if (info->kind == SwitchKind::kFile) {
    TRY_ASSIGN(tile_rules_, file_of(*info, value));
  }
  if (value == info->default_value) {
    changed_.erase(info->key);
  } else {
    changed_[info->key] = value;
  }
  return {};
}

Status SwitchSet::set_assignment(std::string_view key_equals_value) {
  const size_t equals = key_equals_value.find('=');
  if (equals == std::string_view::npos) {
    return usage_error("'" + std::string(key_equals_value) +
                       "' is not a switch setting; expected key=value");
  }
  return set(key_equals_value.substr(0, equals), key_equals_value.substr(equals + 1));
}

std::string SwitchSet::get(std::string_view key) const {
  const SwitchInfo* info = find_switch(key);
  RECKON_CHECK(info != nullptr);
  const auto found = changed_.find(info->key);
  return found == changed_.end() ? info->default_value : found->second;
}

int64_t SwitchSet::integer(std::string_view key) const {
  int64_t number = 0;
  return parse_strict(get(key), number) ? number : 0;
}

bool operator==(const SwitchSet& a, const SwitchSet& b) {
  const auto content = [](const SwitchSet& set) {
    return set.tile_rules_ == nullptr ? std::string() : set.tile_rules_->content_hash;
  };
  return a.changed_ == b.changed_ && content(a) == content(b);
}

std::optional<double> SwitchSet::number(std::string_view key, std::string_view word) const {
  double number = 0;
  return parse_form(get(key), word, number) ? std::optional(number) : std::nullopt;
}

}  // namespace reckon::kernels
