// Norms and sums of the CPU's table: near to float64, in the order of sums that norm.h promises,
// each row on its own; and add_rms_norm in the bits of its parts.
#include <cmath>
#include <limits>
#include <span>

#include "kernels/cpu/variants_testing.h"

namespace reckon::kernels {
namespace {

using testing::exact_rows;
using testing::expect_stamped;
using testing::for_each_row;
using testing::Random;
using testing::Runner;
using testing::same_bits;

constexpr float kEpsilon = 1e-5F;

// Around vectors, lanes and tasks, and widths of models.
constexpr int64_t kWidths[] = {1,  2,  7,   8,   9,   15,  16,   17,   23,   31,   33,
                               64, 80, 128, 251, 576, 577, 2048, 2880, 5120, 8193, 20002};

struct Case {
  int64_t rows, k;
  std::vector<float> x, weight;

  Case(int64_t rows_of_k, int64_t columns, Random& random)
      : rows(rows_of_k),
        k(columns),
        x(random.floats(rows_of_k * columns, 3)),
        weight(random.floats(columns)) {}
};

std::vector<float> run_norm(Runner& runner, const Variant& row, const Case& c, int64_t first,
                            int64_t rows) {
  std::vector<float> out(static_cast<size_t>(rows * c.k), std::nanf(""));
  runner.run(
      row, RmsNormArgs{c.x.data() + first * c.k, c.weight.data(), out.data(), rows, c.k, kEpsilon});
  return out;
}

std::vector<float> float64_norm(const Case& c) {
  std::vector<float> out(c.x.size());
  for (int64_t r = 0; r < c.rows; ++r) {
    const float* x = c.x.data() + r * c.k;
    double sum = 0;
    for (int64_t i = 0; i < c.k; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    const double scale = 1 / std::sqrt(sum / static_cast<double>(c.k) + kEpsilon);
    for (int64_t i = 0; i < c.k; ++i) {
      out[r * c.k + i] = static_cast<float>(x[i] * scale * static_cast<double>(c.weight[i]));
    }
  }
  return out;
}

// norm.h in plain loops.
float canonical_scale(std::span<const float> x, float epsilon) {
  double lanes[16] = {};
  for (size_t i = 0; i < x.size(); ++i) {
    lanes[i % 16] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  for (size_t half = 8; half > 0; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  const double mean = lanes[0] / static_cast<double>(x.size());
  return static_cast<float>(1 / std::sqrt(mean + static_cast<double>(epsilon)));
}

std::vector<float> canonical_norm(const Case& c) {
  std::vector<float> out(c.x.size());
  for (int64_t r = 0; r < c.rows; ++r) {
    const std::span<const float> x(c.x.data() + r * c.k, static_cast<size_t>(c.k));
    const float scale = canonical_scale(x, kEpsilon);
    for (int64_t i = 0; i < c.k; ++i) out[r * c.k + i] = x[i] * scale * c.weight[i];
  }
  return out;
}

// Three roundings to float32 after a sum in float64, and that of what is expected.
TEST(Norm, EveryElementIsNearFloat64) {
  Random random(60);
  Runner runner(2);
  for (const int64_t k : kWidths) {
    for (const int64_t rows : {1, 3, 17}) {
      const Case c(rows, k, random);
      const std::vector<float> expected = float64_norm(c);
      for_each_row(Op::kRmsNorm, [&](const Variant& row) {
        const std::vector<float> out = run_norm(runner, row, c, 0, rows);
        runner.trace().reset();
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], expected[i], 4e-7 * std::fabs(expected[i]) + 1e-38)
              << row.name << " " << rows << " x " << k << " at " << i;
        }
      });
    }
  }
}

// check(runner, case of 5 rows, its norm in the canonical order, row) for all widths and exact
// rows.
template <typename Check>
void against_the_canonical(Op op, uint32_t seed, const Check& check) {
  Random random(seed);
  Runner runner(2);
  for (const int64_t k : kWidths) {
    const Case c(5, k, random);
    const std::vector<float> normed = canonical_norm(c);
    for (const Variant* row : exact_rows(op)) check(runner, c, normed, *row);
  }
}

TEST(ExactNorm, SumsInTheCanonicalOrder) {
  against_the_canonical(
      Op::kRmsNorm, 61, [](auto& runner, const Case& c, const auto& normed, const Variant& row) {
        const std::vector<float> out = run_norm(runner, row, c, 0, c.rows);
        EXPECT_TRUE(same_bits(out.data(), normed.data(), c.rows * c.k)) << row.name << " " << c.k;
      });
}

// z = 100 leaves the norm times 100: e^-100 is 0 here (exp_polynomial.h).
TEST(ExactNorm, TheGatedOneSumsInTheSameOrder) {
  against_the_canonical(Op::kGatedRmsNorm, 62,
                        [](auto& runner, const Case& c, const auto& normed, const Variant& row) {
                          const std::vector<float> z(c.x.size(), 100.0F);
                          std::vector<float> out(c.x.size(), std::nanf(""));
                          runner.run(row, GatedRmsNormArgs{c.x.data(), z.data(), c.weight.data(),
                                                           out.data(), c.rows, c.k, kEpsilon});
                          for (size_t i = 0; i < out.size(); ++i) {
                            ASSERT_EQ(out[i], normed[i] * 100.0F)
                                << row.name << " " << c.k << " at " << i;
                          }
                        });
}

TEST(ExactNorm, RowsDoNotDependOnTheBatchNorOnThreads) {
  Random random(63);
  Runner one(1), two(2), three(3);
  for (const int64_t k : {1, 16, 37, 128, 576, 2880, 5120}) {
    const Case c(40, k, random);
    for (const Variant* row : exact_rows(Op::kRmsNorm)) {
      std::vector<float> alone;
      for (int64_t r = 0; r < c.rows; ++r) {
        const std::vector<float> out = run_norm(one, *row, c, r, 1);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      for (int64_t rows = 1; rows <= c.rows; ++rows) {
        for (Runner* runner : {&one, &two, &three}) {
          const std::vector<float> last = run_norm(*runner, *row, c, c.rows - rows, rows);
          EXPECT_TRUE(same_bits(last.data(), alone.data() + (c.rows - rows) * k, rows * k))
              << row->name << " " << rows << " x " << k;
        }
      }
    }
  }
}

TEST(ExactNorm, InPlaceGivesTheSameBits) {
  Random random(64);
  Runner runner(2);
  for (const int64_t k : {7, 16, 80, 577, 5120}) {
    const Case c(17, k, random);
    for (const Variant* row : exact_rows(Op::kRmsNorm)) {
      const std::vector<float> expected = run_norm(runner, *row, c, 0, c.rows);
      std::vector<float> out = c.x;
      runner.run(*row, RmsNormArgs{out.data(), c.weight.data(), out.data(), c.rows, k, kEpsilon});
      EXPECT_TRUE(same_bits(out.data(), expected.data(), c.rows * k)) << row->name << " " << k;
    }
  }
}

// A value that is not a number spoils its own row only; squares of large ones do not overflow.
TEST(ExactNorm, BadRowsStayAlone) {
  constexpr int64_t kColumns = 100;
  Random random(65);
  Runner runner(2);
  const Case clean(9, kColumns, random);
  for (const Variant* row : exact_rows(Op::kRmsNorm)) {
    const std::vector<float> expected = run_norm(runner, *row, clean, 0, clean.rows);
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf(""), 1e30F}) {
      Case spoiled = clean;
      spoiled.x[4 * kColumns + 97] = bad;
      const std::vector<float> out = run_norm(runner, *row, spoiled, 0, clean.rows);
      for (int64_t r = 0; r < clean.rows; ++r) {
        if (r == 4) continue;
        EXPECT_TRUE(same_bits(out.data() + r * kColumns, expected.data() + r * kColumns, kColumns));
      }
      const float spoiled_value = out[4 * kColumns + 97];
      EXPECT_EQ(std::isfinite(spoiled_value), std::isfinite(bad)) << row->name << " " << bad;
    }
  }
}

struct Summed {
  std::vector<float> residual, out;
};

Summed run_composition(Runner& runner, const Variant& row, const Case& c,
                       std::vector<float> residual) {
  Summed result{std::move(residual), std::vector<float>(c.x.size(), std::nanf(""))};
  const AddRmsNormArgs args{
      c.x.data(), result.residual.data(), c.weight.data(), result.out.data(), c.rows, c.k,
      kEpsilon};
  runner.trace().reset();
  runner.run(row, args);
  expect_stamped(runner, row, call_of(args, Phase::kPrefill));
  return result;
}

// Of its class: what runs where a switch asks for the parts.
TEST(Norm, AddRmsNormIsItsParts) {
  Random random(66);
  Runner one(1), three(3);
  for (const int64_t k : kWidths) {
    for (const int64_t rows : {1, 4, 17, 40}) {
      if (rows * k > 250000) continue;
      const Case c(rows, k, random);
      const std::vector<float> before = random.floats(rows * k);
      for_each_row(Op::kAddRmsNorm, [&](const Variant& row) {
        const Summed summed = run_composition(three, row, c, before);
        const Summed alone = run_composition(one, row, c, before);
        Case sum = c;
        for (size_t i = 0; i < before.size(); ++i) sum.x[i] = before[i] + c.x[i];
        EXPECT_EQ(summed.residual, sum.x) << row.name << " " << rows << " x " << k;
        EXPECT_EQ(alone.residual, sum.x) << row.name << " " << rows << " x " << k;
        EXPECT_EQ(alone.out, summed.out) << row.name << " " << rows << " x " << k;
        for_each_row(Op::kRmsNorm, [&](const Variant& norm) {
          if (norm.numerics != row.numerics || norm.isa != row.isa) return;
          const std::vector<float> expected = run_norm(one, norm, sum, 0, rows);
          EXPECT_TRUE(same_bits(summed.out.data(), expected.data(), rows * k))
              << row.name << " " << rows << " x " << k;
        });
      });
    }
  }
}

TEST(Norm, AddHasOneResult) {
  Random random(67);
  Runner one(1), three(3);
  for (const int64_t k : {1, 7, 37, 576, 16384, 16385, 50001}) {
    for (const int64_t rows : {1, 3, 5}) {
      const std::vector<float> x = random.floats(rows * k), y = random.floats(rows * k);
      std::vector<float> expected(x.size());
      for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i] + y[i];
      for_each_row(Op::kAdd, [&](const Variant& row) {
        for (Runner* runner : {&one, &three}) {
          std::vector<float> out(x.size(), std::nanf(""));
          runner->run(row, AddArgs{x.data(), y.data(), out.data(), rows, k});
          EXPECT_EQ(out, expected) << row.name << " " << rows << " x " << k;
          out = y;  // in place of the second
          runner->run(row, AddArgs{x.data(), out.data(), out.data(), rows, k});
          EXPECT_EQ(out, expected) << row.name << " " << rows << " x " << k;
          runner->trace().reset();
        }
      });
    }
  }
}

}  // namespace
}  // namespace reckon::kernels
