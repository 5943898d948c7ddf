// The fast matmuls beyond what the plan picks for the shapes of matmul_test.cpp: every cut of
// fast_tile, its kernels for older devices, and activations beyond half precision's range.
#include <cmath>

#include "kernels/cpu/kernel_testing.h"
#include "kernels/cuda/device_testing.h"
#include "kernels/cuda/matmul_fast_cublas.h"
#include "kernels/cuda/matmul_fast_plan.h"
#include "kernels/cuda/matmul_fast_tile.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::reference_row;
using testing::expect_rows_close;
using testing::Random;
using testing::same_bits;

constexpr DType kWeightTypes[] = {DType::kP4, DType::kP8, DType::kF16, DType::kBF16};

double tolerance(DType weights) {
  return weights == DType::kBF16 ? 5e-3 : 1e-3;
}

// Activations times a matrix, by the CPU's reference.
struct Problem {
  Problem(DType type, int64_t rows, int64_t n, int64_t k, Random& random,
          kernels::testing::Runner& host)
      : x(random.floats(rows * k)), weight(random.weights(type, n, k)) {
    args.weight = weight.data();
    args.weight_type = type;
    args.rows = rows;
    args.n = n;
    args.k = k;
    multiply(host);
  }
  void multiply(kernels::testing::Runner& host) {
    product.assign(static_cast<size_t>(args.rows * args.n), 0);
    args.x = x.data();
    args.out = product.data();
    host.run(reference_row(Op::kMatmul), args);
  }
  [[nodiscard]] MatmulArgs into(std::vector<float>& out) const {
    out.assign(product.size(), 0);
    MatmulArgs copy = args;
    copy.out = out.data();
    return copy;
  }

  std::vector<float> x, product;
  std::vector<uint8_t> weight;
  MatmulArgs args;
};

class CudaMatmulFast : public testing::DeviceTest {
 protected:
  // A kernel that takes MatmulArgs, with fast_tile's scratch; twice, for the same bits.
  template <typename Kernel>
  void check(const Problem& problem, const Kernel& kernel) {
    std::vector<float> out, again;
    const MatmulArgs args = problem.into(out);
    const uint64_t bytes = fast_tile_scratch_bytes(call_of(args, Phase::kPrefill), {}, 1);
    device->launch(kernel, args, bytes);
    expect_rows_close(out, problem.product, args.rows, tolerance(args.weight_type));
    device->launch(kernel, problem.into(again), bytes);
    EXPECT_TRUE(same_bits(out, again)) << "two runs differ";
  }

  Random random{41};
};

// Tiles of all sizes are kernels of their own; a split is a number to them, so that the other
// splits need no more than one type.
TEST_F(CudaMatmulFast, EveryCutMatchesTheReference) {
  if (backend->device().features != "sm_90") GTEST_SKIP() << "cuts are those of sm_90 kernels";
  for (const DType type : kWeightTypes) {
    const Problem many(type, 260, 140, 520, random, host), few(type, 5, 270, 576, random, host);
    for (const int slices : {1, 2}) {
      for (const int tokens : {16, 32, 64, 128, 160, 192, 256}) {
        for (const int split : {1, 2, 3, 4, 6, 8}) {
          if (tokens > 128 && (slices > 1 || split > 1)) continue;
          if (type != DType::kP4 && split != 1 && split != 3) continue;
          SCOPED_TRACE(std::string(dtype_name(type)) + " " + std::to_string(slices) + " x " +
                       std::to_string(tokens) + " / " + std::to_string(split));
          check(tokens <= 32 ? few : many, [&](const MatmulArgs& args, KernelContext& context) {
            matmul_fast_tile_cut(args, {slices, tokens, split}, context);
          });
        }
      }
    }
  }
}

TEST_F(CudaMatmulFast, KernelsOfOlderDevicesMatchTheReference) {
  for (const DType type : kWeightTypes) {
    for (const int64_t rows : {1, 16, 17, 33, 70, 130}) {
      const Problem problem(type, rows, random.integer(1, 300), random.integer(1, 700), random,
                            host);
      check(problem, matmul_fast_tile_mma);
    }
  }
}

