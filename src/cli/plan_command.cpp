// `reckon plan`: what will be allocated, byte for byte, and which kernel every shape gets and why.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/table.h"
#include "engine/memory_plan.h"
#include "kernels/trace.h"

namespace reckon::cli {
namespace {

using engine::PlannedCall;
using engine::SessionPlan;

constexpr int64_t kDefaultContext = 4096;

struct PlanOptions {
  EngineOptions engine;
  int64_t prompt = 0;
  std::vector<std::string> diff;
  bool json = false;
};

// A plan with the planner that its choices live in.
struct Planned {
  std::unique_ptr<kernels::Planner> planner;
  SessionPlan plan;
};

Result<Planned> make_plan(const engine::LoadedModel& model, const kernels::SwitchSet& switches,
                          const PlanOptions& options) {
  Planned planned;
  planned.planner = std::make_unique<kernels::Planner>(switches, model.backend().device(),
                                                       model.backend().variants());
  engine::SessionShape shape;
  shape.capacity = options.engine.context;
  if (shape.capacity == 0 && options.prompt > kDefaultContext) shape.capacity = options.prompt;
  engine::PassKinds passes;
  if (options.prompt != 0) {
    if (shape.capacity != 0 && options.prompt > shape.capacity) {
      return usage_error(
          fmt::format("--prompt {} does not fit in --ctx {}", options.prompt, shape.capacity));
    }
    passes.prefill_rows = engine::chunk_rows(options.prompt, planned.planner->prefill_chunk());
  }
  TRY_ASSIGN(planned.plan,
             engine::plan_session(model.model(), *planned.planner, shape, passes, model.backend()));
  return planned;
}

nlohmann::json to_json(const kernels::DispatchRow& row) {
  return {{"phase", row.phase},     {"op", row.op},         {"shape", row.shape},
          {"variant", row.variant}, {"params", row.params}, {"source_hash", row.source_hash}};
}

nlohmann::json to_json(const PlannedCall& planned) {
  nlohmann::json json = to_json(kernels::predicted_row(planned.call, *planned.choice));
  json["calls"] = planned.count;
  json["numerics"] = kernels::numerics_name(planned.choice->variant->numerics);
  json["scratch_bytes"] = planned.choice->scratch_bytes;
  json["layout"] = kernels::layout_name(planned.choice->layout);
  json["rule"] = planned.choice->rule;
  json["reason"] = planned.choice->reason;
  if (!planned.choice->extrapolated.empty()) {
    json["extrapolated"] = planned.choice->extrapolated;
  }
  return json;
}

nlohmann::json to_json(const SessionPlan& plan, const engine::Budget& budget) {
  nlohmann::json terms = nlohmann::json::array();
  for (const MemoryTerm& term : plan.terms) {
    terms.push_back(
        {{"tag", memory_tag_name(term.tag)}, {"name", term.name}, {"bytes", term.bytes}});
  }
  nlohmann::json calls = nlohmann::json::array();
  for (const PlannedCall& planned : plan.calls) calls.push_back(to_json(planned));
  return {{"context", plan.shape.capacity},
          {"chunk", plan.shape.chunk},
          {"memory", terms},
          {"total_bytes", plan.total_bytes},
          {"budget_bytes", budget.bytes},
          {"budget_source", budget.source},
          {"fits", plan.total_bytes <= budget.bytes},
          {"calls", calls}};
}

std::string memory_text(const SessionPlan& plan, const engine::Budget& budget) {
  Table table({{"for"}, {"what"}, {"bytes", Align::kRight}, {"rounded", Align::kRight}});
  for (const MemoryTerm& term : plan.terms) {
    table.add({std::string(memory_tag_name(term.tag)), term.name, std::to_string(term.bytes),
               format_bytes_short(term.bytes)});
  }
  table.add({"total", "", std::to_string(plan.total_bytes), format_bytes_short(plan.total_bytes)});
  return fmt::format("Memory for a context of {}, prefill in chunks of {}:\n{}budget: {} ({})\n",
                     counted(plan.shape.capacity, "token"), plan.shape.chunk, table.text(),
                     format_bytes(budget.bytes), budget.source);
}

std::string kernel_name(const kernels::DispatchRow& row) {
  return row.params.empty() ? row.variant : fmt::format("{} {}", row.variant, row.params);
}

std::string kernels_text(const SessionPlan& plan) {
  Table table({{"phase"},
               {"op"},
               {"shape"},
               {"calls", Align::kRight},
               {"kernel"},
               {"numerics"},
               {"scratch", Align::kRight},
               {"why", Align::kRight}});
  std::vector<std::string> reasons;
  for (const PlannedCall& planned : plan.calls) {
    const kernels::DispatchRow row = kernels::predicted_row(planned.call, *planned.choice);
    auto reason = std::find(reasons.begin(), reasons.end(), planned.choice->reason);
    if (reason == reasons.end()) {
      reasons.push_back(planned.choice->reason);
      reason = reasons.end() - 1;
    }
    table.add({row.phase, row.op, row.shape, std::to_string(planned.count), kernel_name(row),
               std::string(kernels::numerics_name(planned.choice->variant->numerics)),
               format_bytes_short(planned.choice->scratch_bytes),
               fmt::format("[{}]", reason - reasons.begin() + 1)});
  }
  std::string text = "Kernels of each phase, and the scratch memory of one call:\n" + table.text();
  for (size_t i = 0; i < reasons.size(); ++i) {
    text += wrapped(fmt::format("[{}] {}", i + 1, reasons[i]), 5) + '\n';
  }
  return text;
}

std::vector<kernels::DispatchRow> rows_of(const SessionPlan& plan) {
  std::vector<kernels::DispatchRow> rows;
  for (const PlannedCall& planned : plan.calls) {
    rows.push_back(kernels::predicted_row(planned.call, *planned.choice));
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

struct PlanDifference {
  std::vector<kernels::DispatchRow> only_base;
  std::vector<kernels::DispatchRow> only_arm;
};

PlanDifference compare(const SessionPlan& base, const SessionPlan& arm) {
  const auto base_rows = rows_of(base);
  const auto arm_rows = rows_of(arm);
  PlanDifference difference;
  std::set_difference(base_rows.begin(), base_rows.end(), arm_rows.begin(), arm_rows.end(),
                      std::back_inserter(difference.only_base));
  std::set_difference(arm_rows.begin(), arm_rows.end(), base_rows.begin(), base_rows.end(),
                      std::back_inserter(difference.only_arm));
  return difference;
}

std::string difference_text(const PlanDifference& difference, const SessionPlan& base,
                            const SessionPlan& arm, const std::vector<std::string>& diff) {
  std::string text = fmt::format("with {}:\n", fmt::join(diff, ", "));
  if (difference.only_base.empty() && difference.only_arm.empty()) {
    text += "  no call would run other code: an experiment on this would be VOID\n";
  }
  const auto list = [&text](char mark, const std::vector<kernels::DispatchRow>& rows) {
    for (const kernels::DispatchRow& row : rows) {
      text += fmt::format("{} {:<8} {:<10} {:<26} {}\n", mark, row.phase, row.op, row.shape,
                          kernel_name(row));
    }
  };
  list('-', difference.only_base);
  list('+', difference.only_arm);
  const auto change =
      static_cast<int64_t>(arm.total_bytes) - static_cast<int64_t>(base.total_bytes);
  text += fmt::format("memory: {} -> {} ({}{})\n", format_bytes_short(base.total_bytes),
                      format_bytes_short(arm.total_bytes), change < 0 ? "-" : "+",
                      format_bytes_short(static_cast<uint64_t>(std::abs(change))));
  return text;
}

Result<ExitCode> show_difference(const engine::LoadedModel& model, const Planned& base,
                                 const kernels::SwitchSet& switches, const engine::Budget& budget,
                                 const PlanOptions& options) {
  kernels::SwitchSet changed = switches;
  for (const std::string& assignment : options.diff) TRY(changed.set_assignment(assignment));
  TRY_ASSIGN(const Planned arm, make_plan(model, changed, options));
  const PlanDifference difference = compare(base.plan, arm.plan);
  if (!options.json) {
    fmt::print("{}", difference_text(difference, base.plan, arm.plan, options.diff));
    return kExitDone;
  }
  nlohmann::json json = {{"base", to_json(base.plan, budget)},
                         {"arm", to_json(arm.plan, budget)},
                         {"only_base", nlohmann::json::array()},
                         {"only_arm", nlohmann::json::array()}};
  for (const auto& row : difference.only_base) json["only_base"].push_back(to_json(row));
  for (const auto& row : difference.only_arm) json["only_arm"].push_back(to_json(row));
  print_json(json);
  return kExitDone;
}

Result<ExitCode> run_plan(const PlanOptions& options) {
  TRY_ASSIGN(const kernels::SwitchSet switches, parse_switches(options.engine));
  TRY_ASSIGN(
      const auto model,
      open_model(options.engine, options.diff.empty() ? SessionsOf::kOne : SessionsOf::kMany));
  std::optional<std::string> limit;
  if (!options.engine.memory_limit.empty()) limit = options.engine.memory_limit;
  TRY_ASSIGN(const engine::Budget budget, engine::detect_budget(limit, 0, model->backend()));
  TRY_ASSIGN(const Planned planned, make_plan(*model, switches, options));
  if (!options.diff.empty()) return show_difference(*model, planned, switches, budget, options);
  if (options.json) {
    nlohmann::json json = to_json(planned.plan, budget);
    json["model_name"] = model->model().info().name;
    json["notes"] = model->notes();
    print_json(json);
  } else {
    print_notes(model->notes());
    const std::string& synthetic = model->checkpoint().display_name();
    if (!synthetic.empty()) fmt::print("model: {}\n", synthetic);
    fmt::print("{}\n{}", memory_text(planned.plan, budget), kernels_text(planned.plan));
  }
  TRY(engine::check_budget(model->model(), *planned.planner, planned.plan, budget,
                           model->backend()));
  return kExitDone;
}

}  // namespace

void add_plan_command(Cli& cli) {
  CLI::App* command = cli.app.add_subcommand(
      "plan", "show what would be allocated and which kernel runs what, and why");
  auto options = std::make_shared<PlanOptions>();
  add_engine_options(*command, options->engine);
  command->add_option("-p,--prompt", options->prompt, "plan for a prompt of N tokens")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command->add_option("--diff", options->diff, "show what these switches would change")
      ->type_name("KEY=VALUE");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Exit code 3 where the plan does not fit the memory.\n"
      "Examples:\n"
      "  reckon plan -m smollm2 --ctx 8192 --memory-limit 75%\n"
      "  reckon plan -m synth:llama-8b --quant q4 --ctx 32768\n"
      "  reckon plan -m tiny --prompt 512 --diff prefill.tile_order=band8");
  command->callback([&cli, options] { cli.action = [options] { return run_plan(*options); }; });
}

}  // namespace reckon::cli
