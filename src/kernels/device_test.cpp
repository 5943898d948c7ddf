#include "kernels/device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace reckon::kernels {
namespace {

TEST(Device, DescribesThisMachine) {
  const Device device = detect_cpu();
  EXPECT_FALSE(device.name.empty());
  EXPECT_FALSE(device.vendor.empty());
  EXPECT_EQ(device.backend, "cpu");
  EXPECT_GE(device.cores, 1);
  EXPECT_GT(device.memory_bytes, 0u);
}

TEST(Device, FeaturesAreSortedAndCarryTheInstructionSet) {
  const Device device = detect_cpu();
  const std::vector<std::string> features = split(device.features, ' ');
  EXPECT_TRUE(std::is_sorted(features.begin(), features.end())) << device.features;
  const auto has = [&](const char* name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  };
  EXPECT_EQ(device.best_isa >= Isa::kAvx2, has("avx2") && has("fma") && has("f16c"));
  EXPECT_EQ(device.best_isa >= Isa::kAvx512, device.best_isa >= Isa::kAvx2 && has("avx512f") &&
                                                 has("avx512bw") && has("avx512vl") &&
                                                 has("avx512vnni"));
  if (device.best_isa == Isa::kAmx) {
    EXPECT_TRUE(has("amx_bf16") && has("amx_int8") && has("avx512bf16"));
  }
#if defined(__x86_64__)
  // Both ask the processor and the operating system.
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(has("avx512f"), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(has("avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
#endif
}

}  // namespace
}  // namespace reckon::kernels
