// A made-up machine to measure on: what the study of error rates (study.h) holds the rule against.
// Not used by the product. One thread a machine; equal seeds give equal machines.
//
// The logarithm of a measured value (higher is better) is the sum of
//   the true effect (arm only), a shift of each arm in each process (where code and buffers came to
//   lie), the slot's bias, drift, and the noise of one measurement.
// Everything is in log units, and scaled by the pair noise: the standard deviation of one pair's
// log ratio within a process and a slot.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/pairs.h"
#include "measure/splitmix.h"

namespace reckon::measure {

enum class NoiseShape {
  kNormal,
  kHeavy,       // Student's t with 3 degrees: its kurtosis is infinite
  kSpikes,      // normal, and 5% of measurements slower by an exponential of six times its width
  kCorrelated,  // half of the pair variance from a level that wanders, AR(1) with 0.95 a
                // measurement
};

struct NoiseModel {
  std::string name;
  NoiseShape shape = NoiseShape::kNormal;
  double pair_noise = 0.01;      // log units
  double round_shift = 0;        // standard deviation of a round's shift, in pair noises
  bool heavy_shifts = false;     // shifts from Student's t with 3 degrees instead of a normal
  double slot_bias = 0;          // log units by which the second slot is worse
  double drift = 0;              // log units lost with every measurement, for ever
  double settling = 0;           // log units lost in the first dozen measurements of a process
  double shift_correlation = 0;  // of one round's shift with the next (AR(1))
};

class Machine {
 public:
  Machine(const NoiseModel& model, uint64_t seed);

  // A fresh process: other shifts, and a pause in which a wandering level moves on.
  void start_process();

  // One measurement, in the metric's unit.
  [[nodiscard]] double measure(bool is_arm, bool second, double effect_log);

  // A process of `pairs` counted pairs in balanced order; the arm is better by effect_log.
  [[nodiscard]] std::vector<Pair> round(int pairs, double effect_log);

  [[nodiscard]] double normal();

 private:
  [[nodiscard]] double student3();
  [[nodiscard]] double measurement_noise();
  [[nodiscard]] double shift(double previous);
  void move_level(int measurements);

  NoiseModel model_;
  SplitMix64 random_;
  double spare_normal_ = 0;
  bool has_spare_ = false;
  double level_ = 0;                       // of the wandering part, in its standard deviations
  double base_shift_ = 0, arm_shift_ = 0;  // of this process, in their standard deviations
  int64_t measurements_ = 0;               // of all processes
  int64_t process_measurements_ = 0;       // of this one
};

}  // namespace reckon::measure
