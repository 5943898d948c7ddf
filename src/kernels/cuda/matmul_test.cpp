// Matmuls of every kind and weight type: every row of the table against the CPU's reference on the
// same weights, and what exact promises.
#include <cmath>
#include <limits>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::reference_row;
using testing::expect_rows_close;
using testing::Random;

constexpr DType kWeightTypes[] = {DType::kP4, DType::kP8, DType::kF16, DType::kBF16, DType::kF32};

// Half precision and bf16 are allowed 5e-3 and 2e-2 (docs/numerics.md), in which a forgotten column
// of a long row could hide.
double tolerance(const Variant& row, DType weights) {
  const bool floats = row.numerics == NumericsClass::kReference || weights == DType::kF32 ||
                      row.name == std::string("exact_simt");
  if (floats) return 1e-4;
  return weights == DType::kBF16 ? 5e-3 : 1e-3;
}

struct Shape {
  int64_t rows, n, k;
};

// Activations times two matrices of one shape, and the products by the CPU's reference.
struct Problem {
  Problem(DType weight_type, const Shape& of, Random& random, kernels::testing::Runner& host)
      : type(weight_type), shape(of), x(random.floats(of.rows * of.k)) {
    for (int i = 0; i < 2; ++i) {
      weights[i] = random.weights(type, shape.n, shape.k);
      products[i].resize(static_cast<size_t>(shape.rows * shape.n));
      host.run(reference_row(Op::kMatmul), matmul(i, 0, shape.rows, products[i]));
    }
  }

  // Of the rows first ... first + rows - 1; `out` gets them.
  [[nodiscard]] MatmulArgs matmul(int weight, int64_t first, int64_t rows,
                                  std::vector<float>& out) const {
    MatmulArgs args;
    args.x = x.data() + first * shape.k;
    args.weight = weights[weight].data();
    args.weight_type = type;
    args.out = out.data();
    args.rows = rows;
    args.n = shape.n;
    args.k = shape.k;
    return args;
  }
  [[nodiscard]] MatmulGroupArgs group(std::vector<float>& first, std::vector<float>& second,
                                      int64_t second_n) const {
    MatmulGroupArgs args;
    args.x = x.data();
    args.parts[0] = {weights[0].data(), first.data(), shape.n};
    args.parts[1] = {weights[1].data(), second.data(), second_n};
    args.count = 2;
    args.weight_type = type;
    args.rows = shape.rows;
    args.k = shape.k;
    return args;
  }
  [[nodiscard]] MatmulSwigluArgs swiglu(std::vector<float>& out) const {
    MatmulSwigluArgs args;
    args.x = x.data();
    args.gate = weights[0].data();
    args.up = weights[1].data();
    args.weight_type = type;
    args.out = out.data();
    args.rows = shape.rows;
    args.n = shape.n;
    args.k = shape.k;
    return args;
  }

  DType type;
  Shape shape;
  std::vector<float> x;
  std::vector<uint8_t> weights[2];
  std::vector<float> products[2];
};

class CudaMatmul : public testing::DeviceTest {
 protected:
  // Every row of the three ops that can run the shape.
  void check(DType type, const Shape& shape) {
    SCOPED_TRACE(std::to_string(shape.rows) + "x" + std::to_string(shape.n) + "x" +
                 std::to_string(shape.k) + " " + std::string(dtype_name(type)));
    const Problem problem(type, shape, random, host);
    const auto count = static_cast<size_t>(shape.rows * shape.n);
    std::vector<float> out(count);
    for_each_row(Op::kMatmul, [&](const Variant& row) {
      const MatmulArgs args = problem.matmul(0, 0, shape.rows, out);
      if (!row.supports(call_of(args, Phase::kPrefill)).empty()) return;
      run(row, args, {&out});
      expect_rows_close(out, problem.products[0], shape.rows, tolerance(row, type));
    });
    check_group(problem);
    std::vector<float> expected(count);
    for (size_t i = 0; i < count; ++i) {
      const double gate = problem.products[0][i];
      expected[i] = static_cast<float>(gate / (1 + std::exp(-gate)) * problem.products[1][i]);
    }
    for_each_row(Op::kMatmulSwiglu, [&](const Variant& row) {
      const MatmulSwigluArgs args = problem.swiglu(out);
      if (!row.supports(call_of(args, Phase::kPrefill)).empty()) return;
      run(row, args, {&out});
      expect_rows_close(out, expected, shape.rows, 3 * tolerance(row, type));
    });
  }

  // The second part has fewer weight rows than the first.
  void check_group(const Problem& problem) {
    const auto& [rows, n, k] = problem.shape;
    const int64_t less = (n + 1) / 2;
    std::vector<float> first(static_cast<size_t>(rows * n));
    std::vector<float> second(static_cast<size_t>(rows * less)), expected;
    for (int64_t r = 0; r < rows; ++r) {
      const auto from = problem.products[1].begin() + r * n;
      expected.insert(expected.end(), from, from + less);
    }
    for_each_row(Op::kMatmulGroup, [&](const Variant& row) {
      const MatmulGroupArgs args = problem.group(first, second, less);
      if (!row.supports(call_of(args, Phase::kPrefill)).empty()) return;
      run(row, args, {&first, &second});
      expect_rows_close(first, problem.products[0], rows, tolerance(row, problem.type));
      expect_rows_close(second, expected, rows, tolerance(row, problem.type));
    });
  }

  void for_each_exact(Op op, DType type, const std::function<void(const Variant&)>& body) const {
    for_each_row(op, [&](const Variant& row) {
      OpCall call;
      call.op = op;
      call.weight_type = type;
      call.rows = call.n = call.k = 64;
      if (row.numerics == NumericsClass::kExact && row.supports(call).empty()) body(row);
    });
  }

