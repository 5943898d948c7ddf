// What exact attention promises: a row's bits depend on its own position only; and rope_attention
// is its parts, fast or exact.
#include <tuple>

#include "kernels/cuda/attention_testing.h"

namespace reckon::kernels::cuda {
namespace {

using testing::Heads;
using testing::Outcome;
using testing::same_bits;
using testing::Sequence;

using CudaAttentionExact = testing::AttentionTest;
using CudaRopeAttention = testing::AttentionTest;

TEST_F(CudaAttentionExact, RowsDependOnTheirPositionOnly) {
  for (const Heads& heads :
       {Heads{6, 2, 40}, Heads{8, 2, 64}, Heads{3, 1, 128}, Heads{8, 1, 256}}) {
    for (const DType type : {DType::kF16, DType::kF32}) {
      Sequence s(heads, type, 0, 100, random);
      for_each_row(Op::kAttention, [&](const Variant& row) {
        if (row.numerics != NumericsClass::kExact || !supports(row, s, 1)) return;
        const Outcome whole = attend(row, s, s.rows, s.rows);
        for (const int64_t chunk : {1, 3, 7, 16, 17, 64}) {
          const Outcome parts = attend(row, s, s.rows + chunk, chunk);
          EXPECT_TRUE(same_bits(parts.out, whole.out)) << "chunks of " << chunk;
        }
      });
    }
  }
}

TEST_F(CudaAttentionExact, RowsOfLongContextsDependOnTheirPositionOnly) {
  for (const int64_t first : {1015, 2040, 8185}) {
    Sequence s({8, 2, 64}, DType::kF16, first, 20, random);
    const Variant& row = row_of(Op::kAttention, "exact_mma");
    const Outcome whole = attend(row, s, first + s.rows, s.rows);
    for (const int64_t chunk : {1, 3, 8, 16}) {
      const Outcome parts = attend(row, s, first + 1000, chunk);
      EXPECT_TRUE(same_bits(parts.out, whole.out)) << chunk << " rows at " << first;
    }
  }
}

// A key or value that is not a number spoils the rows that see it, and no row before them. (Tensor
// cores multiply what they mask: see attention.h.)
TEST_F(CudaAttentionExact, BadRowsDoNotReachBack) {
  constexpr int64_t kRows = 12, kBad = 6, kDim = 40;
  const Sequence clean({1, 1, kDim}, DType::kF32, 0, kRows, random);
  for_each_row(Op::kAttention, [&](const Variant& row) {
    if (row.numerics == NumericsClass::kFast || !supports(row, clean, kRows)) return;
    Sequence s = clean;
    const Outcome expected = attend(row, s, kRows, kRows);
    Sequence bad_k = clean, bad_v = clean;
    bad_k.k[kBad * kDim + 3] = bad_v.v[kBad * kDim + 3] = std::nanf("");
    for (Sequence* bad : {&bad_k, &bad_v}) {
      const Outcome outcome = attend(row, *bad, kRows, kRows);
      for (int64_t i = 0; i < kBad * kDim; ++i) EXPECT_EQ(outcome.out[i], expected.out[i]);
      for (int64_t r = kBad; r < kRows; ++r) EXPECT_TRUE(std::isnan(outcome.out[r * kDim + 3]));
    }
  });
}

// What rope_attention does beyond attention.
struct Rotation {
  int64_t dims = 0;
  RopePairing pairing = RopePairing::kHalf;
  const float* q_norm = nullptr;
  const float* k_norm = nullptr;
};

TEST_F(CudaRopeAttention, IsItsParts) {
  constexpr double kBase = 10000;
  constexpr float kEpsilon = 1e-6F;
  const std::vector<float> weights = random.floats(512);
  for (const Heads& heads :
       {Heads{4, 2, 64}, Heads{6, 2, 128}, Heads{5, 1, 80}, Heads{6, 1, 256}}) {
    const Rotation rotations[] = {
        {heads.dim, RopePairing::kHalf, weights.data(), weights.data() + 256},
        {heads.dim / 2, RopePairing::kHalf, nullptr, nullptr},
        {heads.dim / 4, RopePairing::kHalf, weights.data() + 256, weights.data()},
        {heads.dim, RopePairing::kAdjacent, nullptr, nullptr},
        {heads.dim / 2, RopePairing::kAdjacent, weights.data(), nullptr}};
    for (const Rotation& rotation : rotations) {
      for (const auto& [type, rows, chunk] :
           {std::tuple<DType, int64_t, int64_t>{DType::kF16, 3, 1},
            {DType::kF16, 19, 7},
            {DType::kF16, 40, 40},
            {DType::kF32, 5, 2}}) {
        Sequence s(heads, type, 70, rows, random);
        for_each_row(Op::kRopeAttention, [&](const Variant& row) {
          if (!supports(row, s, chunk)) return;
          const Outcome fused = in_chunks(s, 130, chunk, [&](const AttentionArgs& args) {
            device->run(row, RopeAttentionArgs{args, rotation.q_norm, rotation.k_norm, kEpsilon,
                                               rotation.dims, kBase, rotation.pairing});
          });
          const Outcome apart = in_chunks(s, 130, chunk, [&](AttentionArgs args) {
            const auto turned = [&](const float* from, int64_t count, const float* norm) {
              std::vector<float> x(from, from + args.rows * count * args.head_dim);
              if (norm != nullptr) {
                device->run(row_of(Op::kRmsNorm, "exact_cuda"),
                            RmsNormArgs{x.data(), norm, x.data(), args.rows * count, args.head_dim,
                                        kEpsilon});
              }
              device->run(row_of(Op::kRope, "exact_cuda"),
                          RopeArgs{x.data(), args.rows, count, args.head_dim, rotation.dims,
                                   args.first_position, kBase, rotation.pairing});
              return x;
            };
            const std::vector<float> q = turned(args.q, args.heads, rotation.q_norm);
            const std::vector<float> k = turned(args.k, args.kv_heads, rotation.k_norm);
            args.q = q.data();
            args.k = k.data();
            device->run(row_of(Op::kAttention, row.name), args);
          });
          EXPECT_TRUE(fused == apart) << heads.dim << " " << rotation.dims << " " << chunk;
        });
      }
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
