// Tiles hold the weights that they were made from, whichever way they were packed. Needs no GPU.
#include "kernels/cuda/weight_tiles.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "kernels/cpu/kernel_testing.h"
#include "kernels/cuda/tile_type.h"

namespace reckon::kernels::cuda {
namespace {

using kernels::testing::Random;

constexpr DType kTypes[] = {DType::kP4, DType::kP8, DType::kF16, DType::kBF16, DType::kF32};

struct Matrix {
  Matrix(DType weight_type, int64_t weight_rows, int64_t columns, Random& random)
      : type(weight_type),
        n(weight_rows),
        k(columns),
        rows(random.weights(type, n, k)),
        tiles(static_cast<size_t>(tile_bytes(*tile_type(type), n, k)), uint8_t{0xff}) {}
  void pack(int64_t first, int64_t count) {
    const int64_t strip_bytes = tile_bytes(*tile_type(type), kTileRows, k);
    pack_tiles(*tile_type(type), rows.data(), n, k, first, count,
               tiles.data() + first * strip_bytes);
  }

  DType type;
  int64_t n, k;
  std::vector<uint8_t> rows, tiles;
};

TEST(WeightTiles, HoldEveryWeight) {
  Random random(51);
  for (const DType type : kTypes) {
    EXPECT_EQ(packed_row_bytes(*tile_type(type), 577), row_bytes(type, 577));
    for (const int64_t n : {1, 15, 16, 17, 67}) {
      for (const int64_t k : {1, 63, 64, 65, 577}) {
        Matrix matrix(type, n, k, random);
        matrix.pack(0, strips_of(n));
        std::vector<float> row(static_cast<size_t>(k)), expected = row;
        for (int64_t j = 0; j < n; ++j) {
          dequantize_row(type, matrix.rows.data() + j * row_bytes(type, k), k, expected.data());
          unpack_tile_row(*tile_type(type), matrix.tiles.data(), k, j, row.data());
          ASSERT_EQ(row, expected) << dtype_name(type) << " " << n << "x" << k << " row " << j;
        }
      }
    }
  }
}

TEST(WeightTiles, StripsArePackedOnTheirOwn) {
  Random random(52);
  for (const DType type : kTypes) {
    Matrix whole(type, 67, 200, random);
    Matrix parts = whole;
    whole.pack(0, 5);
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{3, 2}, {0, 1}, {1, 2}}) {
      parts.pack(first, count);
    }
    EXPECT_EQ(parts.tiles, whole.tiles) << dtype_name(type);
  }
}

TEST(WeightTiles, PaddingRowsAreZero) {
  Random random(53);
  for (const DType type : kTypes) {
    Matrix matrix(type, 18, 130, random);
    matrix.pack(0, 2);
    std::vector<float> row(130);
    for (int64_t j = 18; j < 32; ++j) {
      unpack_tile_row(*tile_type(type), matrix.tiles.data(), 130, j, row.data());
      EXPECT_EQ(row, std::vector<float>(130)) << dtype_name(type) << " row " << j;
    }
  }
}

}  // namespace
}  // namespace reckon::kernels::cuda
