// `reckon tune`: sweeps the tiles of a model's prefill matmuls and writes the rules that follow.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "adapters/environment.h"
#include "base/build_info.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/ledger_access.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/roofline.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/tune_report.h"
#include "cli/tune_rules.h"
#include "cli/tune_sweep.h"
#include "formats/new_file.h"
#include "kernels/variants.h"
#include "ledger/record.h"
#include "ledger/writer.h"

namespace reckon::cli {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

struct Options {
  EngineOptions engine;
  TuneOptions tune;
  std::string op = "matmul";
  std::string output;  // "": nothing is written
  bool no_record = false;
  bool json = false;
};

// Where the rules go: a draft that gets its name last, and the name that the rules get.
struct Target {
  NewFile draft;
  std::string name;
};

// Before long work: is the name one that rules may have, and can the file be written?
Result<std::unique_ptr<Target>> open_target(const Options& options) {
  const std::filesystem::path path(options.output);
  const std::string name = path.stem().string();
  const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (path.extension() != ".yaml" || !plain) {
    return usage_error(
        fmt::format("-o {}: expected NAME.yaml of letters, digits, - and _", options.output));
  }
  std::unique_ptr<Target> target(new Target{NewFile::beside(options.output), name});
  TRY(target->draft.write("#"));
  return target;
}

ledger::Scope scope_of(const engine::LoadedModel& model, const kernels::TileRules& rules,
                       const Options& options) {
  const kernels::Device& device = model.backend().device();
  ledger::Scope scope;
  scope.switch_key = "prefill.tile_rules";
  scope.base_value = "none";
  scope.arm_value = rules.name;
  scope.device.vendor = rules.device.vendor;
  scope.device.isa = rules.device.isa;
  scope.device.units = rules.device.units;
  scope.device.memory_gib = static_cast<int64_t>((device.memory_bytes + kGib / 2) / kGib);
  scope.backend = device.backend;
  scope.model_family = model.model().info().family;
  scope.shape_hash = model.checkpoint().shape_hash();
  scope.model_hash = model.checkpoint().content_hash();
  scope.weight_format = model.weight_format();
  scope.metric = "ms_per_call";
  scope.workload_class = fmt::format("tune op={} chunks={} pairs={}", options.op,
                                     fmt::join(options.tune.chunks, ","), options.tune.pairs);
  scope.reach = options.op + "/prefill";
  return scope;
}

kernels::TileRules rules_of(const engine::LoadedModel& model, const TuneResult& result,
                            const Options& options, const std::string& name) {
  kernels::TileRules rules;
  rules.name = name;
  rules.date = utc_timestamp().substr(0, 10);
  rules.ledger = "unmeasured";
  rules.device = kernels::tile_device(model.backend().device(), result.sweep.threads);
  rules.chunks = options.tune.chunks;
  for (const TunedCell& cell : result.sweep.cells) {
    const kernels::TunedShape shape{cell.call.op, cell.call.weight_type, cell.call.n, cell.call.k};
    if (std::ranges::find(rules.shapes, shape) == rules.shapes.end()) {
      rules.shapes.push_back(shape);
    }
  }
  rules.rules = result.rules;
  return rules;
}

std::string model_text(const engine::LoadedModel& model, const Options& options) {
  const std::string& synthetic = model.checkpoint().display_name();
  return synthetic.empty() ? options.engine.model : synthetic;
}

Result<ledger::Event> entry_of(const Cli& cli, const engine::LoadedModel& model,
                               const TuneResult& result, const kernels::TileRules& rules,
                               const Options& options) {
  const kernels::Device& device = model.backend().device();
  ledger::IdeaBody body;
  body.kind = ledger::EntryKind::kTuning;
  body.experiment = "tune-" + rules.name;
  body.text = fmt::format("Tile rules {}: {} for {} of {} at chunks of {}", rules.name,
                          counted(static_cast<int64_t>(rules.rules.size()), "rule"),
                          counted(static_cast<int64_t>(rules.shapes.size()), "shape"), options.op,
                          fmt::join(options.tune.chunks, ", "));
  body.scope = scope_of(model, rules, options);
  body.device_name = device.name;
  body.model_name = model_text(model, options);
  body.reproduce.command = one_line(cli.typed);
  body.reproduce.commit = build_info().commit;
  body.extra["tune"] = {{"table", cell_lines(result)},
                        {"rules", rule_lines(result)},
                        {"largest_loss", largest_loss(result)},
                        {"cells", cells_json(result)},
                        {"bounds", bounds_json(result.bounds)},
                        {"environment", adapters::environment_record(device)}};
  return make_first_event(ledger::EventType::kIdea, encode(body), ledger::default_writer(),
                          utc_timestamp());
}

// The entry first: the file cites it.
Result<std::string> write_down(const Cli& cli, const engine::LoadedModel& model,
                               const TuneResult& result, const Options& options, Target& target,
                               ledger::Store* store) {
  kernels::TileRules rules = rules_of(model, result, options, target.name);
  if (store != nullptr) {
    TRY_ASSIGN(const ledger::Event event, entry_of(cli, model, result, rules, options));
    TRY_ASSIGN(const ledger::AppendReport report, store->append({&event, 1}));
    print_warnings(report.warnings);
    rules.ledger = event.entry;
  }
  const std::string comment =
      fmt::format("Tile rules (docs/tuning.md), made from {} by\n  {}",
                  one_line(model_text(model, options)), one_line(cli.typed));
  TRY(target.draft.write_at(0, tile_rules_text(rules, comment)));
  TRY(target.draft.sync());
  TRY(target.draft.rename_to(options.output));
  return rules.ledger;
}

void print_text(const TuneResult& result, const Options& options, const std::string& entry) {
  fmt::print("{}\n", tune_table(result, true).text());
  const std::vector<std::string> lines = rule_lines(result);
  fmt::print("Rules, the first that fits; the largest loss against the best tile is {:.1f} %:\n",
             100 * largest_loss(result));
  for (size_t i = 0; i < lines.size(); ++i) fmt::print("  {}. {}\n", i + 1, lines[i]);
  fmt::print("  {}: {}\n", lines.empty() ? "everything" : "what is left",
             tile_name(result.sweep, kernels::TileShape::kAuto));
  if (options.output.empty()) {
    fmt::print("Nothing was written: -o NAME.yaml writes the rules and their ledger entry.\n");
  } else {
    fmt::print("wrote {} (ledger: {})\n", options.output, entry);
  }
}

void print_json_result(const engine::LoadedModel& model, const TuneResult& result,
                       const Options& options, const std::string& entry) {
  nlohmann::json json = {{"device", model.backend().device().name},
                         {"backend", model.backend().device().backend},
                         {"n_threads", result.sweep.threads},
                         {"model", model_text(model, options)},
                         {"weight_format", model.weight_format()},
                         {"chunks", options.tune.chunks},
                         {"pairs", options.tune.pairs},
                         {"bounds", bounds_json(result.bounds)},
                         {"cells", cells_json(result)},
                         {"rules", rule_lines(result)},
                         {"largest_loss", largest_loss(result)}};
  if (!options.output.empty()) {
    json["file"] = options.output;
    json["ledger"] = entry;
  }
  print_json(json);
}

// Of what multiplies alone: hardly any memory is read.
Result<std::vector<kernels::Bound>> multiply_bounds(kernels::Backend& backend, int threads) {
  kernels::BoundsOptions options;
  options.threads = threads;
  options.buffer_bytes = uint64_t{16} << 20;
  TRY_ASSIGN(std::vector<kernels::Bound> bounds, backend.measure_bounds(options));
  std::erase_if(bounds, [](const kernels::Bound& bound) {
    return bound.kind != kernels::BoundKind::kMultiply;
  });
  return bounds;
}

Result<ExitCode> tune(const Cli& cli, const Options& options) {
  TRY_ASSIGN(const kernels::SwitchSet switches, parse_switches(options.engine));
  std::unique_ptr<Target> target;
  std::unique_ptr<ledger::Store> store;
  if (!options.output.empty()) {
    TRY_ASSIGN(target, open_target(options));
    if (!options.no_record) {
      TRY_ASSIGN(store, open_ledger(cli));
    }
  }
  TRY_ASSIGN(const auto model, open_model(options.engine));
  const StopSignals signals;
  StatusLine line;
  TuneResult result;
  TuneOptions how = options.tune;
  how.stop = [] { return StopSignals::received() != 0; };
  TRY_ASSIGN(result.sweep, run_sweep(*model, switches, how,
                                     [&](const kernels::OpCall& call, size_t index, size_t count) {
                                       line.show(fmt::format("{} of {}: {} {}", index + 1, count,
                                                             op_name(call.op), shape_text(call)));
                                     }));
  if (!result.sweep.stopped) {
    line.show("measuring this machine's bounds");
    TRY_ASSIGN(result.bounds, multiply_bounds(model->backend(), result.sweep.threads));
  }
  line.clear();
  if (const int signal = StopSignals::received(); signal != 0) {
    fmt::print(stderr, "stopped: nothing was written\n");
    return static_cast<ExitCode>(kExitSignal + signal);
  }
  std::vector<TunedCall> calls;
  for (const TunedCell& cell : result.sweep.cells) calls.push_back({cell.call, cell.losses()});
  result.rules = derive_tile_rules(calls, result.sweep.own);
  std::string entry;
  if (target != nullptr) {
    TRY_ASSIGN(entry, write_down(cli, *model, result, options, *target, store.get()));
  }
  if (options.json) {
    print_json_result(*model, result, options, entry);
  } else {
    print_text(result, options, entry);
  }
  return kExitDone;
}

}  // namespace

