#include "kernels/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/fake_table.h"

namespace reckon::kernels {
namespace {

using fake::matmul_call;

constexpr KernelParams kBanded{TileOrder::kBand8};

TEST(Trace, CountsRowsSortedByTheirText) {
  Trace trace;
  trace.stamp("exact_avx2", "aa", matmul_call(Phase::kPrefill, 512), {});
  trace.stamp("exact_avx2", "aa", matmul_call(Phase::kPrefill, 512), {});
  trace.stamp("exact_avx2", "aa", matmul_call(Phase::kPrefill, 512), kBanded);
  trace.set_phase(Phase::kDecode);
  // The call's own phase is ignored: it is the trace's to know.
  trace.stamp("exact_avx2", "aa", matmul_call(Phase::kPrefill, 1), {});
  const std::vector<TraceCount> rows = trace.rows();
  ASSERT_EQ(rows.size(), 3u);
  const DispatchRow decode{"decode", "matmul", "1x1536x576 q4_1", "exact_avx2", "", "aa"};
  EXPECT_EQ(rows[0].row, decode);
  EXPECT_EQ(rows[0].count, 1u);
  EXPECT_EQ(rows[1].row.phase, "prefill");
  EXPECT_EQ(rows[1].row.params, "");
  EXPECT_EQ(rows[1].count, 2u);
  EXPECT_EQ(rows[2].row.params, "tile_order=band8");
  EXPECT_EQ(rows[2].count, 1u);
  trace.reset();
  EXPECT_TRUE(trace.rows().empty());
}

TEST(Trace, OneTextAtTwoAddressesIsOneRow) {
  const std::string a = "exact_avx2", b = "exact_avx2";
  Trace trace;
  trace.stamp(a.c_str(), "aa", matmul_call(Phase::kPrefill, 1), {});
  trace.stamp(b.c_str(), "aa", matmul_call(Phase::kPrefill, 1), {});
  ASSERT_EQ(trace.rows().size(), 1u);
  EXPECT_EQ(trace.rows()[0].count, 2u);
}

TEST(Trace, CountsNothingWhileOff) {
  Trace trace;
  trace.set_enabled(false);
  trace.stamp("exact_avx2", "aa", matmul_call(Phase::kPrefill, 1), {});
  EXPECT_TRUE(trace.rows().empty());
}

TEST(Fingerprint, DependsOnTheSetOfRowsAlone) {
  const DispatchRow a{"decode", "matmul", "1x2x3 q4_1", "exact_avx2", "", "aa"};
  DispatchRow b = a;
  b.phase = "verify";
  const std::vector<DispatchRow> ab{a, b}, bab{b, a, b}, only_a{a};
  EXPECT_EQ(fingerprint(ab), fingerprint(bab));
  EXPECT_NE(fingerprint(ab), fingerprint(only_a));
  const std::string text = fingerprint(ab);
  EXPECT_EQ(text.size(), 16u);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Fingerprint, DependsOnEveryField) {
  const DispatchRow base{"decode", "matmul", "1x2x3 q4_1", "exact_avx2", "", "aa"};
  for (std::string DispatchRow::*field :
       {&DispatchRow::phase, &DispatchRow::op, &DispatchRow::shape, &DispatchRow::variant,
        &DispatchRow::params, &DispatchRow::source_hash}) {
    DispatchRow other = base;
    other.*field += "x";
    EXPECT_NE(fingerprint({&other, 1}), fingerprint({&base, 1}));
  }
  // Text that moves from one field to its neighbour.
  DispatchRow moved = base;
  moved.shape = "1x2x3 q4_1e";
  moved.variant = "xact_avx2";
  EXPECT_NE(fingerprint({&moved, 1}), fingerprint({&base, 1}));
}

}  // namespace
}  // namespace reckon::kernels
