#include "measure/student_t.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace reckon::measure {
namespace {

// lgamma's sign goes through a global in some C libraries; the reentrant form does not.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

// The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  constexpr int kMaxTerms = 10000;
  const auto away_from_zero = [](double v) { return std::fabs(v) < kTiny ? kTiny : v; };

  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    const double step = d * c;
    fraction *= step;
    if (std::fabs(step - 1.0) < 2 * kEpsilon) break;
  }
  return fraction;
}

// I_x(a, b) with y = 1 - x given by the caller, who can compute it without cancellation.
double incomplete_beta(double a, double b, double x, double y) {
  if (x == 0 || y == 0) return x;
  const double log_front =
      log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * std::log(x) + b * std::log(y);
  const double front = std::exp(log_front);
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

// P(T > t) for t >= 0, without the cancellation that 1 - cdf would have.
double upper_tail(double t, double degrees) {
  const double t2 = t * t;
  // I_x(df/2, 1/2) / 2 at x = df / (df + t^2).
  return 0.5 * incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t2), t2 / (degrees + t2));
}

double density(double t, double degrees) {
  const double log_norm = log_gamma((degrees + 1) / 2) - log_gamma(degrees / 2) -
                          0.5 * std::log(degrees * std::acos(-1.0));
  return std::exp(log_norm - (degrees + 1) / 2 * std::log1p(t * t / degrees));
}

}  // namespace

double regularized_incomplete_beta(double a, double b, double x) {
  RECKON_CHECK(a > 0 && b > 0 && x >= 0 && x <= 1);
  return incomplete_beta(a, b, x, 1 - x);
}

double student_t_cdf(double t, double degrees) {
  RECKON_CHECK(degrees > 0 && !std::isnan(t));
  return t >= 0 ? 1 - upper_tail(t, degrees) : upper_tail(-t, degrees);
}

double student_t_quantile(double p, double degrees) {
  RECKON_CHECK(p > 0 && p < 1 && degrees >= 1);
  if (p == 0.5) return 0;
  if (p < 0.5) return -student_t_quantile(1 - p, degrees);
  const double tail = 1 - p;

  double low = 0;
  double high = 1;
  while (upper_tail(high, degrees) > tail) {
    low = high;
    high *= 2;
  }
  // Newton's steps, replaced by bisection wherever they leave the bracket.
  double t = 0.5 * (low + high);
  for (int i = 0; i < 200; ++i) {
    const double excess = upper_tail(t, degrees) - tail;
    (excess > 0 ? low : high) = t;
    double next = t + excess / density(t, degrees);
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    if (std::fabs(next - t) <= 1e-15 * t) return next;
    t = next;
  }
  return t;
}

}  // namespace reckon::measure
