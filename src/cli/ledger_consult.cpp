#include "cli/ledger_consult.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "adapters/open.h"
#include "base/text.h"
#include "cli/ledger_access.h"
#include "cli/ledger_json.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "experiment/prepare.h"
#include "ledger/consult.h"

namespace reckon::cli {
namespace {

using experiment::Experiment;
using experiment::Prepared;
using experiment::Queue;
using ledger::Consultation;

constexpr size_t kNearShown = 5;               // --json has them all
constexpr const char* kQuestion = "question";  // the experiment that --switch describes

struct ConsultOptions {
  std::string file;
  std::string switch_arms;  // key=base,arm
  std::string model;
  std::vector<std::string> sets;
  std::string phase = "decode";
  std::string op;
  std::string metric;
  std::string prompt_file;
  int64_t prompt_tokens = 0;
  int64_t generate = 32;
  std::string claim;
  bool json = false;
};

struct Answer {
  Prepared prepared;
  Consultation consultation;
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

// The one experiment that the options describe, with the defaults of a queue.
Result<Queue> queue_of_options(const ConsultOptions& options) {
  if (options.switch_arms.empty() || options.model.empty()) {
    return usage_error("consult what? Give a queue file, or --switch KEY=BASE,ARM and --model");
  }
  Experiment experiment;
  experiment.id = kQuestion;
  TRY(parse_switch_arms(options.switch_arms, experiment.switch_pair));
  for (const std::string& set : options.sets) TRY(parse_set(set, experiment.set));
  experiment.reach = {options.op, options.phase};
  if (!options.claim.empty()) {
    TRY_ASSIGN(experiment.claim, experiment::parse_claim(options.claim));
  }
  experiment::Workload& workload = experiment.workload;
  workload.model = options.model;
  workload.phase = options.phase;
  workload.metric = options.metric.empty() ? options.phase + "_tok_per_s" : options.metric;
  workload.prompt = "Which kernel runs does not depend on the text.";
  if (!options.prompt_file.empty()) {
    TRY_ASSIGN(workload.prompt, read_text(options.prompt_file));
  }
  workload.prompt_tokens = options.prompt_tokens;
  workload.generate_tokens = options.phase == "decode" ? options.generate : 0;
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

Result<Answer> ask(const Queue& queue, const Experiment& experiment, experiment::Runner& runner,
                   const ledger::Ledger& ledger) {
  Answer answer;
  auto prepared = experiment::prepare(queue.path, experiment, runner);
  if (!prepared.ok()) return plain_error(prepared.error());
  answer.prepared = std::move(prepared).value();
  ledger::Query query;
  query.scope = answer.prepared.scope;
  query.claim = experiment.claim;
  query.sources = answer.prepared.sources;
  answer.consultation = ledger::consult(ledger.entries, query);
  return answer;
}

std::string differing(const std::string& field, const std::string& there, const std::string& here) {
  return fmt::format("{} {} there, {} here", field, there.empty() ? "unset" : there,
                     here.empty() ? "unset" : here);
}

// A workload class is "key=value" words, most of which are equal.
std::string differing_words(const ledger::ScopeDifference& difference) {
  const std::vector<std::string> there = split(difference.a, ' ');
  const std::vector<std::string> here = split(difference.b, ' ');
  if (there.size() != here.size()) {
    return differing(difference.field, difference.a, difference.b);
  }
  std::vector<std::string> parts;
  for (size_t i = 0; i < there.size(); ++i) {
    const size_t equals = there[i].find('=');
    if (there[i] == here[i]) continue;
    parts.push_back(differing(there[i].substr(0, equals), there[i].substr(equals + 1),
                              here[i].substr(here[i].find('=') + 1)));
  }
  return join(parts, "; ");
}

std::string near_line(const ledger::NearFinding& near) {
  std::vector<std::string> parts;
  for (const ledger::ScopeDifference& difference : near.differences) {
    parts.push_back(difference.field == "workload_class"
                        ? differing_words(difference)
                        : differing(difference.field, difference.a, difference.b));
  }
  return fmt::format("{} ({})", near.text, join(parts, "; "));
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
    page.line("  unknown", "no entry of this scope: worth measuring");
  }
  for (size_t i = 0; i < std::min(found.near.size(), kNearShown); ++i) {
    page.line("  near", near_line(found.near[i]));
  }
  if (found.near.size() > kNearShown) {
    page.line("", fmt::format("and {} more", found.near.size() - kNearShown));
  }
  return page.text();
}

bool known_already(const std::vector<Answer>& answers) {
  return !answers.empty() && std::all_of(answers.begin(), answers.end(), [](const Answer& answer) {
    return answer.consultation.block.has_value();
  });
}

Result<ExitCode> consult(const Cli& cli, const ConsultOptions& options) {
  Queue queue;
  if (options.file.empty()) {
    TRY_ASSIGN(queue, queue_of_options(options));
  } else {
    TRY_ASSIGN(queue, experiment::load_queue(options.file));
  }
  TRY_ASSIGN(const auto runner, adapters::open_runner("reckon"));
  TRY_ASSIGN(const auto store, open_ledger(cli));
  TRY_ASSIGN(const ledger::Ledger ledger, read_ledger(*store));
  std::vector<Answer> answers;
  for (const Experiment& experiment : queue.experiments) {
    if (experiment.is_floor()) continue;  // never a verdict, so nothing to know
    TRY_ASSIGN(Answer answer, ask(queue, experiment, *runner, ledger));
    answers.push_back(std::move(answer));
  }
  nlohmann::json all = nlohmann::json::array();
  for (const Answer& answer : answers) {
    if (!options.json) fmt::print("{}", answer_text(answer));
    nlohmann::json json = consultation_json(answer.consultation);
    json["experiment"] = answer.prepared.experiment.id;
    json["scope"] = ledger::scope_to_json(answer.prepared.scope);
    all.push_back(std::move(json));
  }
  const bool known = known_already(answers);
  if (options.json) {
    print_json({{"ledger", store->location()}, {"known", known}, {"answers", std::move(all)}});
  }
  return known ? kExitRefused : kExitDone;
}

}  // namespace

void add_ledger_consult(Cli& cli, CLI::App& group) {
  CLI::App* command = group.add_subcommand(
      "consult", "does the ledger already know? Exit code 3 where it knows all that is asked");
  auto options = std::make_shared<ConsultOptions>();
  CLI::Option* file =
      command->add_option("queue", options->file, "a queue file")->type_name("QUEUE");
  command->add_option("--switch", options->switch_arms, "instead of a queue: one switch, two arms")
      ->type_name("KEY=BASE,ARM")
      ->excludes(file);
  command->add_option("-m,--model", options->model, "with --switch: the model")
      ->type_name("MODEL")
      ->excludes(file);
  command->add_option("--set", options->sets, "with --switch: a switch of both arms (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--phase", options->phase, "prefill or decode (decode)")
      ->check(one_of({"prefill", "decode"}));
  command->add_option("--op", options->op, "the op that the arms must differ in")->type_name("OP");
  command->add_option("--metric", options->metric, "of the phase (PHASE_tok_per_s)")
      ->type_name("METRIC");
  command->add_option("--prompt", options->prompt_file, "file of the workload's prompt")
      ->type_name("FILE");
  command->add_option("--prompt-tokens", options->prompt_tokens, "cut or repeat it to N tokens")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command->add_option("--generate", options->generate, "tokens to decode (32)")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command->add_option("--claim", options->claim, "the least gain worth having: +2%")
      ->type_name("SHARE");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Examples:\n"
      "  reckon ledger consult queues/first.yaml\n"
      "  reckon ledger consult --switch prefill.tile_order=row,band8 -m smollm2 --phase prefill");
  command->callback(
      [&cli, options] { cli.action = [&cli, options] { return consult(cli, *options); }; });
}

}  // namespace reckon::cli
