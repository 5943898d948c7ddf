#include "cli/ledger_consult.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "adapters/open.h"
#include "base/text.h"
#include "cli/ledger_access.h"
#include "cli/ledger_json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "experiment/prepare.h"
#include "formats/synthetic.h"
#include "kernels/switches.h"
#include "ledger/consult.h"

namespace reckon::cli {
namespace {

using experiment::Experiment;
using experiment::Prepared;
using experiment::Queue;
using ledger::Consultation;

constexpr size_t kNearShown = 5;               // --json has ledger::kNearest
constexpr const char* kQuestion = "question";  // the experiment that --switch describes
constexpr const char* kAnyPrompt = "Which kernel runs does not depend on the text.";
constexpr const char* kWorkloadGroup = "With --switch, and the defaults of a queue";

struct ConsultOptions {
  std::string file;
  std::string switch_arms;  // key=base,arm
  std::string model;
  std::vector<std::string> sets;
  std::string phase = "decode";
  std::string op;
  std::string reach_phase;
  std::string metric;
  std::string prompt = kAnyPrompt;
  std::string prompt_file;
  int64_t prompt_tokens = 0;
  std::optional<int64_t> generate;  // 32 for decode, none for prefill
  int64_t chunk = 0;
  int64_t context = 0;
  int pairs = Experiment().pairs;
  std::string memory_limit;
  std::string claim;
  std::string
      misplaced;  // an option that describes a workload beside a queue, which does so itself
  bool json = false;
};

struct Answer {
  Prepared prepared;
  Consultation consultation;
  bool foreign = false;  // about a switch that this version does not have
};

Status parse_switch_arms(const std::string& text, experiment::SwitchPair& pair) {
  const size_t equals = text.find('=');
  const size_t comma = text.find(',', equals);
  if (equals == 0 || equals == std::string::npos || comma == std::string::npos) {
    return usage_error(fmt::format("--switch {}: expected KEY=BASE,ARM", text));
  }
  pair = {text.substr(0, equals), text.substr(equals + 1, comma - equals - 1),
          text.substr(comma + 1)};
  return {};
}

Status parse_set(const std::string& text, experiment::SwitchValues& set) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return usage_error(fmt::format("--set {}: expected KEY=VALUE", text));
  }
  set[text.substr(0, equals)] = text.substr(equals + 1);
  return {};
}

// As a queue reads `prompt` and `prompt_file`, but from the working folder.
Result<std::string> prompt_of(const ConsultOptions& options) {
  if (!options.prompt_file.empty()) return read_text(options.prompt_file);
  if (options.prompt == kAnyPrompt && is_synthetic(options.model)) return std::string();
  if (experiment::names_prompt_file(options.prompt)) return read_text(options.prompt);
  return options.prompt;
}

Status add_sets(const ConsultOptions& options, Experiment& experiment) {
  for (const std::string& set : options.sets) TRY(parse_set(set, experiment.set));
  if (options.chunk > 0) experiment.set["prefill.chunk"] = std::to_string(options.chunk);
  if (experiment.set.contains(experiment.switch_pair.key)) {
    return usage_error(
        fmt::format("'{}' is the switch between the arms", experiment.switch_pair.key));
  }
  return {};
}

// The one experiment that the options describe, with the defaults of a queue.
Result<Queue> queue_of_options(const ConsultOptions& options) {
  if (options.switch_arms.empty() || options.model.empty()) {
    return usage_error("consult what? Give a queue file, or --switch KEY=BASE,ARM and --model");
  }
  Experiment experiment;
  experiment.id = kQuestion;
  TRY(parse_switch_arms(options.switch_arms, experiment.switch_pair));
  TRY(add_sets(options, experiment));
  experiment.reach = {options.op,
                      options.reach_phase.empty() ? options.phase : options.reach_phase};
  experiment.pairs = options.pairs;
  if (!options.memory_limit.empty()) {
    TRY_ASSIGN(experiment.memory_limit, experiment::parse_memory_limit(options.memory_limit));
  }
  if (!options.claim.empty()) {
    TRY_ASSIGN(experiment.claim, experiment::parse_claim(options.claim));
  }
  experiment::Workload& workload = experiment.workload;
  workload.model = options.model;
  workload.phase = options.phase;
  workload.metric = options.metric.empty() ? options.phase + "_tok_per_s" : options.metric;
  TRY_ASSIGN(workload.prompt, prompt_of(options));
  workload.prompt_tokens = options.prompt_tokens;
  workload.generate_tokens = options.generate.value_or(options.phase == "decode" ? 32 : 0);
  workload.context = options.context;
  Queue queue;
  queue.path = "command line";
  queue.experiments.push_back(std::move(experiment));
  return queue;
}

// Without the place in a file that does not exist.
Error plain_error(Error error) {
  const std::string place = fmt::format("experiment '{}': ", kQuestion);
  const size_t found = error.message.find(place);
  if (found != std::string::npos) error.message.erase(0, found + place.size());
  return error;
}

