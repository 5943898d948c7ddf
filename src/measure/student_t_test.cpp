#include "measure/student_t.h"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon::measure {
namespace {

// scipy.stats.t.ppf(p, degrees), SciPy 1.x.
TEST(StudentT, QuantileMatchesScipy) {
  struct Known {
    double p;
    double degrees;
    double t;
  };
  constexpr Known kKnown[] = {
      {0.95, 1, 6.313751514675037},     {0.95, 2, 2.9199855803537242},
      {0.95, 5, 2.0150483733330233},    {0.95, 19, 1.7291328115213682},
      {0.95, 30, 1.697260886593957},    {0.95, 99, 1.6603911560169906},
      {0.95, 1000, 1.6463788172854643}, {0.9975, 1, 127.32133646887486},
      {0.9975, 2, 14.089047275555446},  {0.9975, 5, 4.773340604855546},
      {0.9975, 19, 3.1737245307923256}, {0.9975, 30, 3.0297982236482506},
      {0.9975, 99, 2.8713076612147734}, {0.9975, 1000, 2.813277860485553},
      {0.975, 1, 12.706204736174694},   {0.975, 19, 2.0930240544083087},
      {0.6, 1, 0.32491969623290634},    {0.6, 19, 0.25692281979615467},
      {0.6, 1000, 0.25341451583949876}, {0.01, 1, -31.82051595377396},
      {0.01, 19, -2.539483190623963},   {0.01, 1000, -2.330082674755513},
  };
  for (const Known& known : kKnown) {
    EXPECT_NEAR(student_t_quantile(known.p, known.degrees) / known.t, 1.0, 1e-10)
        << "p " << known.p << ", degrees " << known.degrees;
  }
  EXPECT_EQ(student_t_quantile(0.5, 7), 0.0);
}

// scipy.special.betainc(a, b, x).
TEST(StudentT, IncompleteBetaMatchesScipy) {
  EXPECT_NEAR(regularized_incomplete_beta(0.5, 0.5, 0.3), 0.36901011956554536, 1e-13);
  EXPECT_NEAR(regularized_incomplete_beta(2, 3, 0.4), 0.5247999999999999, 1e-13);
  EXPECT_NEAR(regularized_incomplete_beta(9.5, 0.5, 0.9), 0.1625499990297271, 1e-13);
  EXPECT_NEAR(regularized_incomplete_beta(50, 0.5, 0.99), 0.3173043978741973, 1e-13);
  EXPECT_NEAR(regularized_incomplete_beta(1, 1, 0.25), 0.25, 1e-15);
  EXPECT_EQ(regularized_incomplete_beta(2, 3, 0), 0);
  EXPECT_EQ(regularized_incomplete_beta(2, 3, 1), 1);
}

// scipy.stats.t.cdf(t, degrees).
TEST(StudentT, CdfMatchesScipy) {
  EXPECT_NEAR(student_t_cdf(0, 5), 0.5, 1e-15);
  EXPECT_NEAR(student_t_cdf(1.5, 3), 0.8847080673775886, 1e-12);
  EXPECT_NEAR(student_t_cdf(-2.3, 19), 0.016476291231697464, 1e-12);
  EXPECT_NEAR(student_t_cdf(40, 1), 0.9920439100879742, 1e-12);
}

TEST(StudentT, QuantileInvertsCdf) {
  for (double degrees = 1; degrees < 3000; degrees *= 1.7) {
    for (const double p : {0.003, 0.2, 0.499, 0.501, 0.9, 0.999}) {
      EXPECT_NEAR(student_t_cdf(student_t_quantile(p, degrees), degrees), p, 1e-12);
    }
  }
}

}  // namespace
}  // namespace reckon::measure
