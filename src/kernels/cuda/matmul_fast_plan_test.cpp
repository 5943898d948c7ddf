// The cuts that fast_tile's model picks are ones that its kernels have. Needs no GPU.
#include "kernels/cuda/matmul_fast_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace reckon::kernels::cuda {
namespace {

constexpr int kMultiprocessors = 132;

TEST(TileCut, IsOneThatTheKernelsHave) {
  for (const TileShape shape :
       {TileShape::kAuto, TileShape::kTall, TileShape::kWide, TileShape::kSquare}) {
    for (const bool swiglu : {false, true}) {
      for (const int64_t rows : {1, 15, 16, 17, 33, 100, 128, 129, 512, 2048}) {
        for (const int64_t n : {1, 16, 576, 4096, 128256}) {
          for (const int64_t k : {1, 64, 128, 576, 4096, 14336}) {
            const TileCut cut = tile_cut(shape, swiglu, rows, n, k, kMultiprocessors);
            const std::string what = std::to_string(rows) + "x" + std::to_string(n) + "x" +
                                     std::to_string(k) + ": " + std::to_string(cut.slices) + "x" +
                                     std::to_string(cut.tokens) + "/" + std::to_string(cut.split);
            EXPECT_TRUE(cut.slices == 1 || cut.slices == 2) << what;
            EXPECT_TRUE(!swiglu || cut.slices == 2) << what;
            EXPECT_TRUE(cut.tokens >= 16 && cut.tokens <= 256 && cut.tokens % 16 == 0) << what;
            EXPECT_TRUE(cut.tokens <= 128 || (cut.slices == 1 && cut.split == 1)) << what;
            EXPECT_LE(cut.split, std::max<int64_t>(1, (k + 63) / 64)) << what;
          }
        }
      }
    }
  }
}

TEST(TileCut, HasTheShapeThatWasAskedFor) {
  const auto cut = [](TileShape shape) {
    return tile_cut(shape, false, 2048, 4096, 4096, kMultiprocessors);
  };
  EXPECT_GT(128 * cut(TileShape::kTall).slices, cut(TileShape::kTall).tokens);
  EXPECT_LT(128 * cut(TileShape::kWide).slices, cut(TileShape::kWide).tokens);
  EXPECT_EQ(128 * cut(TileShape::kSquare).slices, cut(TileShape::kSquare).tokens);
}

// Few tiles share out K among blocks, many have no need to.
TEST(TileCut, SplitsKWhereTilesAreFew) {
  EXPECT_GT(tile_cut(TileShape::kAuto, false, 32, 1024, 4096, kMultiprocessors).split, 1);
  EXPECT_EQ(tile_cut(TileShape::kAuto, false, 2048, 14336, 4096, kMultiprocessors).split, 1);
}

TEST(TileCut, PadsTokensToAtoms) {
  EXPECT_EQ(padded_tokens(1), 8);
  EXPECT_EQ(padded_tokens(8), 8);
  EXPECT_EQ(padded_tokens(17), 24);
}

}  // namespace
}  // namespace reckon::kernels::cuda
