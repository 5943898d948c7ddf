// What prefill.split_k, decode.verify_kernel and decode.multi_max make of matmuls, with this
// build's own table on a made-up device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_few.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/matmul_split_k.h"
#include "kernels/fake_table.h"
#include "kernels/plan.h"
#include "kernels/trace.h"

namespace reckon::kernels {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;

using Settings = std::vector<const char*>;

OpCall panel_call(Phase phase, int64_t rows, int64_t n = 1536, int64_t k = 1536) {
  OpCall call{Op::kMatmul, phase, DType::kQ4_1, rows, n, k, 0};
  call.in_panels = true;
  return call;
}

Choice choose(const OpCall& call, const Settings& settings, Isa best_isa = Isa::kAmx) {
  SwitchSet switches;
  for (const char* setting : settings) EXPECT_TRUE(switches.set_assignment(setting).ok());
  Planner planner(switches, fake::device(best_isa), all_variants());
  const Result<const Choice*> choice = planner.choose(call);
  EXPECT_TRUE(choice.ok()) << (choice.ok() ? "" : choice.error().message);
  return choice.ok() ? **choice : Choice{};
}

TEST(PlanSplitK, StandsInForTheKernelOfItsClass) {
  const OpCall call = panel_call(Phase::kPrefill, 512);
  Choice choice = choose(call, {"prefill.split_k=exact", "prefill.numerics=exact"});
  EXPECT_THAT(choice.variant->name, StrEq("split_k_exact_avx512"));
  EXPECT_EQ(choice.rule, "split-k");
  EXPECT_THAT(choice.reason, HasSubstr("prefill.split_k=exact: K=1536 is 3 parts, in place of "
                                       "exact_panels_avx512"));
  EXPECT_EQ(choice.scratch_bytes,
            cpu::panel_matmul_scratch(DType::kQ4_1, 512, 1536) + 3u * 512 * 1536 * 4);

  choice = choose(
      call, {"prefill.split_k=exact", "prefill.numerics=exact", "kernel.matmul=gemv_chunked"});
  EXPECT_THAT(choice.variant->name, StrEq("split_k_exact_avx512"));
  EXPECT_THAT(choice.reason, HasSubstr("in place of gemv_chunked"));

  const Choice few =
      choose(panel_call(Phase::kPrefill, 5), {"prefill.split_k=exact", "prefill.numerics=exact"});
  EXPECT_THAT(few.reason, HasSubstr("changes nothing: split_k_exact_avx512: fewer than 6 rows"));
  choice = choose(call, {"prefill.split_k=fast"});
  EXPECT_THAT(choice.variant->name, StrEq("split_k_fast_amx"));
  EXPECT_THAT(choice.reason, HasSubstr("prefill.split_k=fast: K=1536 is 3 parts"));

  // Where no fast kernel runs, the exact one is what prefill has.
  choice = choose(call, {"prefill.split_k=exact"}, Isa::kAvx512);
  EXPECT_THAT(choice.variant->name, StrEq("split_k_exact_avx512"));
}

TEST(PlanSplitK, ReachesPrefillAlone) {
  for (const Phase phase : {Phase::kDecode, Phase::kVerify}) {
    const Choice choice =
        choose(panel_call(phase, 1), {"prefill.split_k=exact", "kernel.matmul=gemv_chunked"});
    EXPECT_THAT(choice.variant->name, StrEq("gemv_chunked"));
    EXPECT_EQ(choice.rule, "forced");
  }
}

TEST(PlanSplitK, SaysWhyItChangesNothing) {
  const auto expect_kept = [](const OpCall& call, const Settings& settings, const char* kept,
                              const std::string& why, Isa best_isa = Isa::kAmx) {
    const Choice choice = choose(call, settings, best_isa);
    EXPECT_THAT(choice.variant->name, StrEq(kept));
    EXPECT_EQ(choice.rule, "no-effect");
    EXPECT_THAT(choice.reason, AllOf(HasSubstr(" changes nothing: "), HasSubstr(why)));
    Settings without(settings.begin() + 1, settings.end());
    EXPECT_EQ(predicted_row(call, choice), predicted_row(call, choose(call, without, best_isa)));
  };
  const OpCall call = panel_call(Phase::kPrefill, 512);
  expect_kept(panel_call(Phase::kPrefill, 512, 1536, 512),
              {"prefill.split_k=exact", "prefill.numerics=exact"}, "exact_panels_avx512",
              "K=512 is one part");
  expect_kept(panel_call(Phase::kPrefill, 512, 1536, 576), {"prefill.split_k=fast"}, "fast_amx",
              "K=576 is one part");
  expect_kept(call, {"prefill.split_k=exact"}, "fast_amx",
              "fast_amx is of class fast, by prefill.numerics=fast");
  expect_kept(call, {"prefill.split_k=fast", "prefill.numerics=exact"}, "exact_panels_avx512",
              "exact_panels_avx512 is of class exact, by prefill.numerics=exact");
  expect_kept(call, {"prefill.split_k=fast"}, "exact_panels_avx512", "class exact", Isa::kAvx512);
  expect_kept(call, {"prefill.split_k=exact", "prefill.numerics=exact", "kernel.matmul=exact_avx2"},
              "exact_avx2", "split_k_exact_avx512 does not stand in for exact_avx2");
  expect_kept(call, {"prefill.split_k=exact", "cpu.isa=avx2"}, "fast_bytes_avx2",
              "fast_bytes_avx2 is of class fast, by prefill.numerics=fast");
  expect_kept(call, {"prefill.split_k=exact", "cpu.isa=avx2", "prefill.numerics=exact"},
              "exact_avx2", "needs avx512");
  OpCall rows = call;
  rows.in_panels = false;
  expect_kept(rows, {"prefill.split_k=exact", "prefill.numerics=exact"}, "exact_avx512",
              "not laid out in panels");
}

TEST(PlanVerify, FastTakesMoreRowsThanMultiMax) {
  for (const auto& [setting, most] :
       {std::pair{"decode.multi_max=2", 2}, {"decode.multi_max=4", 4}, {"decode.multi_max=6", 6}}) {
    for (int64_t rows = 1; rows <= 9; ++rows) {
      const OpCall call = panel_call(Phase::kVerify, rows);
      const Choice choice = choose(call, {"decode.verify_kernel=fast", setting});
      const bool fast = rows > most;
      EXPECT_EQ(choice.variant->numerics, fast ? NumericsClass::kFast : NumericsClass::kExact);
      EXPECT_EQ(choice.rule, fast ? "verify-kernel" : "multi-row");
      EXPECT_THAT(choice.reason, AllOf(HasSubstr("decode.verify_kernel=fast"), HasSubstr(setting)));
      if (fast) continue;
      EXPECT_THAT(choice.reason, HasSubstr("stay on the exact multi-row kernel"));
      EXPECT_EQ(predicted_row(call, choice), predicted_row(call, choose(call, {})));
    }
  }
}

TEST(PlanVerify, StreamTakesThreeToSixRows) {
  for (int64_t rows = 1; rows <= 9; ++rows) {
    const OpCall call = panel_call(Phase::kVerify, rows);
    const Choice choice = choose(call, {"decode.verify_kernel=stream"});
    const bool streams = rows >= 3 && rows <= 6;
    EXPECT_THAT(choice.variant->name, StrEq(streams ? "stream_avx512" : "exact_panels_avx512"));
    EXPECT_EQ(choice.rule, streams ? "verify-kernel" : "stream-rows");
    if (streams) {
      EXPECT_EQ(choice.scratch_bytes, cpu::stream_matmul_scratch(DType::kQ4_1, rows, 1536));
    } else {
      EXPECT_THAT(choice.reason, HasSubstr("stream_avx512 takes 3 to 6 rows"));
      EXPECT_EQ(predicted_row(call, choice), predicted_row(call, choose(call, {})));
    }
  }
}

TEST(PlanVerify, ReachesMatmulsOfVerifiesAlone) {
  for (const char* kernel : {"decode.verify_kernel=fast", "decode.verify_kernel=stream"}) {
    for (const OpCall& call : {panel_call(Phase::kDecode, 1), panel_call(Phase::kPrefill, 6),
                               OpCall{Op::kAttention, Phase::kVerify, DType::kF32, 6, 9, 64, 3}}) {
      const Choice choice = choose(call, {kernel});
      const Choice plain = choose(call, {});
      EXPECT_EQ(choice.variant, plain.variant);
      EXPECT_EQ(choice.reason, plain.reason);
    }
  }
}

TEST(PlanVerify, SaysWhyItChangesNothing) {
  const OpCall call = panel_call(Phase::kVerify, 6);
  Choice choice = choose(call, {"decode.verify_kernel=fast", "kernel.matmul=exact_avx2"});
  EXPECT_THAT(choice.variant->name, StrEq("exact_avx2"));
  EXPECT_EQ(choice.rule, "no-effect");
  EXPECT_THAT(choice.reason, HasSubstr("another switch names the kernel"));

  choice = choose(call, {"decode.verify_kernel=stream", "numerics=reference"});
  EXPECT_THAT(choice.variant->name, StrEq("reference"));
  EXPECT_EQ(choice.rule, "no-effect");

  OpCall rows = call;  // no panels: no fast kernel either
  rows.in_panels = false;
  for (const char* kernel : {"decode.verify_kernel=fast", "decode.verify_kernel=stream"}) {
    choice = choose(rows, {kernel});
    EXPECT_THAT(choice.variant->name, StrEq("exact_avx512"));
    EXPECT_THAT(choice.reason, AllOf(HasSubstr(kernel), HasSubstr("not laid out in panels")));
  }
  SwitchSet stream;
  ASSERT_TRUE(stream.set_assignment("decode.verify_kernel=stream").ok());
  const auto table = fake::table();
  Planner planner(stream, fake::device(Isa::kAvx2), table);
  const auto other = planner.choose(fake::matmul_call(Phase::kVerify, 4));
  ASSERT_TRUE(other.ok());
  EXPECT_THAT((*other)->reason, HasSubstr("no kernel of this device does it"));
}

TEST(PlanSpecialMatmuls, AreNotTakenUnasked) {
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode, Phase::kVerify}) {
    for (const int64_t rows : {1, 4, 16, 17, 512}) {
      for (const char* numerics : {"prefill.numerics=fast", "prefill.numerics=exact"}) {
        EXPECT_EQ(choose(panel_call(phase, rows), {numerics}).variant->use, Use::kOfClass);
      }
    }
  }
  EXPECT_THAT(choose(panel_call(Phase::kPrefill, 16), {}).variant->name, StrEq("fast_few_amx"));
  EXPECT_THAT(choose(panel_call(Phase::kPrefill, 17), {}).variant->name, StrEq("fast_amx"));
}

