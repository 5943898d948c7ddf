#include "cli/speculation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/speculation_options.h"

namespace reckon::cli {
namespace {

using engine::SpeculationStats;

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

double milliseconds(double ns) {
  return ns / 1e6;
}

// The deepest drafts that were verified; their cost, where that is known.
std::optional<double> deepest_cost(const SpeculationStats& stats) {
  return stats.widest() > 1 ? stats.cost(stats.widest()) : std::nullopt;
}

std::optional<double> break_even(int64_t rows, const std::optional<double>& cost) {
  return cost ? engine::break_even_acceptance(rows - 1, *cost) : std::nullopt;
}

nlohmann::json depths_json(const SpeculationStats& stats) {
  nlohmann::json depths = nlohmann::json::array();
  for (const SpeculationStats::Depth& depth : stats.depths()) {
    depths.push_back({{"depth", depths.size() + 1},
                      {"drafted", depth.drafted},
                      {"reached", depth.reached},
                      {"accepted", depth.accepted},
                      {"acceptance", or_null(depth.acceptance())}});
  }
  return depths;
}

nlohmann::json widths_json(const SpeculationStats& stats) {
  nlohmann::json widths = nlohmann::json::array();
  for (int64_t rows = 1; rows <= stats.widest(); ++rows) {
    const auto median_ns = stats.median_pass_ns(rows);
    if (!median_ns) continue;
    const std::optional<double> cost = stats.cost(rows);
    widths.push_back({{"rows", rows},
                      {"timed_passes", stats.passes_of(rows)},
                      {"median_ms", milliseconds(static_cast<double>(*median_ns))},
                      {"cost", or_null(cost)}});
    if (rows > 1) widths.back()["break_even"] = or_null(break_even(rows, cost));
  }
  return widths;
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string acceptance_text(const SpeculationStats& stats) {
  std::string text;
  for (const SpeculationStats::Depth& depth : stats.depths()) {
    const auto acceptance = depth.acceptance();
    text += text.empty() ? "accepted by depth " : ", ";
    text += acceptance ? percent(*acceptance) : "-";
  }
  return text.empty() ? "nothing drafted" : text;
}

std::string break_even_text(const SpeculationStats& stats) {
  const std::optional<double> cost = deepest_cost(stats);
  if (!cost) return "break-even not measured";
  const std::optional<double> at = break_even(stats.widest(), cost);
  const std::string pass =
      fmt::format("{} drafts cost {:.2f} plain passes", stats.widest() - 1, *cost);
  return at ? fmt::format("break-even {} ({})", percent(*at), pass)
            : fmt::format("no break-even ({})", pass);
}

}  // namespace

nlohmann::json speculation_json(const SpeculationStats& stats) {
  return {{"drafter", stats.drafter()},
          {"depth", stats.depth()},
          {"passes", stats.passes()},
          {"drafting_passes", stats.drafting_passes()},
          {"tokens_per_pass", stats.tokens_per_pass()},
          {"ms_per_pass", milliseconds(stats.mean_pass_ns())},
          {"draft_ms", milliseconds(stats.mean_draft_ns())},
          {"by_depth", depths_json(stats)},
          {"by_rows", widths_json(stats)},
          {"break_even", or_null(break_even(stats.widest(), deepest_cost(stats)))}};
}

std::string speculation_line(const SpeculationStats& stats) {
  return fmt::format("drafts by {}: {:.2f} tokens a pass, {} passes of {:.2f} ms, {}, {}",
                     stats.drafter(), stats.tokens_per_pass(), stats.passes(),
                     milliseconds(stats.mean_pass_ns()), acceptance_text(stats),
                     break_even_text(stats));
}

std::string speculation_note(const kernels::SwitchSet& switches) {
  if (engine::speculation_options(switches, false).drafter != engine::DrafterKind::kReplay)
    return "";
  return fmt::format(
      "decode.drafter={} takes its drafts from a recorded run of the same "
      "generation: what it gains is not gained in use",
      switches.get("decode.drafter"));
}

}  // namespace reckon::cli
