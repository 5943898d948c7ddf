#include "measure/practices.h"

#include <cmath>

#include "measure/noise.h"
#include "measure/student_t.h"

namespace reckon::measure {

Result<double> welch_p_value(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2 || b.size() < 2) return failed("Welch's test takes two values of either sample");
  TRY_ASSIGN(const double deviation_a, standard_deviation(a));
  TRY_ASSIGN(const double deviation_b, standard_deviation(b));
  const auto count_a = static_cast<double>(a.size());
  const auto count_b = static_cast<double>(b.size());
  const double part_a = deviation_a * deviation_a / count_a;
  const double part_b = deviation_b * deviation_b / count_b;
  const double difference = mean(a) - mean(b);
  if (part_a + part_b == 0) return difference == 0 ? 1.0 : 0.0;
  // Welch and Satterthwaite's degrees of freedom.
  const double degrees = (part_a + part_b) * (part_a + part_b) /
                         (part_a * part_a / (count_a - 1) + part_b * part_b / (count_b - 1));
  return 2 * student_t_cdf(-std::fabs(difference) / std::sqrt(part_a + part_b), degrees);
}

}  // namespace reckon::measure
