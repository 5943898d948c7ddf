// Options of the commands that generate text: how tokens are picked and what ends an answer.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/generate.h"

namespace reckon::cli {

struct SamplingOptions {
  engine::SamplerOptions sampler;
  std::vector<std::string> stop_texts;
};

// --temperature, --top-k, --top-p, --min-p, --repeat-penalty, --repeat-last, --seed, --stop.
void add_sampling_options(CLI::App& command, SamplingOptions& options);

// That options have no effect at temperature 0; "" where that is not so.
[[nodiscard]] std::string sampling_note(const SamplingOptions& options);

// The options as --json reports them: temperature, top_k, ...
[[nodiscard]] nlohmann::json sampling_json(const SamplingOptions& options);

}  // namespace reckon::cli
