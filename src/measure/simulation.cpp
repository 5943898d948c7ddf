#include "measure/simulation.h"

#include <cmath>

namespace reckon::measure {
namespace {

constexpr double kTypicalValue = 100;  // of the metric; cancels in every ratio
constexpr double kSpikeShare = 0.05;
constexpr double kSpikeMean = 6;             // of a spike, in widths of the normal part
constexpr double kCorrelation = 0.95;        // of the wandering level, a measurement
constexpr double kSettlingMeasurements = 5;  // time constant of an exponential
constexpr int kPauseMeasurements = 4;        // that a new process and its warm-up take

// Variance of the normal part with its spikes, in widths: E[spike^2] is 2 mean^2.
const double kSpikeVariance = 1 + kSpikeShare * 2 * kSpikeMean * kSpikeMean -
                              kSpikeShare * kSpikeMean * kSpikeShare * kSpikeMean;

}  // namespace

Machine::Machine(const NoiseModel& model, uint64_t seed) : model_(model), random_(seed) {
  level_ = normal();
  base_shift_ = shift(0);
  arm_shift_ = shift(0);
}

// Marsaglia's polar method.
double Machine::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_normal_;
  }
  double x = 0;
  double y = 0;
  double square = 0;
  do {
    x = 2 * random_.uniform() - 1;
    y = 2 * random_.uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * std::log(square) / square);
  spare_normal_ = y * factor;
  has_spare_ = true;
  return x * factor;
}

// Of variance 1: t with 3 degrees has variance 3.
double Machine::student3() {
  const double a = normal();
  const double b = normal();
  const double c = normal();
  return normal() / std::sqrt(a * a + b * b + c * c);
}

double Machine::shift(double previous) {
  const double fresh = model_.heavy_shifts ? student3() : normal();
  const double kept = model_.shift_correlation;
  return kept * previous + std::sqrt(1 - kept * kept) * fresh;
}

void Machine::move_level(int measurements) {
  if (model_.shape != NoiseShape::kCorrelated) return;
  const double kept = measurements == 1 ? kCorrelation : std::pow(kCorrelation, measurements);
  level_ = kept * level_ + std::sqrt(1 - kept * kept) * normal();
}

// Log units; two of them make a pair's noise.
double Machine::measurement_noise() {
  const double width = model_.pair_noise / std::sqrt(2.0);
  switch (model_.shape) {
    case NoiseShape::kNormal:
      return width * normal();
    case NoiseShape::kHeavy:
      return width * student3();
    case NoiseShape::kSpikes: {
      const double part = width / std::sqrt(kSpikeVariance);
      double noise = part * normal();
      if (random_.uniform() < kSpikeShare) {
        noise += part * kSpikeMean * std::log(1 - random_.uniform());
      }
      return noise;
    }
    case NoiseShape::kCorrelated: {
      // The difference of neighbours has variance 2 (1 - correlation) of the level's.
      move_level(1);
      const double level_width = width / std::sqrt(2 * (1 - kCorrelation));
      return level_width * level_ + width / std::sqrt(2.0) * normal();
    }
  }
  return 0;
}

void Machine::start_process() {
  base_shift_ = shift(base_shift_);
  arm_shift_ = shift(arm_shift_);
  process_measurements_ = 0;
  move_level(kPauseMeasurements);
}

double Machine::measure(bool is_arm, bool second, double effect_log) {
  const double shift_width = model_.round_shift * model_.pair_noise / std::sqrt(2.0);
  double log_value = shift_width * (is_arm ? arm_shift_ : base_shift_) + measurement_noise();
  if (is_arm) log_value += effect_log;
  if (second) log_value -= model_.slot_bias;
  log_value -= model_.drift * static_cast<double>(measurements_++);
  const double settled = static_cast<double>(process_measurements_++) / kSettlingMeasurements;
  log_value -= model_.settling * (1 - std::exp(-settled));
  return kTypicalValue * std::exp(log_value);
}

std::vector<Pair> Machine::round(int pairs, double effect_log) {
  start_process();
  std::vector<Pair> measured;
  measured.reserve(static_cast<size_t>(pairs));
  for (const Order order : balanced_order(pairs, random_.next())) {
    Pair pair;
    pair.order = order;
    if (order == Order::kBaseFirst) {
      pair.base = measure(false, false, effect_log);
      pair.arm = measure(true, true, effect_log);
    } else {
      pair.arm = measure(true, false, effect_log);
      pair.base = measure(false, true, effect_log);
    }
    measured.push_back(pair);
  }
  return measured;
}

}  // namespace reckon::measure
