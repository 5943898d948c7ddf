// The ops of routed experts: routes against the CPU's reference, matmuls against it and against
// themselves, row by row, and against the plain matmul.
#include "kernels/cpu/expert_testing.h"

#include <array>
#include <cmath>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::Experts;
using kernels::testing::ids_of;
using kernels::testing::reference_row;
using kernels::testing::weights_of;
using testing::expect_rows_close;
using testing::Random;
using testing::same_bits;

using CudaExperts = testing::DeviceTest;

// docs/numerics.md: of float32 activations, and of half ones.
double tolerance_of(const Variant& row) {
  return std::string(row.name) == "exact_mma" ? 5e-3 : 1e-4;
}

bool runs(const Variant& row, DType type) {
  OpCall call;
  call.weight_type = type;
  return row.supports(call).empty();
}

constexpr DType kWeightTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kP8, DType::kP4};

TEST_F(CudaExperts, RouteMatchesTheReference) {
  constexpr int64_t kRows = 19;
  Random random(60);
  for (const auto& [experts, top_k] : {std::pair<int64_t, int64_t>{1, 1},
                                       {5, 5},
                                       {8, 3},
                                       {33, 32},
                                       {37, 3},
                                       {256, 8},
                                       {512, 10},
                                       {1000, 64}}) {
    for (const bool tied : {false, true}) {
      std::vector<float> logits = random.floats(kRows * experts, 2);
      if (tied) {
        for (float& logit : logits) logit = std::round(logit);
      }
      for (const RouteWeights weights : {RouteWeights::kOfAll, RouteWeights::kOfSelected}) {
        const auto size = static_cast<size_t>(kRows * 2 * top_k);
        std::vector<float> expected(size);
        RouteArgs args{logits.data(), expected.data(), kRows, experts, top_k, weights};
        host.run(reference_row(Op::kRoute), args);
        for_each_row(Op::kRoute, [&](const Variant& row) {
          std::vector<float> selection(size), alone(size);
          args.selection = selection.data();
          run(row, args, {&selection});
          for (int64_t r = 0; r < kRows; ++r) {
            EXPECT_EQ(ids_of(selection, r, top_k), ids_of(expected, r, top_k)) << experts;
            const std::vector<float> shares = weights_of(expected, r, top_k);
            for (int64_t j = 0; j < top_k; ++j) {
              EXPECT_NEAR(weights_of(selection, r, top_k)[j], shares[j], 1e-6 * shares[j] + 1e-30);
            }
            device->run(row, RouteArgs{logits.data() + r * experts, alone.data() + r * 2 * top_k, 1,
                                       experts, top_k, weights});
          }
          EXPECT_TRUE(same_bits(alone, selection)) << experts;
        });
      }
    }
  }
}

TEST_F(CudaExperts, RouteOfWhatIsNoNumberStaysInRange) {
  for_each_row(Op::kRoute, [&](const Variant& row) {
    for (const int64_t bad : {0, 2, 4, 5}) {
      std::vector<float> logits = {1, 5, 2, 4, 3};
      for (int64_t i = 0; i < 5; ++i) {
        if (bad == i || bad == 5) logits[i] = std::nanf("");
      }
      std::vector<float> selection(6);
      for (const RouteWeights weights : {RouteWeights::kOfAll, RouteWeights::kOfSelected}) {
        device->run(row, RouteArgs{logits.data(), selection.data(), 1, 5, 3, weights});
        const std::vector<int32_t> ids = ids_of(selection, 0, 3);
        EXPECT_TRUE(ids[0] >= 0 && ids[0] < ids[1] && ids[1] < ids[2] && ids[2] < 5) << bad;
        for (const float weight : weights_of(selection, 0, 3)) EXPECT_TRUE(std::isnan(weight));
      }
    }
  });
}

// Few rows, tiles of pairs with tails, several slabs; experts that begin within a strip.
struct Shape {
  int64_t rows, experts, top_k, n, k;
};
constexpr Shape kShapes[] = {{1, 6, 2, 16, 1},    {4, 6, 2, 48, 531},   {16, 5, 3, 32, 64},
                             {17, 5, 3, 37, 200}, {70, 9, 4, 37, 600},  {3, 40, 8, 80, 600},
                             {50, 1, 1, 33, 129}, {21, 256, 8, 5, 577}, {70, 2, 2, 140, 1100},
                             {1030, 7, 3, 20, 70}};