void add_tune_command(Cli& cli) {
  CLI::App* command =
      cli.app.add_subcommand("tune", "time the tiles of prefill matmuls, and derive rules");
  auto options = std::make_shared<Options>();
  command
      ->add_option("-m,--model", options->engine.model,
                   "a GGUF file, a Hugging Face folder, tiny, smollm2 or synth:NAME")
      ->required()
      ->type_name("MODEL");
  command->add_option("--layers", options->engine.layers, "cut a synthetic model's depth")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  add_quant_options(*command, options->engine.quant);
  command->add_option("--set", options->engine.sets, "set a switch (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--chunks", options->tune.chunks, "prefill chunks (128,512,2048)")
      ->type_name("C,…")
      ->delimiter(',')
      ->check(whole_number(1, 4096));
  command->add_option("--op", options->op, "what is tuned: matmul")->check(one_of({"matmul"}));
  command->add_option("--pairs", options->tune.pairs, "counted pairs of each tile and call (6)")
      ->type_name("N")
      ->check(whole_number(1, 1000));
  command->add_option("-o,--output", options->output, "write the rules and their ledger entry")
      ->type_name("NAME.yaml");
  command->add_flag("--no-record", options->no_record,
                    "write the rules as unmeasured, and nothing to the ledger");
  command->add_flag("--json", options->json, "print JSON, with every pair");
  command->footer(
      "Each pair is the kernel's own tile and another one back to back, on the model's weights.\n"
      "Keep the machine quiet: 1 % decides. Ctrl-C leaves nothing behind.\n"
      "Examples:\n"
      "  reckon tune -m smollm2\n"
      "  reckon tune -m model.gguf --chunks 512,2048 --pairs 12 -o rules/mine.yaml\n"
      "The rules are used by --set prefill.tile_rules=rules/mine.yaml.");
  command->callback([&cli, options] {
    std::ranges::sort(options->tune.chunks);
    std::vector<int64_t>& chunks = options->tune.chunks;
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
    cli.action = [&cli, options] { return tune(cli, *options); };
  });
}

}  // namespace reckon::cli
