#include "cli/sampling_options.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "cli/options.h"

namespace reckon::cli {

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  engine::SamplerOptions& sampler = options.sampler;
  command.add_option("--temperature", sampler.temperature, "0 is greedy (0)")
      ->type_name("T")
      ->check(number_from_zero());
  command.add_option("--top-k", sampler.filters.top_k, "draw from the K likeliest; 0: all (0)")
      ->type_name("K")
      ->check(whole_number(0, kMostTokens));
  command.add_option("--top-p", sampler.filters.top_p, "from the likeliest that share P (1)")
      ->type_name("P")
      ->check(number_from_zero());
  command
      .add_option("--min-p", sampler.filters.min_p,
                  "from those with P of the likeliest's share (0)")
      ->type_name("P")
      ->check(number_from_zero());
  command
      .add_option("--repeat-penalty", sampler.repeat_penalty, "make recent tokens less likely (1)")
      ->type_name("R")
      ->check(number_from_zero());
  command
      .add_option("--repeat-last", sampler.repeat_window, "tokens that the penalty looks back (64)")
      ->type_name("N")
      ->check(whole_number(0, kMostTokens));
  command.add_option("--seed", sampler.seed, "of the sampler (0)")
      ->type_name("S")
      ->check(whole_number(0, std::numeric_limits<int64_t>::max()));
  command.add_option("--stop", options.stop_texts, "end the answer before TEXT (repeatable)")
      ->type_name("TEXT")
      ->allow_extra_args(false);
}

std::string sampling_note(const SamplingOptions& options) {
  const engine::SamplerOptions& sampler = options.sampler;
  const engine::SamplerOptions defaults;
  const bool set = sampler.seed != defaults.seed || !sampler.filters.keeps_all();
  if (sampler.temperature > 0 || !set) return "";
  return "at temperature 0 the likeliest token is taken: seed and filters have no effect";
}

nlohmann::json sampling_json(const SamplingOptions& options) {
  const engine::SamplerOptions& sampler = options.sampler;
  return {{"temperature", sampler.temperature},
          {"top_k", sampler.filters.top_k},
          {"top_p", sampler.filters.top_p},
          {"min_p", sampler.filters.min_p},
          {"repeat_penalty", sampler.repeat_penalty},
          {"repeat_last", sampler.repeat_window},
          {"seed", sampler.seed},
          {"stop_texts", options.stop_texts}};
}

}  // namespace reckon::cli
