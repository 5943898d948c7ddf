#include "experiment/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <set>

#include "base/regular_file.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/yaml_tree.h"
#include "experiment/queue_command.h"
#include "experiment/queue_fields.h"

namespace reckon::experiment {
namespace {

using Keys = std::vector<std::string>;

const Keys kQueueKeys{"name", "runner", "defaults", "experiments"};
// What `defaults` may hold: the design, and what runs.
const Keys kDesignKeys{"rounds", "pairs", "warmup_pairs", "timeout", "claim"};
const Keys kEngineDefaultKeys{"model", "metric", "memory_limit", "backend", "quant", "control"};
// What only an experiment has.
const Keys kExperimentKeys{"id", "idea", "kind", "switch", "set", "only"};
const Keys kEngineKeys{"reach", "workload", "tokens"};
const Keys kSwitchKeys{"key", "base", "arm", "arms"};
const Keys kSyntheticKeys{"synth", "layers", "seed", "router_skew"};
const Keys kReachKeys{"op", "phase"};
const Keys kWorkloadKeys{"phase",    "prompt", "prompt_file", "prompt_tokens",
                         "generate", "chunk",  "context"};

constexpr int64_t kMaximumTokens = int64_t{1} << 24;

// A prompt file beside the queue or in a folder above it.
Result<std::string> read_prompt(const Fields& fields, const std::string& key,
                                const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code failure;
  fs::path folder = fs::absolute(fields.path(), failure).parent_path();
  fs::path file = folder / name;
  std::string obstacle;  // the first of that name, where it is no file
  while (!fs::is_regular_file(file, failure)) {
    if (obstacle.empty() && fs::exists(file, failure)) obstacle = why_not_a_file(file.string());
    if (!folder.has_relative_path()) {
      return fields.key_error(
          key, fmt::format("'{}' {}", name,
                           obstacle.empty() ? "is neither beside the queue nor in a folder above it"
                                            : obstacle));
    }
    folder = folder.parent_path();
    file = folder / name;
  }
  Result<std::string> text = read_small_file(file.string(), kMaximumPromptBytes);
  if (!text.ok()) return fields.key_error(key, text.error().message);
  if (!valid_utf8(*text)) return fields.key_error(key, fmt::format("'{}' is not UTF-8", name));
  return text;
}

// "" where random tokens will do.
Result<std::string> prompt_of(const Fields& fields) {
  TRY_ASSIGN(const std::string file, fields.text("prompt_file"));
  TRY_ASSIGN(std::string prompt, fields.text("prompt"));
  if (file.empty() && prompt.empty() && fields.find("prompt_tokens") != nullptr) return prompt;
  if (file.empty() == prompt.empty()) {
    return fields.key_error(
        "prompt",
        "expected one of 'prompt' and 'prompt_file', or 'prompt_tokens' alone for random ones");
  }
  if (!file.empty()) {
    TRY_ASSIGN(prompt, read_prompt(fields, "prompt_file", file));
  } else if (names_prompt_file(prompt)) {
    TRY_ASSIGN(prompt, read_prompt(fields, "prompt", std::string(prompt)));
  }
  if (prompt.empty()) return fields.key_error("prompt_file", "the prompt is empty");
  return prompt;
}

Status check_phase(const Fields& fields, const std::string& phase) {
  if (phase == "prefill" || phase == "decode") return {};
  return fields.key_error("phase",
                          fmt::format("'{}' is no phase: expected prefill or decode", phase));
}

Keys together(std::initializer_list<Keys> lists) {
  Keys all;
  for (const Keys& keys : lists) all.insert(all.end(), keys.begin(), keys.end());
  return all;
}

// Of defaults and of experiments, in a queue of programs or one of an engine.
Keys default_keys(bool programs) {
  return together({kDesignKeys, programs ? kCommandKeys : kEngineDefaultKeys});
}

Keys experiment_keys(bool programs) {
  return together({kExperimentKeys, programs ? Keys() : kEngineKeys, default_keys(programs)});
}

Status read_workload(const Fields& outer, Experiment& experiment) {
  const YamlNode* node = outer.find("workload");
  if (node == nullptr) return outer.key_error("id", "'workload' is missing");
  const Fields fields(outer.path(), *node, outer.what() + ": workload");
  TRY(fields.check(kWorkloadKeys));
  Workload& workload = experiment.workload;
  TRY_ASSIGN(workload.phase, fields.required("phase"));
  TRY(check_phase(fields, workload.phase));
  TRY_ASSIGN(workload.prompt, prompt_of(fields));
  const int64_t fewest = workload.prompt.empty() ? 1 : 0;
  TRY_ASSIGN(workload.prompt_tokens, fields.integer("prompt_tokens", fewest, kMaximumTokens, 0));
  TRY_ASSIGN(workload.generate_tokens, fields.integer("generate", 0, kMaximumTokens, 0));
  TRY_ASSIGN(workload.context, fields.integer("context", 0, kMaximumTokens, 0));
  if (workload.phase == "decode" && workload.generate_tokens == 0) {
    return fields.key_error("phase", "'generate' is missing: how many tokens shall be decoded?");
  }
  TRY_ASSIGN(const int64_t chunk, fields.integer("chunk", 1, kMaximumTokens, 0));
  if (chunk == 0) return {};
  if (experiment.set.contains("prefill.chunk") || experiment.switch_pair.key == "prefill.chunk") {
    return fields.key_error("chunk", "prefill.chunk is set elsewhere in this experiment");
  }
  experiment.set["prefill.chunk"] = fmt::format("{}", chunk);
  return {};
}

// One arm or a list of them, as `arm` or `arms`; at least one.
Result<std::vector<std::string>> arms_of(const Fields& fields, const YamlNode& node) {
  const YamlNode* one = node.find("arm");
  const YamlNode* list = node.find("arms");
  if (one != nullptr && list != nullptr) {
    return fields.error(list->line, "expected one of 'arm' and 'arms'");
  }
  if (list == nullptr && one != nullptr && one->kind == YamlNode::Kind::kList) list = one;
  std::vector<std::string> arms;
  if (list == nullptr) {
    TRY_ASSIGN(std::string arm, fields.required("arm"));
    arms.push_back(std::move(arm));
    return arms;
  }
  if (list->kind != YamlNode::Kind::kList || list->items.empty()) {
    return fields.error(list->line, "'arms' must be a list with at least one value");
  }
  for (const YamlNode& item : list->items) {
    if (item.kind != YamlNode::Kind::kScalar || item.scalar.empty()) {
      return fields.error(item.line, "an arm must be a word or a text");
    }
    if (std::find(arms.begin(), arms.end(), item.scalar) != arms.end()) {
      return fields.error(item.line, fmt::format("arm '{}' is listed twice", item.scalar));
    }
    arms.push_back(item.scalar);
  }
  return arms;
}

// As many experiments as there are arms; each is paired with the base.
Result<std::vector<Experiment>> each_arm(const std::string& path, const YamlNode& node,
                                         const Experiment& experiment) {
  const YamlNode* switch_node = experiment.is_floor() ? nullptr : node.find("switch");
  if (switch_node == nullptr) return std::vector<Experiment>{experiment};
  const Fields fields(path, *switch_node, fmt::format("experiment '{}': switch", experiment.id));
  TRY_ASSIGN(const std::vector<std::string> arms, arms_of(fields, *switch_node));
  std::vector<Experiment> experiments(arms.size(), experiment);
  if (arms.size() == 1) return experiments;
  for (size_t i = 0; i < arms.size(); ++i) {
    experiments[i].switch_pair.arm = arms[i];
    experiments[i].group = experiment.id;
    experiments[i].id += ":" + one_line(arms[i]);
  }
  return experiments;
}

Status read_switch(const Fields& outer, Experiment& experiment) {
  const YamlNode* node = outer.find("switch");
  if (experiment.is_floor()) {
    if (node == nullptr) return {};
    return outer.key_error("switch", "identical arms (kind: aa) have no 'switch'; use 'set'");
  }
  if (node == nullptr) return outer.key_error("id", "'switch' is missing");
  const Fields fields(outer.path(), *node, outer.what() + ": switch");
  TRY(fields.check(kSwitchKeys));
  SwitchPair& pair = experiment.switch_pair;
  TRY_ASSIGN(pair.key, fields.required("key"));
  TRY_ASSIGN(pair.base, fields.text("base"));
  TRY_ASSIGN(const std::vector<std::string> arms, arms_of(fields, *node));
  if (std::find(arms.begin(), arms.end(), pair.base) != arms.end()) {
    return fields.key_error("base", "base and arm are the same; identical arms are kind: aa");
  }
  pair.arm = arms.front();
  return {};
}

Status read_set(const Fields& outer, Experiment& experiment) {
  TRY_ASSIGN(const auto entries, outer.entries("set"));
  for (const Fields::Entry& entry : entries) {
    if (entry.key == experiment.switch_pair.key) {
      return outer.error(entry.line, fmt::format("'{}' is the switch between the arms", entry.key));
    }
    experiment.set[entry.key] = entry.value;
  }
  return {};
}

Status read_reach(const Fields& outer, Experiment& experiment) {
  experiment.reach.phase = experiment.workload.phase;
  const YamlNode* node = outer.find("reach");
  if (node == nullptr) return {};
  const Fields fields(outer.path(), *node, outer.what() + ": reach");
  if (experiment.is_floor()) return fields.error(node->line, "identical arms have no reach");
  TRY(fields.check(kReachKeys));
  TRY_ASSIGN(experiment.reach.op, fields.text("op"));
  TRY_ASSIGN(const std::string phase, fields.text("phase"));
  if (!phase.empty()) experiment.reach.phase = phase;
  return {};
}

Status read_tokens(const Fields& fields, Experiment& experiment) {
  TRY_ASSIGN(const std::string tokens, fields.text("tokens"));
  if (tokens.empty() || tokens == token_policy_name(TokenPolicy::kIdentical)) return {};
  if (tokens != token_policy_name(TokenPolicy::kMayDiverge)) {
    return fields.key_error(
        "tokens", fmt::format("'{}' is no policy: expected identical or may-diverge", tokens));
  }
  if (experiment.is_floor()) {
    return fields.key_error("tokens", "identical arms generate identical tokens");
  }
  experiment.tokens = TokenPolicy::kMayDiverge;
  return {};
}

Status read_design(const Fields& fields, Experiment& experiment) {
  const auto integer = [&](const char* key, int64_t minimum, int& value) -> Status {
    TRY_ASSIGN(const int64_t read, fields.integer(key, minimum, 1000, value));
    value = static_cast<int>(read);
    return {};
  };
  TRY(integer("rounds", 1, experiment.rounds));
  TRY(integer("pairs", 1, experiment.pairs));
  TRY(integer("warmup_pairs", 0, experiment.warmup_pairs));
  TRY_ASSIGN(const std::optional<double> timeout, fields.parsed("timeout", parse_seconds));
  if (timeout && (*timeout < 1 || *timeout > 86400)) {
    return fields.key_error("timeout", "'timeout' must be from 1s to 24h");
  }
  if (timeout) experiment.timeout_seconds = static_cast<int>(*timeout);
  TRY_ASSIGN(experiment.claim, fields.parsed("claim", parse_claim));
  if (experiment.is_floor()) experiment.claim.reset();
  TRY_ASSIGN(experiment.memory_limit, fields.parsed("memory_limit", parse_memory_limit));
  return {};
}

// A name, or a synthetic model as a map: {synth: llama-8b, layers: 4} is "synth:llama-8b,layers=4".
Result<std::string> model_of(const Fields& fields) {
  const YamlNode* node = fields.find("model");
  if (node == nullptr || node->kind != YamlNode::Kind::kMap) return fields.required("model");
  const Fields synthetic(fields.path(), *node, fields.what() + ": model");
  TRY(synthetic.check(kSyntheticKeys));
  TRY_ASSIGN(const std::string shape, synthetic.required("synth"));
  std::string model = "synth:" + shape;
  TRY_ASSIGN(const int64_t layers, synthetic.integer("layers", 1, kMaximumTokens, 0));
  if (layers != 0) model += fmt::format(",layers={}", layers);
  TRY_ASSIGN(const int64_t seed, synthetic.integer("seed", 0, INT64_MAX, 0));
  if (seed != 0) model += fmt::format(",seed={}", seed);
  TRY_ASSIGN(const std::optional<double> skew, synthetic.parsed("router_skew", parse_number));
  if (skew && *skew != 0) model += fmt::format(",router_skew={}", *skew);
  return model;
}

// What runs in a queue of an engine.
Status read_engine(const Fields& fields, Experiment& experiment) {
  TRY_ASSIGN(experiment.workload.model, model_of(fields));
  const auto word_or = [&](const char* key, std::string& value) -> Status {
    TRY_ASSIGN(std::string given, fields.text(key));
    if (!given.empty()) value = std::move(given);
    return {};
  };
  TRY(word_or("backend", experiment.workload.backend));
  TRY(word_or("quant", experiment.workload.quant));
  TRY_ASSIGN(experiment.workload.metric, fields.required("metric"));
  TRY(word_or("control", experiment.control));
  TRY(read_workload(fields, experiment));
  return read_tokens(fields, experiment);
}

Result<Experiment> read_experiment(const std::string& path, const YamlNode& node,
                                   const YamlNode* defaults, bool programs) {
  Experiment experiment;
  experiment.line = node.line;
  {
    const Fields unnamed(path, node, "experiment");
    if (node.kind != YamlNode::Kind::kMap) return unnamed.error(node.line, "expected a map");
    TRY_ASSIGN(experiment.id, unnamed.required("id"));
  }
  const std::string what = fmt::format("experiment '{}'", shorten(one_line(experiment.id), 60));
  const Fields fields(path, node, what, defaults);
  TRY(fields.check(experiment_keys(programs)));
  if (experiment.id.size() > 100 || one_line(experiment.id) != experiment.id) {
    return fields.key_error("id", "an id is one line of at most 100 bytes");
  }
  TRY_ASSIGN(const std::string kind, fields.text("kind"));
  if (kind == "aa") {
    experiment.kind = ledger::EntryKind::kFloor;
  } else if (!kind.empty() && kind != "ab") {
    return fields.key_error("kind", fmt::format("'{}' is no kind: expected ab or aa", kind));
  }
  TRY_ASSIGN(experiment.idea, fields.text("idea"));
  if (experiment.idea.empty() && !experiment.is_floor()) {
    return fields.key_error("id", "'idea' is missing: what is tried, in a sentence");
  }
  TRY_ASSIGN(const std::string only, fields.text("only"));
  if (!only.empty() && only != "full")
    return fields.key_error("only", "'only' is 'full' or absent");
  experiment.only_full = !only.empty();
  TRY(read_switch(fields, experiment));
  TRY(read_set(fields, experiment));
  TRY(read_design(fields, experiment));
  if (programs) {
    TRY(read_command_workload(fields, experiment));
  } else {
    TRY(read_engine(fields, experiment));
  }
  TRY(read_reach(fields, experiment));
  return experiment;
}

// Sets a key of `defaults`, which is made where it is absent.
void set_default(YamlNode& root, const std::string& key, const std::string& value) {
  const auto member = [](YamlNode& map, const std::string& name) -> YamlNode& {
    for (YamlNode::Member& one : map.members) {
      if (one.key == name) return one.value;
    }
    return map.members.emplace_back(YamlNode::Member{name, map.line, {}}).value;
  };
  YamlNode& defaults = member(root, "defaults");
  if (defaults.kind == YamlNode::Kind::kNull) defaults.kind = YamlNode::Kind::kMap;
  YamlNode scalar;
  scalar.kind = YamlNode::Kind::kScalar;
  scalar.line = defaults.line;
  scalar.scalar = value;
  if (defaults.kind == YamlNode::Kind::kMap) member(defaults, key) = std::move(scalar);
}

Status put_instead(YamlNode& root, const std::string& path, const QueueOverrides& instead) {
  const auto put = [&](const std::string& key, const std::string& value) -> Status {
    if (value.empty()) return {};
    const YamlNode* runner = root.find("runner");
    const YamlNode* list = root.find("experiments");
    const bool taken = (runner == nullptr || runner->scalar != kCommandRunner) && list != nullptr &&
                       std::ranges::any_of(list->items, [&](const YamlNode& item) {
                         return item.find(key) == nullptr;
                       });
    if (!taken) {
      return usage_error(
          fmt::format("{}: '{}' has nothing to change: no experiment takes its {} from 'defaults'",
                      path, shorten(one_line(value), 60), key));
    }
    set_default(root, key, value);
    return {};
  };
  TRY(put("model", instead.model));
  return put("quant", instead.quant);
}

}  // namespace

Result<Queue> parse_queue(std::string_view text, const std::string& path,
                          const QueueOverrides& instead) {
  TRY_ASSIGN(YamlNode root, parse_yaml(text, path));
  TRY(put_instead(root, path, instead));
  const Fields fields(path, root, "");
  TRY(fields.check(kQueueKeys));
  Queue queue;
  queue.path = path;
  TRY_ASSIGN(queue.name, fields.required("name"));
  TRY_ASSIGN(const std::string runner, fields.text("runner"));
  if (!runner.empty()) queue.runner = runner;
  const bool programs = queue.runner == kCommandRunner;
  if (!programs && queue.runner != Queue().runner) {
    return fields.key_error("runner", fmt::format("'{}' is no runner: expected {} or {}", runner,
                                                  Queue().runner, kCommandRunner));
  }
  const YamlNode* defaults = fields.find("defaults");
  if (defaults != nullptr) TRY(Fields(path, *defaults, "defaults").check(default_keys(programs)));
  const YamlNode* list = fields.find("experiments");
  if (list == nullptr || list->kind != YamlNode::Kind::kList || list->items.empty()) {
    return fields.key_error("experiments", "'experiments' must be a list with at least one item");
  }
  std::set<std::string> ids;
  for (const YamlNode& item : list->items) {
    TRY_ASSIGN(const Experiment first, read_experiment(path, item, defaults, programs));
    TRY_ASSIGN(std::vector<Experiment> arms, each_arm(path, item, first));
    for (Experiment& experiment : arms) {
      if (!ids.insert(experiment.id).second) {
        return yaml_error(path, item.line, fmt::format("two experiments '{}'", experiment.id));
      }
      queue.experiments.push_back(std::move(experiment));
    }
  }
  return queue;
}

bool names_prompt_file(std::string_view prompt) {
  return prompt.starts_with("prompts/") && prompt.find_first_of(" \t\n") == std::string_view::npos;
}

Result<Queue> load_queue(const std::string& path, const QueueOverrides& instead) {
  TRY_ASSIGN(const std::string text, read_small_file(path, kMaximumQueueBytes));
  return parse_queue(text, path, instead);
}

}  // namespace reckon::experiment
