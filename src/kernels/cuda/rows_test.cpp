// The ops that work on rows of activations: every row of the table against the CPU's reference or
// the formula in float64, and what exact promises: a row alone has the bits that it has in a batch,
// and a composition those of its parts.
#include <cmath>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::reference_row;
using testing::expect_rows_close;
using testing::Random;

// Float32 with a good order of summation stays well under the 1e-4 of docs/numerics.md.
constexpr double kTolerance = 2e-6;

// Around the widths at which kernels change their ways, and widths of models.
constexpr int64_t kWidths[] = {1, 3, 64, 127, 576, 577, 1024, 1025, 2880, 4096, 5120, 8193, 20002};

using CudaRows = testing::DeviceTest;

std::vector<float> normed(const std::vector<float>& x, const std::vector<float>& weight,
                          int64_t rows) {
  const auto k = static_cast<int64_t>(weight.size());
  std::vector<float> out(x.size());
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += std::pow(static_cast<double>(x[r * k + i]), 2);
    const double scale = 1 / std::sqrt(sum / static_cast<double>(k) + 1e-5);
    for (int64_t i = 0; i < k; ++i) {
      out[r * k + i] = static_cast<float>(x[r * k + i] * scale * weight[i]);
    }
  }
  return out;
}

TEST_F(CudaRows, RmsNormMatchesFloat64) {
  Random random(1);
  for (const int64_t k : kWidths) {
    for (const int64_t rows : {1, 5, 17}) {
      const std::vector<float> x = random.floats(rows * k, 3);
      const std::vector<float> weight = random.floats(k);
      const std::vector<float> expected = normed(x, weight, rows);
      for_each_row(Op::kRmsNorm, [&](const Variant& row) {
        std::vector<float> out(x.size());
        run(row, RmsNormArgs{x.data(), weight.data(), out.data(), rows, k, 1e-5F}, {&out});
        expect_rows_close(out, expected, rows, kTolerance);
        std::vector<float> in_place = x;
        device->run(row,
                    RmsNormArgs{in_place.data(), weight.data(), in_place.data(), rows, k, 1e-5F});
        EXPECT_EQ(in_place, out) << k;
        if (row.numerics != NumericsClass::kExact) return;
        std::vector<float> alone(x.size());
        for (int64_t r = 0; r < rows; ++r) {
          device->run(
              row, RmsNormArgs{x.data() + r * k, weight.data(), alone.data() + r * k, 1, k, 1e-5F});
        }
        EXPECT_EQ(alone, out) << rows << " x " << k;
      });
    }
  }
}

TEST_F(CudaRows, AddRmsNormIsItsParts) {
  Random random(2);
  for (const int64_t k : kWidths) {
    for (const int64_t rows : {1, 5}) {
      const std::vector<float> x = random.floats(rows * k), y = random.floats(rows * k);
      const std::vector<float> weight = random.floats(k);
      for_each_row(Op::kAddRmsNorm, [&](const Variant& row) {
        std::vector<float> sum(x.size()), normed_sum(x.size());
        const auto part = [&](Op op, const auto& args) {
          for_each_row(op, [&](const Variant& of) {
            if (of.numerics == row.numerics) device->run(of, args);
          });
        };
        part(Op::kAdd, AddArgs{y.data(), x.data(), sum.data(), rows, k});
        part(Op::kRmsNorm,
             RmsNormArgs{sum.data(), weight.data(), normed_sum.data(), rows, k, 1e-5F});
        std::vector<float> residual = y, out(x.size());
        run(row,
            AddRmsNormArgs{x.data(), residual.data(), weight.data(), out.data(), rows, k, 1e-5F},
            {&residual, &out});
        EXPECT_EQ(residual, sum) << rows << " x " << k;
        EXPECT_EQ(out, normed_sum) << rows << " x " << k;
      });
    }
  }
}

