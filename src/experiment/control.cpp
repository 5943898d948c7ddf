#include "experiment/control.h"

#include <fmt/format.h>

#include <cmath>

#include "experiment/stored_noise.h"
#include "experiment/words.h"
#include "measure/verdict.h"

namespace reckon::experiment {
namespace {

struct ControlEffect {
  int64_t rounds = 0;
  double mean_log = 0;
};

Result<ControlEffect> effect_of(const Runner::MetricInfo& control,
                                const std::vector<ledger::MeasuredBody>& rounds) {
  ControlEffect effect;
  for (const ledger::MeasuredBody& measured : rounds) {
    const std::vector<measure::Pair> pairs = control_pairs(measured.round, control.name);
    if (pairs.empty()) continue;  // a round of an earlier run, without this control
    TRY_ASSIGN(const double median, measure::round_median(pairs, better_of(control)));
    effect.mean_log += (median - effect.mean_log) / static_cast<double>(++effect.rounds);
  }
  return effect;
}

}  // namespace

std::vector<measure::Pair> control_pairs(const ledger::Round& round, const std::string& metric) {
  std::vector<measure::Pair> pairs;
  const auto named = round.extra.find("control");
  if (named == round.extra.end() || *named != metric) return pairs;
  for (const ledger::PairSample& sample : round.pairs) {
    const auto found = sample.extra.find("control");
    if (found == sample.extra.end() || !found->is_object()) return {};
    const double base = found->value("base", 0.0);
    const double arm = found->value("arm", 0.0);
    if (!(base > 0) || !(arm > 0)) return {};
    pairs.push_back({base, arm,
                     sample.arm_first ? measure::Order::kArmFirst : measure::Order::kBaseFirst,
                     sample.warmup});
  }
  return pairs;
}

Status apply_control(const Prepared& prepared, const Judgement& judgement,
                     const std::vector<ledger::MeasuredBody>& rounds, ledger::VerdictBody& body) {
  TRY_ASSIGN(const ControlEffect effect, effect_of(*prepared.control, rounds));
  if (effect.rounds == 0) return {};
  const measure::Noise& noise = judgement.control_noise;
  nlohmann::json control{{"metric", prepared.control->name},
                         {"effect", std::expm1(effect.mean_log)},
                         {"noise_rounds", noise.rounds}};
  bool moved = false;
  if (noise.missing_rounds() == 0) {
    TRY_ASSIGN(const measure::Band band,
               measure::design_band(noise, static_cast<int>(effect.rounds)));
    control["band"] = std::expm1(band.noise_band);
    moved = std::fabs(effect.mean_log) > band.noise_band;
  }
  control["moved"] = moved;
  body.numbers->extra["control"] = std::move(control);
  if (!moved || body.verdict == ledger::Verdict::kInconclusive) return {};
  body.detail =
      fmt::format("it would be {}, but the control moved: something besides the switch differs",
                  ledger::verdict_name(body.verdict));
  body.verdict = ledger::Verdict::kInconclusive;
  return {};
}

std::string control_text(const ledger::Numbers& numbers) {
  const auto found = numbers.extra.find("control");
  if (found == numbers.extra.end() || !found->is_object()) return "";
  const std::string text = fmt::format("control {} {}", found->value("metric", std::string()),
                                       signed_share_text(found->value("effect", 0.0)));
  if (!found->contains("band")) {
    return fmt::format("{} (its noise is not yet known: {} of {} A/A rounds)", text,
                       found->value("noise_rounds", 0), measure::kMinimumNoiseRounds);
  }
  return fmt::format("{}, {} {}", text, found->value("moved", false) ? "beyond" : "within",
                     log_band_text(std::log1p(found->value("band", 0.0))));
}

}  // namespace reckon::experiment