TEST_F(CudaExperts, MatmulsMatchTheReference) {
  Random random(62);
  for (const DType type : kWeightTypes) {
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(std::string(dtype_name(type)) + " rows " + std::to_string(s.rows));
      std::vector<float> expected, out;
      const Experts gates(type, s.rows, s.experts, s.top_k, s.n, s.k, 1, random);
      host.run(reference_row(Op::kExpertMatmulSwiglu), gates.swiglu(expected, 0, s.rows));
      for_each_row(Op::kExpertMatmulSwiglu, [&](const Variant& row) {
        if (!runs(row, type)) return;
        run(row, gates.swiglu(out, 0, s.rows), {&out});
        expect_rows_close(out, expected, s.rows * s.top_k, tolerance_of(row));
      });
      const Experts down(type, s.rows, s.experts, s.top_k, s.n, s.k, s.top_k, random);
      host.run(reference_row(Op::kExpertMatmulCombine), down.combine(expected, 0, s.rows));
      for_each_row(Op::kExpertMatmulCombine, [&](const Variant& row) {
        if (!runs(row, type)) return;
        run(row, down.combine(out, 0, s.rows), {&out});
        expect_rows_close(out, expected, s.rows, tolerance_of(row));
      });
    }
  }
}

// Each row alone and in batches: pairs by themselves, and groups of every size.
TEST_F(CudaExperts, RowsDoNotDependOnTheBatch) {
  constexpr int64_t kRows = 41;
  Random random(63);
  for (const DType type : kWeightTypes) {
    const Experts gates(type, kRows, 5, 3, 40, 531, 1, random);
    const Experts down(type, kRows, 5, 3, 40, 531, 3, random);
    std::vector<float> out;
    const auto check = [&](Op op, int64_t columns, const auto& args_of) {
      for_each_row(op, [&](const Variant& row) {
        if (!runs(row, type)) return;
        std::vector<float> alone;
        for (int64_t r = 0; r < kRows; ++r) {
          device->run(row, args_of(r, 1));
          alone.insert(alone.end(), out.begin(), out.end());
        }
        for (const int64_t rows : {2, 3, 8, 15, 16, 17, 18, 33, 41}) {
          for (const int64_t from : {int64_t{0}, kRows - rows}) {
            device->run(row, args_of(from, rows));
            const std::vector<float> part(alone.begin() + from * columns,
                                          alone.begin() + (from + rows) * columns);
            EXPECT_TRUE(same_bits(out, part)) << dtype_name(type) << ' ' << rows << ' ' << from;
          }
        }
      });
    };
    check(Op::kExpertMatmulSwiglu, gates.top_k * gates.n,
          [&](int64_t from, int64_t count) { return gates.swiglu(out, from, count); });
    check(Op::kExpertMatmulCombine, down.n,
          [&](int64_t from, int64_t count) { return down.combine(out, from, count); });
  }
}

TEST_F(CudaExperts, AnExpertGivesTheBitsOfThePlainMatmul) {
  constexpr int64_t kRows = 20, kOutputs = 32;
  Random random(64);
  for (const DType type : kWeightTypes) {
    Experts of(type, kRows, 4, 1, kOutputs, 300, 1, random);
    for (int64_t r = 0; r < kRows; ++r) of.selection[2 * r + 1] = 1;
    for (const char* name : {"exact_simt", "exact_mma"}) {
      const Variant& row = row_of(Op::kExpertMatmulCombine, name);
      if (!runs(row, type)) continue;
      std::vector<float> out;
      device->run(row, of.combine(out, 0, kRows));
      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<float> expected(kOutputs);
        MatmulArgs plain;
        plain.x = of.x.data() + r * of.k;
        plain.weight =
            of.first.data() + ids_of(of.selection, r, 1)[0] * kOutputs * row_bytes(type, of.k);
        plain.weight_type = type;
        plain.out = expected.data();
        plain.rows = 1;
        plain.n = kOutputs;
        plain.k = of.k;
        device->run(row_of(Op::kMatmul, name), plain);
        const std::vector<float> part(out.begin() + r * kOutputs, out.begin() + (r + 1) * kOutputs);
        EXPECT_TRUE(same_bits(part, expected)) << name << " " << dtype_name(type) << " row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