TEST_F(CudaRows, SwigluMatchesFloat64) {
  Random random(3);
  for (const int64_t k : {1, 3, 9, 576, 577, 14336}) {
    for (const int64_t rows : {1, 2, 17}) {
      std::vector<float> gate = random.floats(rows * k, 6);
      gate[0] = -200;  // e^200 overflows float32: the product is -0
      const std::vector<float> up = random.floats(rows * k);
      std::vector<float> expected(gate.size());
      for (size_t i = 0; i < gate.size(); ++i) {
        const double g = gate[i];
        expected[i] = static_cast<float>(g / (1 + std::exp(-g)) * static_cast<double>(up[i]));
      }
      for_each_row(Op::kSwiglu, [&](const Variant& row) {
        std::vector<float> out(gate.size());
        run(row, SwigluArgs{gate.data(), up.data(), out.data(), rows, k}, {&out});
        EXPECT_NEAR(out[0], 0, 1e-30);
        for (size_t i = 1; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], expected[i], 2e-6 * std::fabs(expected[i]) + 1e-30) << i;
        }
        std::vector<float> in_place = gate;
        device->run(row, SwigluArgs{in_place.data(), up.data(), in_place.data(), rows, k});
        EXPECT_EQ(in_place, out);
      });
    }
  }
}

TEST_F(CudaRows, AddAdds) {
  Random random(4);
  for (const int64_t k : {1, 3, 577, 4096}) {
    const std::vector<float> x = random.floats(5 * k), y = random.floats(5 * k);
    std::vector<float> expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i] + y[i];
    for_each_row(Op::kAdd, [&](const Variant& row) {
      std::vector<float> out = x;  // in place
      run(row, AddArgs{out.data(), y.data(), out.data(), 5, k}, {&out});
      EXPECT_EQ(out, expected);
    });
  }
}

TEST_F(CudaRows, RopeMatchesTheReference) {
  Random random(5);
  constexpr int64_t kRows = 5, kHeads = 3;
  for (const int64_t head_dim : {8, 16, 64, 80, 128, 256}) {
    for (const int64_t dims : {head_dim, head_dim / 4 * 2}) {
      for (const RopePairing pairing : {RopePairing::kHalf, RopePairing::kAdjacent}) {
        for (const int64_t first : {0, 4095, 999990}) {
          const std::vector<float> x = random.floats(kRows * kHeads * head_dim);
          const auto args = [&](float* data, int64_t row, int64_t rows) {
            return RopeArgs{data, rows, kHeads, head_dim, dims, first + row, 500000.0, pairing};
          };
          std::vector<float> expected = x;
          host.run(reference_row(Op::kRope), args(expected.data(), 0, kRows));
          for_each_row(Op::kRope, [&](const Variant& row) {
            std::vector<float> out = x, alone = x;
            run(row, args(out.data(), 0, kRows), {&out});
            expect_rows_close(out, expected, kRows, kTolerance);
            for (int64_t r = 0; r < kRows; ++r) {
              device->run(row, args(alone.data() + r * kHeads * head_dim, r, 1));
            }
            EXPECT_EQ(alone, out) << head_dim << " " << dims << " at " << first;
          });
        }
      }
    }
  }
}

TEST_F(CudaRows, EmbeddingIsTheDequantisedRow) {
  Random random(6);
  constexpr int64_t kVocabulary = 131;
  for (const DType type : {DType::kP4, DType::kP8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const int64_t k : {1, 64, 83, 577, 2880}) {
      const std::vector<uint8_t> table = random.weights(type, kVocabulary, k);
      std::vector<int32_t> tokens = {kVocabulary - 1, 0, 3, 3};
      while (tokens.size() < 17) {
        tokens.push_back(static_cast<int32_t>(random.integer(0, kVocabulary - 1)));
      }
      const auto rows = static_cast<int64_t>(tokens.size());
      std::vector<float> expected(static_cast<size_t>(rows * k));
      for (int64_t r = 0; r < rows; ++r) {
        dequantize_row(type, table.data() + tokens[r] * row_bytes(type, k), k,
                       expected.data() + r * k);
      }
      for_each_row(Op::kEmbedding, [&](const Variant& row) {
        std::vector<float> out(expected.size());
        run(row, EmbeddingArgs{table.data(), type, tokens.data(), out.data(), rows, kVocabulary, k},
            {&out});
        EXPECT_EQ(out, expected) << dtype_name(type) << " k " << k;
      });
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
