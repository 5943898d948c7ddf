// That bounds are measured at all; how large they are is the machine's business.
#include "kernels/bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "kernels/backend.h"
#include "kernels/cpu/bounds.h"
#include "kernels/cpu/bounds_loops.h"

namespace reckon::kernels {
namespace {

constexpr BoundsOptions kTiny{
    .threads = 2, .buffer_bytes = 1 << 20, .repetitions = 3, .repetition_ms = 0.1};

TEST(Bounds, AreTheMedianOfWhatWasSeen) {
  const Bound odd = bound_of("read", BoundKind::kRead, {4, 1, 2}, "how");
  EXPECT_EQ(odd.value, 2);
  EXPECT_EQ(odd.spread, 1.5);
  EXPECT_EQ(odd.unit, "byte/s");
  EXPECT_EQ(odd.detail, "how");
  const Bound even = bound_of("fma", BoundKind::kMultiply, {4, 8}, "");
  EXPECT_EQ(even.value, 6);
  EXPECT_EQ(even.unit, "op/s");
}

TEST(Bounds, TheBestOfAKindIsTheHighest) {
  const std::vector<Bound> bounds = {
      bound_of("a", BoundKind::kRead, {9}, ""), bound_of("b", BoundKind::kMultiply, {1}, ""),
      bound_of("c", BoundKind::kMultiply, {3}, ""), bound_of("d", BoundKind::kMultiply, {2}, "")};
  ASSERT_NE(best_bound(bounds, BoundKind::kMultiply), nullptr);
  EXPECT_EQ(best_bound(bounds, BoundKind::kMultiply)->name, "c");
  EXPECT_EQ(best_bound(bounds, BoundKind::kRead)->name, "a");
  EXPECT_EQ(best_bound(bounds, BoundKind::kCopy), nullptr);
}

TEST(Bounds, OfThisMachineArePositiveNumbersWithTheirNames) {
  const auto bounds = cpu_backend().measure_bounds(kTiny);
  ASSERT_TRUE(bounds.ok()) << bounds.error().message;
  std::set<std::string> names;
  for (const Bound& bound : *bounds) {
    EXPECT_TRUE(names.insert(bound.name).second) << bound.name;
    EXPECT_TRUE(std::isfinite(bound.value) && bound.value > 0) << bound.name;
    EXPECT_TRUE(std::isfinite(bound.spread) && bound.spread >= 0) << bound.name;
    EXPECT_FALSE(bound.detail.empty()) << bound.name;
  }
  EXPECT_TRUE(names.contains("read"));
  EXPECT_TRUE(names.contains("read_1_thread"));
  EXPECT_NE(best_bound(*bounds, BoundKind::kMultiply), nullptr);
}

TEST(Bounds, NeedNoMoreThanScalarCode) {
  Device device;
  device.backend = "cpu";
  const auto bounds = cpu::measure_bounds(device, 1 << 22, kTiny);
  ASSERT_TRUE(bounds.ok()) << bounds.error().message;
  ASSERT_EQ(bounds->size(), 4U);
  EXPECT_EQ(bounds->back().name, "fma_f32_scalar");
}

TEST(Bounds, ABufferThatNoMachineHasIsAnError) {
  BoundsOptions options = kTiny;
  options.buffer_bytes = uint64_t{1} << 60;
  const auto bounds = cpu_backend().measure_bounds(options);
  ASSERT_FALSE(bounds.ok());
  EXPECT_THAT(bounds.error().message, testing::HasSubstr("to measure the read bandwidth"));
}

// Each loop does what its name says: the operands' products, summed over all rounds.
TEST(BoundsLoops, SumTheirProducts) {
  const Device device = detect_cpu();
  alignas(64) float x[16];
  alignas(64) float y[16];
  for (int i = 0; i < 16; ++i) {
    x[i] = static_cast<float>(i + 1);
    y[i] = 0.5F;
  }
  EXPECT_EQ(cpu::fma_f32_scalar(x, y, 3), 3 * 0.5 * 36);  // 1 + ... + 8
  if (device.best_isa < Isa::kAvx2) return;
  EXPECT_EQ(cpu::fma_f32_avx2(x, y, 3), 3 * cpu::kAvx2Accumulators * 0.5 * 36);
  alignas(64) int8_t ones[64];
  alignas(64) int8_t twos[64];
  std::fill_n(ones, 64, int8_t{1});
  std::fill_n(twos, 64, int8_t{2});
  EXPECT_EQ(cpu::madd_i8_avx2(ones, twos, 3), 3 * cpu::kAvx2Accumulators * 32 * 2);
  EXPECT_EQ(cpu::madd_i16_avx2(ones, twos, 3), 3.0 * cpu::kAvx2Accumulators * 16 * 257 * 514);
  if (device.best_isa < Isa::kAvx512) return;
  EXPECT_EQ(cpu::fma_f32_avx512(x, y, 3), 3 * cpu::kAvx512Accumulators * 0.5 * 136);
  if (device.features.find("avx512vnni") == std::string::npos) return;
  EXPECT_EQ(cpu::dot_i8_avx512vnni(ones, twos, 3), 3 * cpu::kAvx512Accumulators * 64 * 2);
  EXPECT_EQ(cpu::dot_i16_avx512vnni(ones, twos, 3),
            3.0 * cpu::kAvx512Accumulators * 32 * 257 * 514);
  if (device.features.find("avx512bf16") == std::string::npos) return;
  EXPECT_EQ(cpu::dot_bf16_avx512(x, y, 3), 3 * cpu::kAvx512Accumulators * 0.5 * 136);
}

TEST(BoundsLoops, TheClocksChainIsWhatItSays) {
  const uint64_t x = 3;
  const uint64_t y = 6;
  uint64_t value = x;
  for (int i = 0; i < 5 * cpu::kClockChain / 2; ++i) value = (value + x) ^ y;
  EXPECT_EQ(cpu::clock_chain(&x, &y, 5), static_cast<double>(value));
}

TEST(BoundsLoops, ReadEveryByte) {
  alignas(64) uint64_t memory[128];
  for (uint64_t& word : memory) word = 1;
  for (const auto read : {cpu::read_scalar, cpu::read_avx2}) {
    if (read == cpu::read_avx2 && detect_cpu().best_isa < Isa::kAvx2) continue;
    const uint64_t before = read(memory, sizeof memory);
    for (uint64_t& word : memory) {
      word += 1 << 20;
      EXPECT_NE(read(memory, sizeof memory), before);
      word -= 1 << 20;
    }
  }
}

}  // namespace
}  // namespace reckon::kernels
