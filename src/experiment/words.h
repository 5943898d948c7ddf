// Numbers as people read them. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon::experiment {

// A share as percent without a sign: 0.0213 is "2.1%", 0.00042 is "0.042%".
[[nodiscard]] std::string share_text(double share);
// With its sign: "+2.1%", "-3.9%".
[[nodiscard]] std::string signed_share_text(double share);
// "0.8 s", "45 s", "12 min", "1.5 h".
[[nodiscard]] std::string duration_text(double seconds);
// Four significant figures and the unit, "949.4 / 951.9 tok/s"; bytes ("B") as sizes, "1.5 MiB /
// …".
[[nodiscard]] std::string values_text(const std::vector<double>& values, const std::string& unit);
// The same of both arms: "949.4 / 951.9 -> 914.6 / 914.7 tok/s".
[[nodiscard]] std::string arms_text(const std::vector<double>& base, const std::vector<double>& arm,
                                    const std::string& unit);

// What a noise band rests on: "20 A/A rounds", and the rounds' own scatter where there are enough.
[[nodiscard]] std::string noise_source_text(int64_t noise_rounds, size_t rounds);

}  // namespace reckon::experiment
