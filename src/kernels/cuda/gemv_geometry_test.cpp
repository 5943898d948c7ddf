// What gemv_mma launches fits the device, whatever is asked for. Needs no GPU.
#include "kernels/cuda/gemv_geometry.h"

#include <gtest/gtest.h>

#include <string>

namespace reckon::kernels::cuda {
namespace {

constexpr TileType kTypes[] = {TileType::kP4, TileType::kP8, TileType::kF16, TileType::kBf16};

// As gemv_prepare() finds them on an H200 and on an A100.
GemvDevice h200() {
  return {132, 90, 227 * 1024, 228 * 1024, {{132, 264}, {66, 132}, {30, 62}, {15, 30}}};
}
GemvDevice a100() {
  return {108, 80, 163 * 1024, 164 * 1024, {{108, 216}, {}, {}, {}}};
}

void expect_sound(const GemvDevice& device, TileType type, int64_t rows, int64_t k, int64_t units,
                  const GemvTuning& wanted) {
  const GemvGeometry geometry = gemv_geometry(device, type, rows, k, units, wanted);
  const GemvTuning& tuning = geometry.tuning;
  const std::string what = std::to_string(static_cast<int>(type)) + ": " + std::to_string(rows) +
                           " rows, " + std::to_string(units) + " strips of " + std::to_string(k);
  ASSERT_TRUE(geometry.fits) << what;
  EXPECT_LE(geometry.shared.bytes, block_share(device, tuning.blocks_per_sm)) << what;
  EXPECT_EQ(geometry.shared.x % 16, 0) << what;
  EXPECT_EQ(geometry.shared.partials % 16, 0) << what;
  EXPECT_EQ(geometry.shared.barriers % 8, 0) << what;
  EXPECT_EQ(geometry.blocks % tuning.cluster, 0) << what;
  EXPECT_GE(geometry.blocks, tuning.cluster) << what;
  EXPECT_LE(tuning.cluster, device.compute_capability >= 90 ? 8 : 1) << what;
  EXPECT_GE(tuning.slots, 2) << what;
  EXPECT_GE(tuning.early_slots, 1) << what;
  EXPECT_LE(tuning.early_slots, tuning.slots) << what;
  EXPECT_GE(geometry.stages * tuning.stage_tiles, widest_segment(static_cast<int>(tiles_of(k))))
      << what;
  EXPECT_GE(geometry.slab_rows, 1) << what;
  EXPECT_LE(geometry.slab_rows, kGemvSlabRows) << what;
}

TEST(GemvGeometry, FitsTheDevice) {
  for (const GemvDevice& device : {h200(), a100()}) {
    for (const TileType type : kTypes) {
      for (const int64_t rows : {1, 2, 8, 9, 16, 33}) {
        for (const int64_t k : {16, 48, 2880, 5120, 10944, 17408, 30000}) {
          for (const int64_t units : {1, 17, 320, 8016}) {
            expect_sound(device, type, rows, k, units, gemv_tuning(device, type, rows, k, units));
            expect_sound(device, type, rows, k, units, {8, 2, 8, 16});
            expect_sound(device, type, rows, k, units, {1, 1, 1, 2});
            expect_sound(device, type, rows, k, units, {2, 1, 2, 4, 0});
          }
        }
      }
    }
  }
}

TEST(GemvGeometry, TakesOneBlockWhereTwoWouldComputeMore) {
  const auto blocks = [](int64_t rows, int64_t units) {
    return gemv_tuning(h200(), TileType::kP4, rows, 5120, units).blocks_per_sm;
  };
  EXPECT_EQ(blocks(8, 320), 1);   // 40 batches of 8 strips: 3 rounds of 15 clusters, 2 of 30
  EXPECT_EQ(blocks(8, 1024), 2);  // 128: 9 rounds, or 5
  EXPECT_EQ(blocks(1, 320), 1);   // 80 batches of 4: 3 rounds of 30, 2 of 132 clusters of 2
  EXPECT_EQ(blocks(1, 2176), 2);
}

TEST(GemvGeometry, ReadsWeightsOnceForSixteenRows) {
  for (const int64_t k : {4096, 17408, 24576, 28672, 32768}) {
    const GemvTuning tuning = gemv_tuning(h200(), TileType::kP4, 16, k, 320);
    EXPECT_EQ(gemv_geometry(h200(), TileType::kP4, 16, k, 320, tuning).slab_rows, 16) << k;
  }
}

TEST(GemvGeometry, LeavesRoomForTheNextMatmulOfADecodeStep) {
  const auto block_bytes = [](int64_t k, int64_t units) {
    const GemvTuning tuning = gemv_tuning(h200(), TileType::kP4, 1, k, units);
    return gemv_geometry(h200(), TileType::kP4, 1, k, units, tuning).shared.bytes + 1024;
  };
  EXPECT_EQ(gemv_tuning(h200(), TileType::kP4, 1, 4096, 256).blocks_per_sm, 1);
  EXPECT_EQ(gemv_tuning(h200(), TileType::kP4, 1, 4096, 896).blocks_per_sm, 2);
  EXPECT_LE(block_bytes(4096, 256) + block_bytes(4096, 896), h200().device_shared_bytes);
  EXPECT_LE(block_bytes(14336, 256) + block_bytes(4096, 896), h200().device_shared_bytes);
}

// What gemv.h states.
TEST(GemvSupports, UpToTheStatedK) {
  for (const TileType type : kTypes) {
    const bool bf16 = type == TileType::kBf16;
    EXPECT_TRUE(gemv_supports(h200(), type, bf16 ? 380'000 : 500'000));
    EXPECT_TRUE(gemv_supports(a100(), type, bf16 ? 31'000 : 41'000));
    EXPECT_FALSE(gemv_supports(h200(), type, 1'000'000));
    EXPECT_FALSE(gemv_supports(a100(), type, 100'000));
    EXPECT_FALSE(gemv_supports(h200(), type, 0));
  }
  EXPECT_FALSE(gemv_supports(h200(), TileType::kF32, 64));
}

}  // namespace
}  // namespace reckon::kernels::cuda
