// Bands, times and devices as people read them; figures are in base/figures.h. Pure and
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/figures.h"
#include "ledger/scope.h"

namespace reckon::experiment {

// Two shares around zero: "±0.4%", or "-13.9% to +16.2%" where the sides differ by more than a
// twentieth (a band that is even in log units is not even in percent).
[[nodiscard]] std::string band_text(double low, double high);
// The same of a half-width in log units.
[[nodiscard]] std::string log_band_text(double half_width);
// "0.8 s", "45 s", "12 min", "1.5 h".
[[nodiscard]] std::string duration_text(double seconds);

// "not yet known: 3 of 20 A/A rounds" where so few rounds say too little about noise to show what
// was computed from them; "" otherwise.
[[nodiscard]] std::string unknown_band_text(int64_t noise_rounds);
// A device without its name: "avx512 hardware, 2 cores, 15 GiB", "sm_90, 132 SMs". What kernels use
// of a CPU may be less; the dispatch rows say.
[[nodiscard]] std::string device_key_text(const ledger::DeviceKey& device);
// What a noise band rests on: "20 A/A rounds", and the rounds' own scatter where there are enough.
[[nodiscard]] std::string noise_source_text(int64_t noise_rounds, size_t rounds);

}  // namespace reckon::experiment
