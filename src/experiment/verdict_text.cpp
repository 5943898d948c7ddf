#include "experiment/verdict_text.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "experiment/beside.h"
#include "experiment/control.h"
#include "experiment/words.h"

namespace reckon::experiment {
namespace {

std::string rounds_text(size_t count) {
  if (count > 2) return fmt::format("rounds 1 to {}", count);
  return count == 2 ? "round 1 / round 2" : "round 1";
}

std::string numbers_text(const ledger::Numbers& numbers) {
  std::string text;
  if (numbers.effect)
    text = fmt::format("{} {}", signed_share_text(*numbers.effect), numbers.metric);
  text += fmt::format(" ({}: {})", rounds_text(numbers.base_values.size()),
                      arms_text(numbers.base_values, numbers.arm_values, numbers.unit));
  if (const auto band = shown_noise_band(numbers)) {
    text += fmt::format(
        ", noise band {} from {}", band_text(band->low, band->high),
        noise_source_text(numbers.noise_rounds.value_or(0), numbers.base_values.size()));
  }
  return text;
}

std::string disturbance_text(const ledger::VerdictBody& verdict) {
  const auto found = verdict.extra.find("disturbance");
  if (found == verdict.extra.end() || !found->is_object()) return "";
  return fmt::format("; {} measured again and {} waited for calm, the latest because {}",
                     counted(found->value("pairs", int64_t{0}), "pair"),
                     duration_text(found->value("paused_seconds", 0.0)),
                     found->value("latest", std::string()));
}

}  // namespace

std::optional<ledger::Interval> shown_noise_band(const ledger::Numbers& numbers) {
  if (numbers.noise_rounds && !unknown_band_text(*numbers.noise_rounds).empty()) return {};
  return numbers.noise_band;
}

std::string quality_text(const ledger::TokenCheck& tokens) {
  if (!tokens.mean_kl) return "";
  std::string text = fmt::format("mean KL {:.2g} nats a token", *tokens.mean_kl);
  if (tokens.perplexity_change) {
    text += ", perplexity " + signed_share_text(*tokens.perplexity_change);
  }
  const auto quality = tokens.extra.find("quality");
  if (quality != tokens.extra.end() && quality->is_object()) {
    text +=
        fmt::format(", {} of {} likeliest tokens equal", quality->value("top1_equal", int64_t{0}),
                    quality->value("tokens", int64_t{0}));
  }
  if (tokens.compared == 0) return text;
  return text + (tokens.first_divergence
                     ? fmt::format(", generated tokens part at {} of {}",
                                   tokens.first_divergence->position, tokens.compared)
                     : fmt::format(", the {} generated tokens are equal", tokens.compared));
}

std::string verdict_sentence(const ledger::Entry& entry) {
  const ledger::VerdictBody& verdict = *entry.verdict;
  std::string text(ledger::verdict_name(verdict.verdict));
  if (verdict.numbers) text += ": " + numbers_text(*verdict.numbers);
  if (const std::string quality = verdict.tokens ? quality_text(*verdict.tokens) : "";
      !quality.empty()) {
    text += "; quality cost: " + quality;
  }
  if (const std::string control = verdict.numbers ? control_text(*verdict.numbers) : "";
      !control.empty()) {
    text += "; " + control;
  }
  if (const std::string drift = verdict.numbers ? drift_text(*verdict.numbers) : "";
      !drift.empty()) {
    text += "; " + drift;
  }
  if (!verdict.detail.empty()) text += (verdict.numbers ? "; " : ": ") + verdict.detail;
  text += disturbance_text(verdict);
  if (verdict.proof && !verdict.proof->side_effects.empty()) {
    const auto rows = static_cast<int64_t>(verdict.proof->side_effects.size());
    text += fmt::format("; side effects: {} outside the reach", counted(rows, "row"));
  }
  return text;
}

std::string floor_sentence(const FloorSummary& floor) {
  std::string text = counted(floor.noise.rounds, "A/A round");
  if (!floor.shows_band()) return text + "; noise band " + unknown_band_text(floor.noise.rounds);
  text += fmt::format(", s_m {}; {} see +{} and more, noise band {}",
                      share_text(std::expm1(floor.noise.standard_deviation)),
                      counted(floor.rounds, "round"),
                      share_text(std::expm1(floor.band->smallest_detectable)),
                      log_band_text(floor.band->noise_band));
  if (floor.noise.missing_rounds() > 0) {
    text += fmt::format("; {} more before a verdict", floor.noise.missing_rounds());
  }
  return text;
}

}  // namespace reckon::experiment
