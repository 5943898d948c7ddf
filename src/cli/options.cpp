#include "cli/options.h"

namespace reckon::cli {

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command
      .add_option("-m,--model", options.model,
                  "a GGUF file, a Hugging Face folder, or a name such as smollm2")
      ->required()
      ->type_name("MODEL");
  command.add_option("--set", options.sets, "set a switch (repeatable; see docs/switches.md)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--ctx", options.context, "positions of context")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  command.add_option("--chunk", options.chunk, "prefill chunk (short for --set prefill.chunk=C)")
      ->type_name("C")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--memory-limit", options.memory_limit, "refuse to take more: 8GiB, 8GB or 75%")
      ->type_name("SIZE");
}

Result<kernels::SwitchSet> parse_switches(const EngineOptions& options) {
  kernels::SwitchSet switches;
  for (const std::string& assignment : options.sets) TRY(switches.set_assignment(assignment));
  if (options.chunk != 0) TRY(switches.set("prefill.chunk", std::to_string(options.chunk)));
  return switches;
}

Result<engine::SessionOptions> session_options(const EngineOptions& options, int64_t context) {
  engine::SessionOptions session;
  TRY_ASSIGN(session.switches, parse_switches(options));
  session.shape.capacity = context;
  if (!options.memory_limit.empty()) session.memory_limit = options.memory_limit;
  return session;
}

}  // namespace reckon::cli