bool has_switch(const std::string& key) {
  const auto& known = kernels::switch_registry();
  return std::any_of(known.begin(), known.end(),
                     [&](const kernels::SwitchInfo& info) { return info.key == key; });
}

// Others may have measured a switch that this version does not have. What would be measured here is
// described with a switch of every version in its place. Unset where the ledger has no such switch.
Result<std::optional<Answer>> ask_of_foreign_switch(const Queue& queue, Experiment experiment,
                                                    experiment::Runner& runner,
                                                    ledger::Catalog& catalog) {
  const experiment::SwitchPair asked = experiment.switch_pair;
  experiment.switch_pair = {"numerics", "auto", "reference"};
  auto prepared = experiment::prepare(queue.path, experiment, runner);
  if (!prepared.ok()) return plain_error(prepared.error());
  Answer answer;
  answer.foreign = true;
  answer.prepared = std::move(prepared).value();
  answer.prepared.experiment.switch_pair = asked;
  ledger::Query query;
  query.scope = answer.prepared.scope;
  query.scope.switch_key = asked.key;
  query.scope.base_value = asked.base;
  query.scope.arm_value = asked.arm;
  query.facts = answer.prepared.facts;
  answer.prepared.scope = query.scope;
  TRY_ASSIGN(answer.consultation, catalog.consult(query));
  if (answer.consultation.near_count == 0) return std::optional<Answer>();
  return std::optional(std::move(answer));
}

Result<Answer> ask(const Queue& queue, const Experiment& experiment, experiment::Runner& runner,
                   ledger::Catalog& catalog) {
  // The switches of a program are its own affair.
  if (!experiment.workload.command && !has_switch(experiment.switch_pair.key)) {
    TRY_ASSIGN(std::optional<Answer> foreign,
               ask_of_foreign_switch(queue, experiment, runner, catalog));
    if (foreign) return std::move(*foreign);
  }
  Answer answer;
  auto prepared = experiment::prepare(queue.path, experiment, runner);
  if (!prepared.ok()) return plain_error(prepared.error());
  answer.prepared = std::move(prepared).value();
  ledger::Query query;
  query.scope = answer.prepared.scope;
  query.claim = experiment.claim;
  query.sources = answer.prepared.sources;
  query.facts = answer.prepared.facts;
  TRY_ASSIGN(answer.consultation, catalog.consult(query));
  return answer;
}

std::string answer_text(const Answer& answer) {
  const Consultation& found = answer.consultation;
  Page page;
  const experiment::SwitchPair& pair = answer.prepared.experiment.switch_pair;
  const std::string arms = fmt::format("{} {} -> {}", pair.key, pair.base, pair.arm);
  const std::string& id = answer.prepared.experiment.id;
  page.title(id == kQuestion ? arms : fmt::format("{}: {}", id, arms));
  if (found.block) page.line("  known", found.block->text);
  if (found.join) page.line("  joins", found.join->text);
  for (const auto& finding : found.allowed) page.line("  allowed", finding.text);
  for (const auto& finding : found.stale) page.line("  stale", finding.text);
  for (const auto& finding : found.offers) page.line("  offer", finding.text);
  if (!found.block && !found.join && found.allowed.empty() && found.stale.empty()) {
    page.line("  unknown", answer.foreign ? "this version has no such switch to measure"
                                          : "no entry of this scope: worth measuring");
  }
  const size_t shown = std::min(found.near.size(), kNearShown);
  for (size_t i = 0; i < shown; ++i) page.line("  near", ledger::near_text(found.near[i]));
  if (found.near_count > shown) {
    page.line("", fmt::format("and {} more", found.near_count - shown));
  }
  return page.text();
}

// All experiments of a queue: the answers, and those that get none.
struct Asked {
  std::vector<Answer> answers;
  std::vector<std::string> floors;
  std::vector<std::pair<std::string, std::string>> unsupported;  // by this device, and why
};

Result<Asked> ask_all(const Queue& queue, experiment::Runner& runner, ledger::Catalog& catalog) {
  Asked asked;
  for (const Experiment& experiment : queue.experiments) {
    if (experiment.is_floor()) {
      asked.floors.push_back(experiment.id);
      continue;
    }
    Result<Answer> answer = ask(queue, experiment, runner, catalog);
    if (answer.ok()) {
      asked.answers.push_back(std::move(answer).value());
      continue;
    }
    // One of a queue, as a run of it would refuse that one alone.
    if (answer.error().kind != ErrorKind::kUnsupported || experiment.id == kQuestion) {
      return answer.error();
    }
    asked.unsupported.emplace_back(experiment.id, answer.error().message);
  }
  return asked;
}

void print_unasked(const Asked& asked) {
  for (const auto& [id, why] : asked.unsupported) {
    fmt::print("{}\n", wrapped(fmt::format("not asked: {}: {}", id, why), 2));
  }
  if (asked.floors.empty()) return;
  fmt::print("{}\n", wrapped(fmt::format("not asked: {} (kind: aa): identical arms never get a "
                                         "verdict that could be known",
                                         join(asked.floors, ", ")),
                             2));
}

