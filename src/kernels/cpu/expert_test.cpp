// Every row of the tables for the ops of routed experts: routes against rules written down by hand,
// matmuls against the reference and against themselves, row by row.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cpu/expert_testing.h"
#include "kernels/cpu/variants_testing.h"

namespace reckon::kernels {
namespace {

using testing::exact_rows;
using testing::expect_rows_close;
using testing::expect_stamped;
using testing::Experts;
using testing::for_each_row;
using testing::ids_of;
using testing::Random;
using testing::Runner;
using testing::same_bits;
using testing::weights_of;

constexpr DType kWeightTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                                  DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K,
                                  DType::kP8,   DType::kP4};

TEST(EveryVariant, RouteTakesTheHighestAndOrdersThemByIndex) {
  Runner runner(2);
  const std::vector<float> logits = {0,  3, 1,  3, 2,   // 1 and 3 are equal, then 4
                                     -1, 5, -2, 5, 5,   // three are equal, the lower two win
                                     7,  7, 7,  7, 7};  // all are
  for_each_row(Op::kRoute, [&](const Variant& row) {
    std::vector<float> selection(3 * 4);
    const RouteArgs args{logits.data(), selection.data(), 3, 5, 2, RouteWeights::kOfSelected};
    runner.run(row, args);
    expect_stamped(runner, row, call_of(args, Phase::kPrefill));
    EXPECT_EQ(ids_of(selection, 0, 2), (std::vector<int32_t>{1, 3})) << row.name;
    EXPECT_EQ(ids_of(selection, 1, 2), (std::vector<int32_t>{1, 3})) << row.name;
    EXPECT_EQ(ids_of(selection, 2, 2), (std::vector<int32_t>{0, 1})) << row.name;
    for (int64_t r = 0; r < 3; ++r) {
      EXPECT_EQ(weights_of(selection, r, 2), (std::vector<float>{0.5F, 0.5F})) << row.name;
    }
  });
}

TEST(EveryVariant, RouteMatchesFloat64) {
  constexpr int64_t kRows = 17;
  Random random(60);
  Runner runner(2);
  for (const auto& [experts, top_k] :
       {std::pair<int64_t, int64_t>{1, 1}, {5, 5}, {37, 3}, {256, 8}, {512, 10}}) {
    const std::vector<float> logits = random.floats(kRows * experts, 2);
    for (const RouteWeights weights : {RouteWeights::kOfAll, RouteWeights::kOfSelected}) {
      for_each_row(Op::kRoute, [&](const Variant& row) {
        std::vector<float> selection(static_cast<size_t>(kRows * 2 * top_k));
        const RouteArgs args{logits.data(), selection.data(), kRows, experts, top_k, weights};
        runner.run(row, args);
        for (int64_t r = 0; r < kRows; ++r) {
          const float* own = logits.data() + r * experts;
          std::vector<int32_t> order(static_cast<size_t>(experts));
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(),
                           [&](int32_t a, int32_t b) { return own[a] > own[b]; });
          std::vector<int32_t> expected(order.begin(), order.begin() + top_k);
          std::sort(expected.begin(), expected.end());
          EXPECT_EQ(ids_of(selection, r, top_k), expected) << row.name;
          const bool of_all = weights == RouteWeights::kOfAll;
          double total = 0;
          for (const int32_t e : of_all ? order : expected) {
            total += std::exp(static_cast<double>(own[e]));
          }
          for (int64_t j = 0; j < top_k; ++j) {
            const double share = std::exp(static_cast<double>(own[expected[j]])) / total;
            EXPECT_NEAR(weights_of(selection, r, top_k)[j], share, 1e-5 * share + 1e-30)
                << row.name;
          }
        }
        runner.trace().reset();
      });
    }
  }
}

TEST(EveryVariant, RouteOfWhatIsNoNumberStaysInRange) {
  Runner runner;
  for_each_row(Op::kRoute, [&](const Variant& row) {
    for (const int64_t bad : {0, 2, 4}) {
      std::vector<float> logits = {1, 5, 2, 4, 3};
      logits[bad] = std::nanf("");
      std::vector<float> selection(6);
      for (const RouteWeights weights : {RouteWeights::kOfAll, RouteWeights::kOfSelected}) {
        runner.run(row, RouteArgs{logits.data(), selection.data(), 1, 5, 3, weights});
        const std::vector<int32_t> ids = ids_of(selection, 0, 3);
        EXPECT_TRUE(ids[0] >= 0 && ids[0] < ids[1] && ids[1] < ids[2] && ids[2] < 5) << row.name;
        for (const float weight : weights_of(selection, 0, 3)) EXPECT_TRUE(std::isnan(weight));
      }
    }
  });
}

