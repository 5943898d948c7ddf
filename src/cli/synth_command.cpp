// `reckon synth`: a synthetic checkpoint as a Hugging Face folder.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "formats/synthetic.h"
#include "formats/write_folder.h"

namespace reckon::cli {
namespace {

constexpr uint64_t kMostBytes = 5'000'000'000;  // without --large

struct SynthOptions {
  std::string name;
  std::string output;
  int64_t layers = 0;
  uint64_t seed = 0;
  double router_skew = 0;
  std::string quant = "none";
  bool large = false;
  bool json = false;
};

Result<Checkpoint> open_synthetic(const SynthOptions& options) {
  std::string model = is_synthetic(options.name) ? options.name : "synth:" + options.name;
  TRY_ASSIGN(SyntheticName name, parse_synthetic(model));
  if (options.seed != 0) name.seed = options.seed;
  model = name.text();
  if (options.layers != 0) {
    TRY_ASSIGN(model, with_layers(model, options.layers));
  }
  if (options.router_skew != 0) {
    TRY_ASSIGN(model, with_router_skew(model, options.router_skew));
  }
  return Checkpoint::open(model);
}

Result<ExitCode> run_synth(const SynthOptions& options) {
  if (options.quant != "none") {
    return usage_error("--quant: a folder holds bf16 weights; pack them when they are loaded");
  }
  TRY_ASSIGN(const Checkpoint checkpoint, open_synthetic(options));
  const uint64_t bytes = folder_bytes(checkpoint);
  if (bytes > kMostBytes && !options.large) {
    return refused(fmt::format(
        "{} takes {} as bf16: --layers cuts it, --large writes it all the same, and -m {} runs it "
        "without a file",
        checkpoint.display_name(), format_bytes(bytes), checkpoint.path()));
  }
  const StopSignals signals;
  StatusLine line;
  WriteFolderOptions write;
  write.progress = [&line](uint64_t done, uint64_t total) {
    line.show(fmt::format("writing weights: {} %", done * 100 / total));
    return StopSignals::received() == 0;
  };
  const Status written = write_folder(checkpoint, options.output, write);
  line.clear();
  if (const int signal = StopSignals::received(); signal != 0 && !written.ok()) {
    return static_cast<ExitCode>(kExitSignal + signal);
  }
  TRY(written);
  if (options.json) {
    print_json({{"folder", options.output},
                {"model", checkpoint.path()},
                {"model_name", checkpoint.display_name()},
                {"weight_bytes", bytes},
                {"shape_hash", checkpoint.shape_hash()}});
  } else {
    fmt::print("{}: {}, {} of weights\n", options.output, checkpoint.display_name(),
               format_bytes(bytes));
  }
  return kExitDone;
}

}  // namespace

void add_synth_command(Cli& cli) {
  CLI::App* command =
      cli.app.add_subcommand("synth", "write a checkpoint with random weights in a named shape");
  auto options = std::make_shared<SynthOptions>();
  command
      ->add_option("name", options->name,
                   fmt::format("the shape: {}", join(synthetic_shapes(), ", ")))
      ->required()
      ->type_name("NAME");
  command->add_option("-o,--output", options->output, "the folder to make")
      ->required()
      ->type_name("DIR");
  command->add_option("--layers", options->layers, "cut the depth to N layers")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command->add_option("--seed", options->seed, "of the weights (0)")
      ->type_name("S")
      ->check(whole_number(0, std::numeric_limits<int64_t>::max()));
  command
      ->add_option("--router-skew", options->router_skew,
                   "make some experts popular (Zipf's exponent)")
      ->type_name("S")
      ->check(number_from_zero());
  command->add_option("--quant", options->quant, "none: the folder is bf16")->type_name("none");
  command->add_flag("--large", options->large, "write more than 5 GB");
  command->add_flag("--json", options->json, "print JSON");
  command->footer(
      "-m synth:NAME runs the same weights without a file.\n"
      "Example:\n"
      "  reckon synth llama-8b --layers 4 -o llama-8b-short");
  command->callback([&cli, options] { cli.action = [options] { return run_synth(*options); }; });
}

}  // namespace reckon::cli
