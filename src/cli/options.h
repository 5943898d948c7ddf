// Options that several commands share, so that they are spelled and checked the same everywhere.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/session.h"
#include "kernels/switches.h"

namespace reckon::cli {

struct QuantOptions {
  std::string scheme = "none";  // or a file
  bool no_cache = false;
};

struct EngineOptions {
  std::string model;
  int64_t layers = 0;      // 0: all
  double router_skew = 0;  // 0: none
  QuantOptions quant;
  std::string backend = "cpu";
  std::string recipe;             // a file; "": none
  std::vector<std::string> sets;  // key=value, in order
  int64_t context = 0;            // 0: the command's own default
  int64_t chunk = 0;              // 0: the prefill.chunk switch
  std::string memory_limit;
};

// Checks of option values, with messages for people; nothing is added to the help.
[[nodiscard]] CLI::Validator whole_number(int64_t minimum, int64_t maximum);
[[nodiscard]] CLI::Validator number_from_zero();
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

// Tokens, positions and chunks: far above what any model takes, far below what overflows.
inline constexpr int64_t kMostTokens = int64_t{1} << 30;

// -m, --layers, --router-skew, --quant, --no-cache, --backend, --set, --ctx, --chunk,
// --memory-limit.
void add_engine_options(CLI::App& command, EngineOptions& options);

// --quant with --no-cache, and --backend, for commands that take a model otherwise.
void add_quant_options(CLI::App& command, QuantOptions& options);
void add_backend_option(CLI::App& command, std::string& backend);

// The model as typed, its weights planned but not loaded. Notes on stderr what the recipe left out.
// For one session with the options' switches, or for several, whatever they read of weights.
enum class SessionsOf : uint8_t { kOne, kMany };
[[nodiscard]] Result<std::unique_ptr<engine::LoadedModel>> open_model(
    const EngineOptions& options, SessionsOf sessions = SessionsOf::kOne);
[[nodiscard]] Result<std::unique_ptr<engine::LoadedModel>> open_model(
    const std::string& model, const QuantOptions& quant, const std::string& backend,
    const models::BuildOptions& build = {}, const models::HostLayouts& layouts = {.both = true});

// The switches of the recipe, then those typed; --chunk is short for --set prefill.chunk. What the
// recipe's own conditions leave out, a line each, goes to `left_out`.
[[nodiscard]] Result<kernels::SwitchSet> parse_switches(
    const EngineOptions& options, std::vector<std::string>* left_out = nullptr);

// Session options for a context of `context` positions.
[[nodiscard]] Result<engine::SessionOptions> session_options(const EngineOptions& options,
                                                             int64_t context);

}  // namespace reckon::cli