nlohmann::json unsupported_json(const Asked& asked) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [id, why] : asked.unsupported) {
    list.push_back({{"experiment", id}, {"text", why}});
  }
  return list;
}

bool known_already(const std::vector<Answer>& answers) {
  return !answers.empty() && std::all_of(answers.begin(), answers.end(), [](const Answer& answer) {
    return answer.consultation.block.has_value();
  });
}

Result<ExitCode> consult(const Cli& cli, const ConsultOptions& options) {
  Queue queue;
  if (!options.misplaced.empty()) {
    return usage_error(options.misplaced + " goes with --switch; a queue says it itself");
  }
  if (options.file.empty()) {
    TRY_ASSIGN(queue, queue_of_options(options));
  } else {
    TRY_ASSIGN(queue, experiment::load_queue(options.file));
  }
  TRY_ASSIGN(const auto runner, adapters::open_runner(queue.runner));
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const auto catalog, read_catalog(*store));
  TRY_ASSIGN(const Asked asked, ask_all(queue, *runner, *catalog));
  nlohmann::json all = nlohmann::json::array();
  for (const Answer& answer : asked.answers) {
    if (!options.json) fmt::print("{}", answer_text(answer));
    nlohmann::json json = consultation_json(answer.consultation);
    json["experiment"] = answer.prepared.experiment.id;
    json["scope"] = ledger::scope_to_json(answer.prepared.scope);
    all.push_back(std::move(json));
  }
  const bool known = known_already(asked.answers);
  if (options.json) {
    print_json({{"ledger", store->location()},
                {"known", known},
                {"answers", std::move(all)},
                {"skipped", asked.floors},
                {"unsupported", unsupported_json(asked)}});
  } else {
    print_unasked(asked);
  }
  return known ? kExitRefused : kExitDone;
}

// All that a queue's workload and reach say, for one switch.
void add_workload(CLI::App& command, ConsultOptions& options) {
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return command.add_option(name, value, help)->type_name(type)->group(kWorkloadGroup);
  };
  const auto count = whole_number(1, kMostTokens);
  add("--phase", options.phase, "prefill or decode, where the metric is read (decode)", "PHASE")
      ->check(one_of({"prefill", "decode"}));
  add("--metric", options.metric, "of the phase (PHASE_tok_per_s)", "METRIC");
  CLI::Option* prompt = add("--prompt", options.prompt,
                            "the prompt's text; a file where it begins with prompts/", "TEXT");
  add("--prompt-file", options.prompt_file, "the file that holds it", "FILE")->excludes(prompt);
  add("--prompt-tokens", options.prompt_tokens, "cut or repeat it to N tokens", "N")->check(count);
  add("--generate", options.generate, "greedy tokens after it (decode 32, prefill none)", "N")
      ->check(whole_number(0, kMostTokens));
  add("--context", options.context, "positions (just enough for the workload)", "N")->check(count);
  add("--chunk", options.chunk, "prefill chunk (short for --set prefill.chunk=C)", "C")
      ->check(count);
  add("--set", options.sets, "a switch of both arms (repeatable)", "KEY=VALUE")
      ->allow_extra_args(false);
  add("--pairs", options.pairs, "counted pairs a round: part of the workload class (6)", "N")
      ->check(whole_number(1, 1000));
  add("--op", options.op, "the op that the arms must differ in (any)", "OP");
  add("--reach-phase", options.reach_phase, "the phase that they must differ in (--phase)", "PHASE")
      ->check(one_of({"prefill", "decode"}));
  add("--memory-limit", options.memory_limit, "of both arms: plan+32MiB, 8GiB or 75%", "SIZE");
  add("--claim", options.claim, "the least gain worth having: +2%", "SHARE");
}

}  // namespace

void add_ledger_consult(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand(
      "consult", "does the ledger already know? (exit code 3: all that is asked)");
  auto options = std::make_shared<ConsultOptions>();
  CLI::Option* file =
      command->add_option("queue", options->file, "a queue file")->type_name("QUEUE");
  command->add_option("--switch", options->switch_arms, "instead of a queue: one switch, two arms")
      ->type_name("KEY=BASE,ARM")
      ->excludes(file);
  command->add_option("-m,--model", options->model, "the model")
      ->type_name("MODEL")
      ->excludes(file);
  add_workload(*command, *options);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "An entry answers only where all of this is the same, but for the claim, which is compared.\n"
      "Rounds, warm-up pairs, the time-out and the wording of the idea do not matter.\n"
      "Examples:\n"
      "  reckon ledger consult queues/first.yaml\n"
      "  reckon ledger consult --switch prefill.tile_order=row,band8 -m tiny --phase prefill "
      "\\\n"
      "    --op matmul --prompt-file prompts/prose.txt --prompt-tokens 16");
  command->callback([&cli, command, options] {
    for (const CLI::Option* option : command->get_options()) {
      const bool workload = option->get_group() == kWorkloadGroup && option->count() > 0;
      if (workload && !options->file.empty()) options->misplaced = option->get_name();
    }
    cli.action = [&cli, options] { return consult(cli, *options); };
  });
}

}  // namespace reckon::cli
