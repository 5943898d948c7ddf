// Numbers as people read them. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ledger/scope.h"

namespace reckon::experiment {

// A share as percent without a sign: 0.0213 is "2.1%", 0.00042 is "0.042%".
[[nodiscard]] std::string share_text(double share);
// With its sign: "+2.1%", "-3.9%".
[[nodiscard]] std::string signed_share_text(double share);
// Two shares around zero: "±0.4%", or "-13.9% to +16.2%" where the sides differ by more than a
// twentieth (a band that is even in log units is not even in percent).
[[nodiscard]] std::string band_text(double low, double high);
// The same of a half-width in log units.
[[nodiscard]] std::string log_band_text(double half_width);
// "0.8 s", "45 s", "12 min", "1.5 h".
[[nodiscard]] std::string duration_text(double seconds);
// Four significant figures and the unit, "949.4 / 951.9 tok/s"; bytes ("B") as sizes, "1.5 MiB /
// …".
[[nodiscard]] std::string values_text(const std::vector<double>& values, const std::string& unit);
// The same of both arms: "949.4 / 951.9 -> 914.6 / 914.7 tok/s".
[[nodiscard]] std::string arms_text(const std::vector<double>& base, const std::vector<double>& arm,
                                    const std::string& unit);

// "not yet known: 3 of 20 A/A rounds" where so few rounds say too little about noise to show what
// was computed from them; "" otherwise.
[[nodiscard]] std::string unknown_band_text(int64_t noise_rounds);
// A device without its name: "avx512 hardware, 2 cores, 15 GiB", "sm_90, 132 SMs". What kernels use
// of a CPU may be less; the dispatch rows say.
[[nodiscard]] std::string device_key_text(const ledger::DeviceKey& device);
// What a noise band rests on: "20 A/A rounds", and the rounds' own scatter where there are enough.
[[nodiscard]] std::string noise_source_text(int64_t noise_rounds, size_t rounds);

}  // namespace reckon::experiment
