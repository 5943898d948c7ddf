// Sampling: every row of the table against the rule on the host.
#include "kernels/sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using testing::Random;

bool operator==(const Pick& a, const Pick& b) {
  return a.token == b.token && a.margin == b.margin;
}

// Whether a token may be drawn: its running sums enclose what is wanted, to rounding.
bool may_draw(const float* logits, int64_t n, double temperature, double uniform, int32_t token) {
  if (token < 0 || token >= n) return false;
  const double highest = *std::max_element(logits, logits + n);
  double total = 0, before = 0, own = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double share = std::exp((logits[i] - highest) / temperature);
    if (i < token) before += share;
    if (i == token) own = share;
    total += share;
  }
  const double wanted = uniform * total, slack = 1e-12 * total;
  return own > 0 && before <= wanted + slack && wanted < before + own + slack;
}

class CudaSample : public testing::DeviceTest {
 protected:
  void check(const std::vector<float>& logits, int64_t rows, double temperature, double uniform) {
    const int64_t n = static_cast<int64_t>(logits.size()) / rows;
    for_each_row(Op::kSample, [&](const Variant& row) {
      // One thread draws: slow for many logits.
      const bool reference = row.numerics == NumericsClass::kReference;
      if (reference && temperature > 0 && n > 5000) return;
      std::vector<Pick> picks(static_cast<size_t>(rows)), again = picks;
      SampleArgs args{logits.data(), picks.data(), rows, n, temperature, uniform};
      device->run(row, args);
      args.picks = again.data();
      device->set_overlap(false);
      device->run(row, args);
      device->set_overlap(true);
      for (int64_t r = 0; r < rows; ++r) {
        EXPECT_TRUE(picks[r] == again[r]) << "two runs differ";
        const float* own = logits.data() + r * n;
        const Pick wanted = sample_row(own, n, temperature, uniform);
        EXPECT_EQ(picks[r].margin, wanted.margin) << "of " << n << ", row " << r;
        if (picks[r].token == wanted.token) continue;
        EXPECT_TRUE(temperature > 0 && may_draw(own, n, temperature, uniform, picks[r].token))
            << picks[r].token << " for " << wanted.token << " of " << n << " at " << temperature
            << ", " << uniform;
      }
    });
  }

  Random random{31};
};

// Around the chunks of 2048 and the widths of vocabularies.
constexpr int64_t kSizes[] = {1, 2, 31, 2047, 2048, 2049, 4097, 32000, 151936};
constexpr double kUniforms[] = {0, 0.37, 0x1.fffffffffffffp-1};

TEST_F(CudaSample, DrawsByTheRule) {
  for (const int64_t n : kSizes) {
    const int64_t rows = n > 100000 ? 1 : 3;
    const std::vector<float> logits = random.floats(rows * n, 2);
    check(logits, rows, 0, 0);
    for (const double temperature : {0.05, 1.0, 3.0}) {
      for (const double uniform : kUniforms) check(logits, rows, temperature, uniform);
      check(logits, rows, temperature, static_cast<double>(random.integer(0, 1 << 30)) * 0x1p-30);
    }
  }
}

TEST_F(CudaSample, TiesGoToTheLowestIndex) {
  for (const int64_t n : {31, 2049, 32000}) {
    std::vector<float> logits = random.floats(n, 2);
    for (int i = 0; i < 5; ++i) logits[random.integer(0, n - 1)] = 500;
    check(logits, 1, 0, 0);
    check(logits, 1, 1, 0.5);
    std::fill(logits.begin(), logits.end(), -2.5F);
    check(logits, 1, 0, 0);
    check(logits, 1, 1, 0.5);
  }
}

TEST_F(CudaSample, ReportsTheFirstLogitThatIsNoNumber) {
  for (const int64_t n : {31, 2049, 32000}) {
    for (const double temperature : {0.0, 1.0}) {
      std::vector<float> logits = random.floats(3 * n);  // the last row is sound
      for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
        logits[random.integer(0, n - 1)] = bad;
      }
      logits[2 * n - 1] = std::nanf("");
      check(logits, 3, temperature, 0.25);
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
