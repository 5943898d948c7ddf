#include "experiment/words.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "measure/verdict.h"

namespace reckon::experiment {
namespace {

constexpr double kEvenParts = 20;  // sides that differ by less than this part read the same

}  // namespace

std::string band_text(double low, double high) {
  if (std::fabs(high + low) <= high / kEvenParts) return "±" + share_text(high);
  return fmt::format("{} to {}", signed_share_text(low), signed_share_text(high));
}

std::string log_band_text(double half_width) {
  return band_text(std::expm1(-half_width), std::expm1(half_width));
}

std::string unknown_band_text(int64_t noise_rounds) {
  if (noise_rounds >= measure::kShownNoiseRounds) return "";
  return fmt::format("not yet known: {} of {} A/A rounds", noise_rounds,
                     measure::kMinimumNoiseRounds);
}

std::string device_key_text(const ledger::DeviceKey& device) {
  const bool gpu = device.isa.starts_with("sm_");
  std::string text =
      gpu ? fmt::format("{}, {}", device.isa, counted(device.units, "SM"))
          : fmt::format("{} hardware, {}", device.isa, counted(device.units, "core"));
  if (device.memory_gib > 0) text += fmt::format(", {} GiB", device.memory_gib);
  return text;
}

std::string duration_text(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string noise_source_text(int64_t noise_rounds, size_t rounds) {
  return fmt::format("{}{}", counted(noise_rounds, "A/A round"),
                     rounds < measure::kRoundsWithScatter
                         ? ""
                         : " or the scatter of its own rounds, whichever is larger");
}

}  // namespace reckon::experiment