TEST(PlanSpecialMatmuls, APrefillOfAFewRowsIsExactUnlessAKernelIsNamed) {
  const Choice few = choose(panel_call(Phase::kPrefill, 5), {});
  EXPECT_THAT(few.variant->name, StrEq("exact_panels_avx512"));
  EXPECT_THAT(few.reason, HasSubstr("fewer than 6 rows"));
  EXPECT_THAT(choose(panel_call(Phase::kPrefill, 6), {}).variant->name, StrEq("fast_few_amx"));
  EXPECT_THAT(choose(panel_call(Phase::kPrefill, 5), {"prefill.matmul=fast_few_amx"}).variant->name,
              StrEq("fast_few_amx"));
  EXPECT_THAT(
      choose(panel_call(Phase::kVerify, 4), {"decode.verify_kernel=fast", "decode.multi_max=2"})
          .variant->name,
      StrEq("fast_few_amx"));
}

// Without AVX-512 and AMX; where there is either, prefill has nothing of these unasked.
TEST(PlanAvx2, PrefillIsFastByBytesWhereCodesHaveFourBits) {
  const auto name_of = [](DType type, Isa best_isa, const Settings& settings = {}) {
    OpCall call{Op::kMatmul, Phase::kPrefill, type, 512, 1536, 1536, 0};
    call.in_panels = true;
    return std::string(choose(call, settings, best_isa).variant->name);
  };
  for (const DType type : {DType::kQ4_0, DType::kQ4_1, DType::kQ4_K}) {
    EXPECT_EQ(name_of(type, Isa::kAvx2), "fast_bytes_avx2");
    EXPECT_EQ(name_of(type, Isa::kAvx512), "exact_panels_avx512");
    EXPECT_EQ(name_of(type, Isa::kAmx), "fast_amx");
    EXPECT_EQ(name_of(type, Isa::kAmx, {"cpu.isa=avx2"}), "fast_bytes_avx2");
    EXPECT_EQ(name_of(type, Isa::kAmx, {"prefill.matmul=fast_avx2"}), "fast_avx2");
  }
  for (const DType type : {DType::kQ6_K, DType::kP4}) {
    EXPECT_EQ(name_of(type, Isa::kAvx2), "fast_avx2");
    EXPECT_EQ(name_of(type, Isa::kAvx512), "exact_panels_avx512");
  }
  // No panels of codes of 8 bits, whose decode would read rows beside them.
  EXPECT_EQ(name_of(DType::kQ8_0, Isa::kAvx2), "exact_avx2");
  EXPECT_EQ(name_of(DType::kP4, Isa::kAvx2, {"prefill.matmul=fast_bytes_avx2"}), "fast_bytes_avx2");
}

