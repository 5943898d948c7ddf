// Student's t distribution, for the intervals of the lab. Pure and thread-safe.
#pragma once

namespace reckon::measure {

// I_x(a, b) for a, b > 0 and 0 <= x <= 1, by Lentz's continued fraction (Numerical Recipes, 6.4).
[[nodiscard]] double regularized_incomplete_beta(double a, double b, double x);

// P(T <= t), degrees > 0.
[[nodiscard]] double student_t_cdf(double t, double degrees);

// t with P(T <= t) = p, 0 < p < 1, degrees >= 1. Relative error below 1e-10 for the p in use here
// (0.001 to 0.999).
[[nodiscard]] double student_t_quantile(double p, double degrees);

}  // namespace reckon::measure