bool runs(const Variant& row, const OpCall& call) {
  return row.supports == nullptr || row.supports(testing::in_panels(call)).empty();
}

// k, or the next that the type can have.
int64_t columns_for(DType type, int64_t k) {
  const int64_t block = pads_rows(type) ? 1 : block_elements(type);
  return (k + block - 1) / block * block;
}

// The reference in float64, of float32 weights.
TEST(ExpertMatmul, ReferenceMatchesFloat64) {
  Random random(61);
  Runner runner(2);
  const Experts of(DType::kF32, 7, 6, 3, 11, 29, 1, random);
  const auto* gate = reinterpret_cast<const float*>(of.first.data());
  const auto* up = reinterpret_cast<const float*>(of.second.data());
  const auto dot = [&](const float* weight, int64_t index, const float* x) {
    double sum = 0;
    for (int64_t i = 0; i < of.k; ++i) {
      sum += static_cast<double>(weight[index * of.k + i]) * static_cast<double>(x[i]);
    }
    return sum;
  };
  std::vector<float> out;
  runner.run(testing::reference_row(Op::kExpertMatmulSwiglu), of.swiglu(out, 0, of.rows));
  for (int64_t r = 0; r < of.rows; ++r) {
    for (int64_t j = 0; j < of.top_k; ++j) {
      const int64_t e = ids_of(of.selection, r, of.top_k)[j];
      for (int64_t i = 0; i < of.n; ++i) {
        const double g = dot(gate, e * of.n + i, of.x.data() + r * of.k);
        const double u = dot(up, e * of.n + i, of.x.data() + r * of.k);
        EXPECT_NEAR(out[(r * of.top_k + j) * of.n + i], g / (1 + std::exp(-g)) * u, 1e-4);
      }
    }
  }
  const Experts down(DType::kF32, 7, 6, 3, 11, 29, 3, random);
  const auto* weight = reinterpret_cast<const float*>(down.first.data());
  runner.run(testing::reference_row(Op::kExpertMatmulCombine), down.combine(out, 0, down.rows));
  for (int64_t r = 0; r < down.rows; ++r) {
    for (int64_t i = 0; i < down.n; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < down.top_k; ++j) {
        const int64_t e = ids_of(down.selection, r, down.top_k)[j];
        sum += static_cast<double>(weights_of(down.selection, r, down.top_k)[j]) *
               dot(weight, e * down.n + i, down.x.data() + (r * down.top_k + j) * down.k);
      }
      EXPECT_NEAR(out[r * down.n + i], sum, 1e-4);
    }
  }
}

void check_swiglu(const Experts& of, Runner& runner) {
  std::vector<float> expected, out;
  runner.run(testing::reference_row(Op::kExpertMatmulSwiglu), of.swiglu(expected, 0, of.rows));
  runner.trace().reset();
  for_each_row(Op::kExpertMatmulSwiglu, [&](const Variant& row) {
    const ExpertMatmulSwigluArgs args = of.swiglu(out, 0, of.rows);
    const OpCall call = call_of(args, Phase::kPrefill);
    if (!runs(row, call)) return;
    runner.run(row, args);
    expect_stamped(runner, row, testing::in_panels(call));
    expect_rows_close(out, expected, of.rows * of.top_k, row, shape_text(call), of.type);
  });
}

void check_combine(const Experts& of, Runner& runner) {
  std::vector<float> expected, out;
  runner.run(testing::reference_row(Op::kExpertMatmulCombine), of.combine(expected, 0, of.rows));
  runner.trace().reset();
  for_each_row(Op::kExpertMatmulCombine, [&](const Variant& row) {
    const ExpertMatmulCombineArgs args = of.combine(out, 0, of.rows);
    const OpCall call = call_of(args, Phase::kPrefill);
    if (!runs(row, call)) return;
    runner.run(row, args);
    expect_stamped(runner, row, testing::in_panels(call));
    expect_rows_close(out, expected, of.rows, row, shape_text(call), of.type);
  });
}

