#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "engine/speculation_options.h"
#include "formats/synthetic.h"
#include "kernels/recipe.h"

namespace reckon::cli {

CLI::Validator whole_number(int64_t minimum, int64_t maximum) {
  return CLI::Validator(
      [minimum, maximum](const std::string& text) -> std::string {
        int64_t number = 0;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, number);
        if (error == std::errc() && stop == end && number >= minimum && number <= maximum) {
          return "";
        }
        return fmt::format("expected a whole number from {} to {}, not '{}'", minimum, maximum,
                           text);
      },
      "");
}

CLI::Validator number_from_zero() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        char* end = nullptr;
        const double number = std::strtod(text.c_str(), &end);
        const bool whole = !text.empty() && end == text.c_str() + text.size();
        if (whole && std::isfinite(number) && number >= 0) return "";
        return fmt::format("expected a number of 0 or more, not '{}'", text);
      },
      "");
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](const std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        return fmt::format("expected {}, not '{}'", join(words, " or "), text);
      },
      "");
}

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command
      .add_option("-m,--model", options.model,
                  "a GGUF file, a Hugging Face folder, tiny, smollm2 or synth:NAME")
      ->required()
      ->type_name("MODEL");
  command.add_option("--layers", options.layers, "cut a synthetic model's depth to N layers")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command
      .add_option("--router-skew", options.router_skew,
                  "make some experts of a synthetic model popular (Zipf's exponent)")
      ->type_name("S")
      ->check(number_from_zero());
  add_quant_options(command, options.quant);
  add_backend_option(command, options.backend);
  command
      .add_option("--recipe", options.recipe,
                  "set the switches of a recipe file first (see docs/switches.md)")
      ->type_name("FILE");
  command.add_option("--set", options.sets, "set a switch (repeatable; see docs/switches.md)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--ctx", options.context, "positions of context")
      ->type_name("N")
      ->check(whole_number(1, kMostTokens));
  command.add_option("--chunk", options.chunk, "prefill chunk (short for --set prefill.chunk=C)")
      ->type_name("C")
      ->check(whole_number(1, 4096));
  command
      .add_option("--memory-limit", options.memory_limit, "refuse to take more: 8GiB, 8GB or 75%")
      ->type_name("SIZE")
      ->check([](const std::string& text) {
        const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
        return bare ? fmt::format("'{0}' has no unit: {0}GiB, {0}MiB or {0}%?", text) : "";
      });
}

void add_backend_option(CLI::App& command, std::string& backend) {
  command
      .add_option("--backend", backend,
                  fmt::format("what runs it: {} (cpu)", join(kernels::backend_names(), " or ")))
      ->type_name("NAME");
}

void add_quant_options(CLI::App& command, QuantOptions& options) {
  command
      .add_option("--quant", options.scheme,
                  fmt::format("pack matrices at load: {} or a .yaml (none)",
                              join(models::QuantScheme::names(), ", ")))
      ->type_name("SCHEME");
  command.add_flag("--no-cache", options.no_cache,
                   "neither read nor keep packed weights from one load to the next");
}

Result<std::unique_ptr<engine::LoadedModel>> open_model(const std::string& model,
                                                        const QuantOptions& quant,
                                                        const std::string& backend,
                                                        const models::BuildOptions& build,
                                                        const models::HostLayouts& layouts) {
  engine::ModelOptions options;
  options.build = build;
  options.layouts = layouts;
  TRY_ASSIGN(options.backend, kernels::open_backend(backend));
  TRY_ASSIGN(options.quant, models::QuantScheme::parse(quant.scheme));
  options.packed_cache.enabled = !quant.no_cache;
  return engine::LoadedModel::open(model, options);
}

Result<std::unique_ptr<engine::LoadedModel>> open_model(const EngineOptions& options,
                                                        SessionsOf sessions) {
  std::vector<std::string> left_out;
  TRY_ASSIGN(const kernels::SwitchSet switches, parse_switches(options, &left_out));
  print_notes(left_out);
  const models::BuildOptions build{.draft_head = engine::wants_draft_head(switches)};
  const models::HostLayouts layouts{.session = switches, .both = sessions == SessionsOf::kMany};
  std::string model = options.model;
  if (options.layers != 0) {
    TRY_ASSIGN(model, with_layers(model, options.layers));
  }
  if (options.router_skew != 0) {
    TRY_ASSIGN(model, with_router_skew(model, options.router_skew));
  }
  return open_model(model, options.quant, options.backend, build, layouts);
}

Result<kernels::SwitchSet> parse_switches(const EngineOptions& options,
                                          std::vector<std::string>* left_out) {
  kernels::SwitchSet switches;
  if (!options.recipe.empty()) {
    TRY_ASSIGN(const kernels::Recipe recipe, kernels::load_recipe(options.recipe));
    TRY_ASSIGN(const kernels::Backend* backend, kernels::open_backend(options.backend));
    TRY_ASSIGN(std::vector<std::string> lines, recipe.apply(backend->device(), switches));
    if (left_out != nullptr) *left_out = std::move(lines);
  }
  for (const std::string& assignment : options.sets) TRY(switches.set_assignment(assignment));
  if (options.chunk != 0) TRY(switches.set("prefill.chunk", std::to_string(options.chunk)));
  return switches;
}

Result<engine::SessionOptions> session_options(const EngineOptions& options, int64_t context) {
  engine::SessionOptions session;
  TRY_ASSIGN(session.switches, parse_switches(options));
  session.shape.capacity = context;
  if (!options.memory_limit.empty()) session.memory_limit = options.memory_limit;
  session.load_progress = [line = std::make_shared<StatusLine>()](uint64_t done, uint64_t total) {
    if (done < total) {
      line->show(fmt::format("loading weights: {} %", done * 100 / total));
    } else {
      line->clear();
    }
  };
  return session;
}

}  // namespace reckon::cli
