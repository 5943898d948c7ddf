// Measured figures as people read them, the same wherever they stand. Pure and thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace reckon {

// A share as percent without a sign: 0.0213 is "2.1%", 0.00042 is "0.042%".
[[nodiscard]] std::string share_text(double share);
// With its sign: "+2.1%", "-3.9%".
[[nodiscard]] std::string signed_share_text(double share);

// Four significant figures and the unit, "949.4 / 951.9 tok/s"; bytes ("B") as sizes, "1.5 MiB /
// …".
[[nodiscard]] std::string values_text(const std::vector<double>& values, const std::string& unit);
// The same of both arms: "949.4 / 951.9 -> 914.6 / 914.7 tok/s".
[[nodiscard]] std::string arms_text(const std::vector<double>& base, const std::vector<double>& arm,
                                    const std::string& unit);
// In so many columns: later rounds are left out until it fits, the unit never is:
// "949.4 / … -> 914.6 / … tok/s". Wider only where one round is.
[[nodiscard]] std::string arms_text_within(const std::vector<double>& base,
                                           const std::vector<double>& arm, const std::string& unit,
                                           size_t columns);

}  // namespace reckon