TEST_F(CudaMatmulFast, CompositionsOfOlderDevicesMatchTheReference) {
  for (const DType type : kWeightTypes) {
    const int64_t rows = 37, n = 150, k = 333;
    const Problem gate(type, rows, n, k, random, host);
    Problem up(type, rows, n, k, random, host);
    up.x = gate.x;
    up.multiply(host);
    std::vector<float> first(gate.product.size()), second = first, expected = first;
    MatmulGroupArgs group{
        gate.args.x, {{gate.weight.data(), first.data(), n}, {up.weight.data(), second.data(), n}},
        2,           type,
        rows,        k,
        {}};
    group.x = gate.x.data();
    device->launch(matmul_group_fast_tile_mma, group,
                   fast_tile_scratch_bytes(call_of(group, Phase::kPrefill), {}, 1));
    expect_rows_close(first, gate.product, rows, tolerance(type));
    expect_rows_close(second, up.product, rows, tolerance(type));
    for (size_t i = 0; i < expected.size(); ++i) {
      const double g = gate.product[i];
      expected[i] = static_cast<float>(g / (1 + std::exp(-g)) * up.product[i]);
    }
    const MatmulSwigluArgs swiglu{
        gate.x.data(), gate.weight.data(), up.weight.data(), type, first.data(), rows, n, k, {}};
    device->launch(matmul_swiglu_fast_tile_mma, swiglu,
                   fast_tile_scratch_bytes(call_of(swiglu, Phase::kPrefill), {}, 1));
    expect_rows_close(first, expected, rows, 3 * tolerance(type));
  }
}

// Rows beyond half precision's range at either end, between ordinary ones.
TEST_F(CudaMatmulFast, RowsOfAnyMagnitudeMatchTheReference) {
  for (const DType type : kWeightTypes) {
    Problem problem(type, 45, 70, 577, random, host);
    for (int64_t r = 0; r < problem.args.rows; ++r) {
      const float scale = r % 5 == 3 ? 1e6F : r % 5 == 4 ? 1e-9F : 1.0F;
      for (int64_t i = 0; i < problem.args.k; ++i) problem.x[r * problem.args.k + i] *= scale;
    }
    problem.multiply(host);
    for_each_row(Op::kMatmul, [&](const Variant& row) {
      if (row.numerics != NumericsClass::kFast) return;
      std::vector<float> out;
      const MatmulArgs args = problem.into(out);
      if (!row.supports(call_of(args, Phase::kPrefill)).empty()) return;
      device->run(row, args);
      expect_rows_close(out, problem.product, args.rows, tolerance(type));
    });
  }
}

// Where the library is faster at unpacked weights, the plan takes it.
TEST(FastMatmul, SmallPlainWeightsGoToTheLibrary) {
  const auto prefers_tile = [](DType type, int64_t rows, int64_t n, int64_t k) {
    const OpCall call{Op::kMatmul, Phase::kPrefill, type, rows, n, k, 0};
    return fast_tile_preference(call) > fast_cublas_preference(call);
  };
  for (const DType type : kWeightTypes) {
    const bool packed = type == DType::kP4 || type == DType::kP8;
    EXPECT_TRUE(prefers_tile(type, 2048, 4096, 4096));
    EXPECT_TRUE(prefers_tile(type, 256, 1024, 4096));
    EXPECT_EQ(prefers_tile(type, 2048, 1024, 4096), packed);
    EXPECT_EQ(prefers_tile(type, 512, 576, 1536), packed);
  }
}

// The switch's shapes that make a difference, one after another.
TEST_F(CudaMatmulFast, TilesOfEveryShapeMatchTheReference) {
  const Problem problem(DType::kP4, 300, 400, 320, random, host);
  const Variant& row = row_of(Op::kMatmul, kFastTile);
  for (const TileShape shape :
       {TileShape::kAuto, TileShape::kTall, TileShape::kWide, TileShape::kSquare}) {
    std::vector<float> out;
    KernelParams wanted;
    wanted.tile = shape;
    device->run(row, problem.into(out), wanted);
    expect_rows_close(out, problem.product, 300, tolerance(DType::kP4));
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