  Random random{11};
};

TEST_F(CudaMatmul, AnyRowsMatchTheReference) {
  for (const DType type : kWeightTypes) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      check(type, {rows, random.integer(1, 300), random.integer(1, 1300)});
    }
  }
}

TEST_F(CudaMatmul, TailsMatchTheReference) {
  for (const DType type : kWeightTypes) {
    for (const int64_t k : {1, 16, 48, 63, 64, 65, 127, 129}) {
      check(type, {random.integer(1, 17), 67, k});
    }
    for (const int64_t n : {1, 7, 8, 9, 15, 16, 17, 129}) {
      check(type, {random.integer(1, 40), n, 512});
    }
    check(type, {33, 135, 529});
    check(type, {70, 260, 320});
    check(type, {130, 131, 200});
    check(type, {257, 40, 136});
  }
}

TEST_F(CudaMatmul, ShapesOfModelsMatchTheReference) {
  for (const DType type : kWeightTypes) {
    check(type, {3, 2880, 2880});
    check(type, {18, 31, 10944});
    check(type, {40, 576, 1536});
  }
}

TEST_F(CudaMatmul, RefusesWithAReason) {
  for (const Op op : {Op::kMatmul, Op::kMatmulGroup, Op::kMatmulSwiglu}) {
    OpCall call;
    call.op = op;
    call.rows = call.n = 1;
    call.k = 64;
    for_each_row(op, [&](const Variant& row) {
      for (const DType type : {DType::kI32, DType::kQ4_1}) {
        call.weight_type = type;
        EXPECT_NE(row.supports(call), "");
      }
      call.weight_type = DType::kP4;
      const std::string reason = row.supports(call);
      EXPECT_TRUE(reason.empty() || reason == blaslt_missing_reason()) << reason;
    });
  }
}

TEST_F(CudaMatmul, ExactRowsDoNotDependOnTheBatch) {
  constexpr int64_t kRows = 33;
  for (const DType type : kWeightTypes) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{45, 1051}, {133, 64}}) {
      const Problem problem(type, {kRows, n, k}, random, host);
      for_each_exact(Op::kMatmul, type, [&](const Variant& row) {
        std::vector<float> alone, out(static_cast<size_t>(n));
        for (int64_t r = 0; r < kRows; ++r) {
          device->run(row, problem.matmul(0, r, 1, out));
          alone.insert(alone.end(), out.begin(), out.end());
        }
        for (const int64_t rows : {2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33}) {
          for (const int64_t first : {int64_t{0}, kRows - rows}) {
            out.assign(static_cast<size_t>(rows * n), 0);
            device->run(row, problem.matmul(0, first, rows, out));
            EXPECT_EQ(std::memcmp(out.data(), alone.data() + first * n, out.size() * 4), 0)
                << dtype_name(type) << " k " << k << ", " << rows << " rows from " << first;
          }
        }
      });
    }
  }
}

TEST_F(CudaMatmul, ExactCompositionsAreTheirParts) {
  for (const DType type : kWeightTypes) {
    for (const Shape& shape : {Shape{1, 300, 577}, {5, 67, 1051}, {16, 512, 320}, {19, 48, 64}}) {
      const Problem problem(type, shape, random, host);
      const auto count = static_cast<size_t>(shape.rows * shape.n);
      const auto part = [&](const Variant& of, int weight) {
        std::vector<float> out(count);
        for_each_exact(Op::kMatmul, type, [&](const Variant& row) {
          if (row.name != std::string(of.name)) return;
          device->run(row, problem.matmul(weight, 0, shape.rows, out));
        });
        return out;
      };
      for_each_exact(Op::kMatmulGroup, type, [&](const Variant& row) {
        std::vector<float> first(count), second(count);
        device->run(row, problem.group(first, second, shape.n));
        EXPECT_EQ(first, part(row, 0)) << dtype_name(type);
        EXPECT_EQ(second, part(row, 1)) << dtype_name(type);
      });
      for_each_exact(Op::kMatmulSwiglu, type, [&](const Variant& row) {
        const std::vector<float> gate = part(row, 0), up = part(row, 1);
        std::vector<float> expected(count), out(count);
        for_each_row(Op::kSwiglu, [&](const Variant& of) {
          if (of.numerics != NumericsClass::kExact) return;
          device->run(of, SwigluArgs{gate.data(), up.data(), expected.data(), shape.rows, shape.n});
        });
        device->run(row, problem.swiglu(out));
        EXPECT_EQ(out, expected) << dtype_name(type);
      });
    }
  }
}

TEST_F(CudaMatmul, BadActivationsSpoilTheirOwnRowOnly) {
  constexpr int64_t kRows = 19, kN = 21, kK = 128;
  for (const DType type : kWeightTypes) {
    const Problem clean(type, {kRows, kN, kK}, random, host);
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      Problem spoiled = clean;
      spoiled.x[3 * kK + 70] = bad;
      for_each_exact(Op::kMatmul, type, [&](const Variant& row) {
        std::vector<float> expected(static_cast<size_t>(kRows * kN)), out = expected;
        device->run(row, clean.matmul(0, 0, kRows, expected));
        device->run(row, spoiled.matmul(0, 0, kRows, out));
        for (int64_t i = 0; i < kRows * kN; ++i) {
          if (i / kN == 3) {
            EXPECT_FALSE(std::isfinite(out[i])) << dtype_name(type) << " " << i % kN;
          } else {
            EXPECT_EQ(out[i], expected[i]) << dtype_name(type) << " row " << i / kN;
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
