#include "adapters/kernel_use.h"

#include <gmock/gmock.h>

namespace reckon::adapters {
namespace {

using kernels::KernelResources;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

kernels::TraceCount counted(const char* phase, const char* shape,
                            std::vector<KernelResources> resources) {
  kernels::TraceCount count;
  count.row = {phase, "matmul", shape, "exact_mma", "", "hash"};
  count.resources = std::move(resources);
  return count;
}

const KernelResources kSmall = {96, 0, 768, 2048};
const KernelResources kLarge = {168, 16, 512, 2048};

TEST(KernelUse, IsOfThePhaseThatIsMeasured) {
  const std::vector<kernels::TraceCount> rows = {counted("prefill", "512x64x64 p4", {kLarge}),
                                                 counted("decode", "1x64x64 p4", {kSmall})};
  EXPECT_THAT(kernel_use(rows, "decode"),
              ElementsAre(Pair("decode matmul exact_mma",
                               "96 registers a thread, 0 B local, occupancy 37%")));
  EXPECT_THAT(kernel_use(rows, "prefill"),
              ElementsAre(Pair("prefill matmul exact_mma",
                               "168 registers a thread, 16 B local, occupancy 25%")));
}

TEST(KernelUse, GivesRangesOfTheShapesOfAVariant) {
  const std::vector<kernels::TraceCount> rows = {
      counted("decode", "1x64x64 p4", {kSmall}),
      counted("decode", "1x128x64 p4", {kLarge, kSmall})};
  EXPECT_THAT(
      kernel_use(rows, "decode"),
      ElementsAre(Pair("decode matmul exact_mma",
                       "96 to 168 registers a thread, 0 to 16 B local, occupancy 25 to 37%")));
}

TEST(KernelUse, SaysNothingWhereNobodyKnows) {
  const std::vector<kernels::TraceCount> rows = {counted("decode", "1x64x64 q4_0", {})};
  EXPECT_THAT(kernel_use(rows, "decode"), IsEmpty());
}

}  // namespace
}  // namespace reckon::adapters
