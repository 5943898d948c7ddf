// That a GPU's bounds are measured at all; how large they are is the device's business.
#include "kernels/cuda/bounds.h"

#include <cmath>
#include <set>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda {
namespace {

using CudaBounds = testing::DeviceTest;

TEST_F(CudaBounds, ArePositiveNumbersWithTheirNames) {
  const auto bounds = backend->measure_bounds(
      {.threads = 0, .buffer_bytes = 1 << 22, .repetitions = 2, .repetition_ms = 0.1});
  ASSERT_TRUE(bounds.ok()) << bounds.error().message;
  std::set<std::string> names;
  for (const Bound& bound : *bounds) {
    EXPECT_TRUE(names.insert(bound.name).second) << bound.name;
    EXPECT_TRUE(std::isfinite(bound.value) && bound.value > 0) << bound.name;
    EXPECT_TRUE(std::isfinite(bound.spread) && bound.spread >= 0) << bound.name;
    EXPECT_FALSE(bound.detail.empty()) << bound.name;
  }
  for (const char* name : {"read", "copy", "fma_f32", "mma_f16", "mma_i8"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(names.contains("wgmma_f16"), backend->device().features == "sm_90");
}

}  // namespace
}  // namespace reckon::kernels::cuda