TEST(EveryVariant, ExpertMatmulsMatchReference) {
  Random random(62);
  Runner runner(2);
  for (const DType type : kWeightTypes) {
    for (int64_t rows = 1; rows <= 17; rows += 4) {
      const int64_t n = 16 * random.integer(1, 3);
      const int64_t k = columns_for(type, random.integer(1, 700));
      check_swiglu(Experts(type, rows, 6, 2, n, k, 1, random), runner);
      check_combine(Experts(type, rows, 6, 2, n, k, 2, random), runner);
    }
    const int64_t k = columns_for(type, 600);
    check_swiglu(Experts(type, 70, 9, 4, 37, k, 1, random), runner);  // panels need 16 rows
    check_combine(Experts(type, 70, 9, 4, 37, k, 4, random), runner);
    check_swiglu(Experts(type, 3, 40, 8, 80, k, 1, random), runner);
    check_combine(Experts(type, 3, 40, 8, 7, k, 8, random), runner);
    check_combine(Experts(type, 50, 1, 1, 33, k, 1, random), runner);
  }
}

// Each row alone, in batches of every size and on any number of threads: groups of every size.
TEST(ExactExpertMatmul, RowsDoNotDependOnTheBatchNorOnThreads) {
  constexpr int64_t kRows = 21;
  Random random(63);
  Runner one(1), two(2), three(3);
  for (const DType type : kWeightTypes) {
    const Experts gates(type, kRows, 5, 3, 48, columns_for(type, 531), 1, random);
    const Experts down(type, kRows, 5, 3, 48, columns_for(type, 531), 3, random);
    std::vector<float> out;
    const auto check = [&](Op op, int64_t columns, const auto& args_of) {
      for (const Variant* row : exact_rows(op)) {
        if (!runs(*row, call_of(args_of(0, 1), Phase::kPrefill))) continue;
        std::vector<float> alone;
        for (int64_t r = 0; r < kRows; ++r) {
          one.run(*row, args_of(r, 1));
          alone.insert(alone.end(), out.begin(), out.end());
        }
        for (int64_t rows = 1; rows <= kRows; ++rows) {
          for (Runner* runner : {&one, &two, &three}) {
            runner->run(*row, args_of(0, rows));
            EXPECT_TRUE(same_bits(out.data(), alone.data(), rows * columns))
                << row->name << " " << dtype_name(type) << " rows " << rows;
          }
          two.run(*row, args_of(kRows - rows, rows));
          EXPECT_TRUE(
              same_bits(out.data(), alone.data() + (kRows - rows) * columns, rows * columns))
              << row->name << " " << dtype_name(type) << " last rows " << rows;
        }
      }
    };
    check(Op::kExpertMatmulSwiglu, gates.top_k * gates.n,
          [&](int64_t from, int64_t count) { return gates.swiglu(out, from, count); });
    check(Op::kExpertMatmulCombine, down.n,
          [&](int64_t from, int64_t count) { return down.combine(out, from, count); });
  }
}

// An expert's product has the bits of the plain matmul with its matrix, and so the variants of a
// format agree with each other.
TEST(ExactExpertMatmul, AnExpertGivesTheBitsOfThePlainMatmul) {
  constexpr int64_t kRows = 12;
  Random random(64);
  Runner runner(2);
  for (const DType type : kWeightTypes) {
    Experts of(type, kRows, 4, 1, 32, columns_for(type, 300), 1, random);
    for (int64_t r = 0; r < kRows; ++r) of.selection[2 * r + 1] = 1;
    for (const Variant* row : exact_rows(Op::kExpertMatmulCombine)) {
      std::vector<float> out;
      const ExpertMatmulCombineArgs args = of.combine(out, 0, kRows);
      if (!runs(*row, call_of(args, Phase::kPrefill))) continue;
      runner.run(*row, args);
      for (int64_t r = 0; r < kRows; ++r) {
        const int64_t e = ids_of(of.selection, r, 1)[0];
        std::vector<float> expected(32);
        MatmulArgs plain;
        plain.x = of.x.data() + r * of.k;
        plain.weight = of.first.data() + e * 32 * row_bytes(type, of.k);
        plain.weight_type = type;
        plain.out = expected.data();
        plain.rows = 1;
        plain.n = 32;
        plain.k = of.k;
        for (const Variant* matmul : exact_rows(Op::kMatmul)) {
          if (matmul->isa == Isa::kScalar) runner.run(*matmul, plain);
        }
        EXPECT_TRUE(same_bits(out.data() + r * 32, expected.data(), 32))
            << row->name << " " << dtype_name(type);
      }
    }
  }
}

}  // namespace
}  // namespace reckon::kernels