TEST(PlanAvx2, AFewRowsAndDecodeStayExact) {
  const auto choice = [](Phase phase, int64_t rows) {
    return choose(panel_call(phase, rows), {}, Isa::kAvx2);
  };
  EXPECT_THAT(choice(Phase::kPrefill, 6).variant->name, StrEq("exact_panels_avx2"));
  EXPECT_THAT(choice(Phase::kPrefill, 7).variant->name, StrEq("fast_bytes_avx2"));
  EXPECT_THAT(choice(Phase::kDecode, 1).variant->name, StrEq("exact_panels_avx2"));
  EXPECT_EQ(choice(Phase::kPrefill, 512).scratch_bytes,
            cpu::byte_matmul_scratch(512, 1536, 1536, 1).total);
}

TEST(PlanAvx2, AttentionIsFastInPrefillAlone) {
  for (const Op op : {Op::kAttention, Op::kWindowAttention}) {
    const auto name_of = [&](Phase phase, Isa best_isa) {
      const OpCall call{op, phase, DType::kF32, 64, 9, 64, 3, op == Op::kAttention ? 0 : 32};
      return std::string(choose(call, {}, best_isa).variant->name);
    };
    EXPECT_EQ(name_of(Phase::kPrefill, Isa::kAvx2), "fast_avx2");
    EXPECT_EQ(name_of(Phase::kDecode, Isa::kAvx2), "exact_avx2");
    EXPECT_EQ(name_of(Phase::kPrefill, Isa::kAmx),
              op == Op::kAttention ? "fast_avx512" : "exact_avx2");
  }
}

}  // namespace
}  // namespace reckon::kernels
