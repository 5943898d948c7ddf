// `reckon check-oracle`: a checkpoint against recorded reference results.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "engine/oracle.h"

namespace reckon::cli {
namespace {

using engine::OracleMeasure;
using engine::OracleReport;

struct OracleOptions {
  std::string folder;
  std::string backend = "cpu";
  std::string numerics;  // "": reference, or exact where weights are packed
  QuantOptions quant;
  std::vector<std::string> sets;
  bool json = false;
};

Result<kernels::SwitchSet> oracle_switches(const OracleOptions& options) {
  kernels::SwitchSet switches;
  if (options.numerics == "reference") TRY(switches.set("numerics", "reference"));
  if (options.numerics == "exact") TRY(switches.set("prefill.numerics", "exact"));
  for (const std::string& assignment : options.sets) TRY(switches.set_assignment(assignment));
  return switches;
}

nlohmann::json to_json(const OracleReport& report, const OracleOptions& options) {
  const bool absolute = report.tolerance.measure == OracleMeasure::kAbsolute;
  nlohmann::json json = {{"folder", options.folder},
                         {"backend", options.backend},
                         {"numerics", options.numerics},
                         {"passed", report.passed},
                         {"prompts", report.prompts},
                         {"logit_rows", report.logit_rows},
                         {"hidden_rows", report.hidden_rows},
                         {"greedy_tokens", report.greedy_tokens},
                         {"greedy_equal", report.greedy_equal},
                         {"selections", report.selections},
                         {"selection_flips", report.selection_flips},
                         {"draft_rows", report.draft_rows},
                         {"drafts", report.drafts},
                         {"drafts_equal", report.drafts_equal},
                         {"largest_logit_difference", report.largest_logit_difference},
                         {"largest_logit_row_ratio", report.largest_logit_row_ratio},
                         {"largest_hidden_difference", report.largest_hidden_difference},
                         {"largest_hidden_row_ratio", report.largest_hidden_row_ratio},
                         {"largest_draft_difference", report.largest_draft_difference},
                         {"largest_draft_row_ratio", report.largest_draft_row_ratio},
                         {"tolerance",
                          {{"measure", absolute ? "absolute" : "row-norm"},
                           {"limit", report.tolerance.limit},
                           {"greedy_margin", report.tolerance.greedy_margin}}},
                         {"first_failure", nullptr}};
  if (report.first_failure) {
    const engine::OracleMismatch& mismatch = *report.first_failure;
    json["first_failure"] = {{"what", mismatch.what},
                             {"prompt", mismatch.prompt},
                             {"row", mismatch.row},
                             {"column", mismatch.column},
                             {"got", mismatch.got},
                             {"expected", mismatch.expected},
                             {"difference", mismatch.difference},
                             {"text", mismatch_text(mismatch)}};
  }
  return json;
}

std::string last_line(const OracleReport& report) {
  const bool absolute = report.tolerance.measure == OracleMeasure::kAbsolute;
  if (!report.passed) {
    if (!report.first_failure) return "fail: nothing was compared";
    const engine::OracleMismatch& mismatch = *report.first_failure;
    std::string text = fmt::format("fail: {}", mismatch_text(mismatch));
    if (mismatch.difference > 0) {
      text += fmt::format("; {} {:.2e}, limit {:.0e}", absolute ? "difference" : "row ratio",
                          mismatch.difference, report.tolerance.limit);
    }
    return text;
  }
  const double logits = absolute ? report.largest_logit_difference : report.largest_logit_row_ratio;
  const double hidden =
      absolute ? report.largest_hidden_difference : report.largest_hidden_row_ratio;
  std::string text = fmt::format(
      "pass: largest {} {:.2e} in {}, {:.2e} in {} (limit {:.0e}); {} of {} greedy tokens equal",
      absolute ? "difference" : "row ratio", logits, counted(report.logit_rows, "logit row"),
      hidden, counted(report.hidden_rows, "hidden row"), report.tolerance.limit,
      report.greedy_equal, report.greedy_tokens);
  if (report.draft_rows > 0) {
    text += fmt::format("; {:.2e} in {} of the draft head, {} of {} drafts equal",
                        absolute ? report.largest_draft_difference : report.largest_draft_row_ratio,
                        counted(report.draft_rows, "row"), report.drafts_equal, report.drafts);
  }
  if (report.selections > 0) {
    text += fmt::format("; experts forced, {} of {} selections flip without",
                        report.selection_flips, report.selections);
  }
  return text;
}

constexpr models::BuildOptions kBuild{.draft_head = true};

Result<ExitCode> check(OracleOptions options) {
  if (options.numerics.empty()) {
    options.numerics = options.quant.scheme == "none" ? "reference" : "exact";
  }
  engine::SessionOptions session;
  TRY_ASSIGN(session.switches, oracle_switches(options));
  TRY_ASSIGN(const auto model, open_model(options.folder, options.quant, options.backend, kBuild));
  std::unique_ptr<engine::LoadedModel> on_cpu;
  if (model->is_packed() && options.backend != "cpu") {
    TRY_ASSIGN(on_cpu, open_model(options.folder, options.quant, "cpu", kBuild));
  }
  TRY_ASSIGN(const OracleReport report,
             engine::check_oracle(*model, session, on_cpu ? on_cpu.get() : model.get()));
  if (options.json) {
    print_json(to_json(report, options));
  } else {
    fmt::print("{} ({}): {}, {} numerics on {}\n", options.folder, model->model().info().family,
               counted(report.prompts, "prompt"), options.numerics, options.backend);
    fmt::print("{}\n", last_line(report));
  }
  return report.passed ? kExitDone : kExitCheckFailed;
}

}  // namespace

void add_oracle_command(Cli& cli) {
  CLI::App* command =
      cli.app.add_subcommand("check-oracle", "compare a checkpoint with recorded results");
  auto options = std::make_shared<OracleOptions>();
  command
      ->add_option("dir", options->folder,
                   "a folder with oracle.safetensors, or a GGUF file beside its results")
      ->required()
      ->type_name("DIR");
  add_backend_option(*command, options->backend);
  command
      ->add_option("--numerics", options->numerics,
                   "reference, exact or fast (reference; exact with --quant)")
      ->check(one_of({"reference", "exact", "fast"}));
  add_quant_options(*command, options->quant);
  command->add_option("--set", options->sets, "set a switch (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "Exit code 4, and the first failing prompt, row and value, where the results differ.\n"
      "Examples:\n"
      "  reckon check-oracle build/release/golden/oracle/llama-s0\n"
      "  reckon check-oracle build/release/golden/oracle/qwen3-s0 --numerics exact --json");
  command->callback([&cli, options] { cli.action = [options] { return check(*options); }; });
}

}  // namespace reckon::cli
