#include "measure/sequential.h"

#include <fmt/format.h>

#include <cmath>

namespace reckon::measure {
namespace {

Status check_rate(double rate) {
  if (rate > 0 && rate < 0.5) return {};
  return usage_error(fmt::format("an error rate of {}: expected above 0 and below 0.5", rate));
}

Status check(const Noise& noise, const SequentialDesign& design) {
  TRY(check_rate(design.false_call));
  TRY(check_rate(design.missed_claim));
  if (!std::isfinite(design.claim) || design.claim <= 0) {
    return usage_error(fmt::format("claim {}: expected a gain above zero", design.claim));
  }
  if (noise.missing_rounds() > 0) {
    return failed(fmt::format("sequential stopping takes {} A/A rounds, and there are {}",
                              kMinimumNoiseRounds, noise.rounds));
  }
  if (!std::isfinite(noise.standard_deviation) || noise.standard_deviation <= 0) {
    return failed(fmt::format("sequential stopping takes a noise above zero, not {}",
                              noise.standard_deviation));
  }
  return {};
}

}  // namespace

Result<SequentialState> sequential_state(const Noise& noise, std::span<const double> round_medians,
                                         const SequentialDesign& design) {
  TRY(check(noise, design));
  const double side = design.false_call / 2;
  const double call = std::log((1 - design.missed_claim) / side);
  const double give_up = std::log(design.missed_claim / (1 - side));
  const double effect = std::log1p(design.claim);
  const double degrees = noise.rounds - 1;
  const double floor_squares = degrees * noise.standard_deviation * noise.standard_deviation;

  SequentialState state;
  double zero = floor_squares;
  double up = floor_squares;
  double down = floor_squares;
  bool up_given_up = false;
  bool down_given_up = false;
  for (const double median : round_medians) {
    if (!std::isfinite(median)) return failed("a round's median is not finite");
    zero += median * median;
    up += (median - effect) * (median - effect);
    down += (median + effect) * (median + effect);
    ++state.rounds;
    const double power = (degrees + static_cast<double>(state.rounds)) / 2;
    state.log_ratio_up = power * std::log(zero / up);
    state.log_ratio_down = power * std::log(zero / down);
    const bool may_call = state.rounds >= kFewestSequentialRounds;
    if (may_call && !up_given_up && state.log_ratio_up >= call)
      state.call = SequentialCall::kBetter;
    if (may_call && !down_given_up && state.log_ratio_down >= call)
      state.call = SequentialCall::kWorse;
    up_given_up = up_given_up || state.log_ratio_up <= give_up;
    down_given_up = down_given_up || state.log_ratio_down <= give_up;
    if (up_given_up && down_given_up) state.call = SequentialCall::kNoGain;
    if (state.call != SequentialCall::kGoOn) return state;
  }
  return state;
}

}  // namespace reckon::measure
