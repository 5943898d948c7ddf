#include "kernels/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "kernels/fake_table.h"
#include "kernels/trace.h"

namespace reckon::kernels {
namespace {

using fake::matmul_call;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StrEq;

class Plan : public ::testing::Test {
 protected:
  // Switches as "key=value", checked against the registry of this build.
  static SwitchSet switches(std::initializer_list<const char*> settings) {
    SwitchSet set;
    for (const char* setting : settings) {
      const Status status = set.set_assignment(setting);
      EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    }
    return set;
  }

  Choice choose(const OpCall& call, std::initializer_list<const char*> settings = {},
                Isa best_isa = Isa::kAvx2) {
    Planner planner(switches(settings), fake::device(best_isa), table_);
    const Result<const Choice*> choice = planner.choose(call);
    EXPECT_TRUE(choice.ok()) << (choice.ok() ? "" : choice.error().message);
    return choice.ok() ? **choice : Choice{};
  }

  std::string error(const OpCall& call, std::initializer_list<const char*> settings,
                    Isa best_isa = Isa::kAvx2, ErrorKind kind = ErrorKind::kUsage) {
    Planner planner(switches(settings), fake::device(best_isa), table_);
    const Result<const Choice*> choice = planner.choose(call);
    EXPECT_FALSE(choice.ok()) << "chose " << (choice.ok() ? (*choice)->variant->name : "");
    if (choice.ok()) return "";
    EXPECT_EQ(choice.error().kind, kind);
    return choice.error().message;
  }

  Variant& matmul_row(std::string_view name) {
    return *std::find_if(table_.begin(), table_.end(), [&](const Variant& row) {
      return row.op == Op::kMatmul && row.name == name;
    });
  }

  std::array<Variant, 25> table_ = fake::table();
};

TEST_F(Plan, EachPhaseGetsItsClass) {
  Choice choice = choose(matmul_call(Phase::kPrefill, 512));
  EXPECT_THAT(choice.variant->name, StrEq("fast_avx2"));
  EXPECT_THAT(choice.identity, StrEq("fast_avx2"));
  EXPECT_EQ(choice.rule, "numerics-class");
  EXPECT_EQ(choice.reason, "fast class: prefill.numerics=fast; avx2 is the widest of cpu.isa=auto");
  EXPECT_EQ(choice.layout, WeightLayout::kRows);

  choice = choose(matmul_call(Phase::kPrefill, 512), {"prefill.numerics=exact"});
  EXPECT_THAT(choice.variant->name, StrEq("exact_avx2"));
  EXPECT_THAT(choice.reason, HasSubstr("exact class: prefill.numerics=exact"));

  for (const Phase phase : {Phase::kDecode, Phase::kVerify}) {
    choice = choose(matmul_call(phase, 1));
    EXPECT_THAT(choice.variant->name, StrEq("exact_avx2"));
    EXPECT_THAT(choice.reason, HasSubstr("exact class: " + std::string(phase_name(phase))));
  }
  for (const Phase phase : {Phase::kPrefill, Phase::kDecode, Phase::kVerify}) {
    choice = choose(matmul_call(phase, 1), {"numerics=reference"});
    EXPECT_THAT(choice.variant->name, StrEq("reference"));
    EXPECT_EQ(choice.reason, "reference class: numerics=reference");
  }
}

TEST_F(Plan, AStricterRowStandsInAndSaysSo) {
  Choice choice = choose(matmul_call(Phase::kPrefill, 512, 1536, DType::kQ8_0));
  EXPECT_THAT(choice.variant->name, StrEq("exact_avx2"));
  EXPECT_THAT(choice.reason,
              AllOf(HasSubstr("no fast variant of matmul for q8_0"),
                    HasSubstr("weights must be q4_1"), HasSubstr(": exact is stricter")));

  const OpCall rope{Op::kRope, Phase::kPrefill, DType::kF32, 512, 9, 64, 0};
  choice = choose(rope);
  EXPECT_THAT(choice.variant->name, StrEq("reference"));
  EXPECT_EQ(choice.reason, "no fast variant of rope: reference is stricter");

  const OpCall add{Op::kAdd, Phase::kDecode, DType::kF32, 1, 0, 576, 0};
  choice = choose(add);
  EXPECT_THAT(choice.variant->name, StrEq("reference"));
  EXPECT_THAT(choice.reason, AllOf(HasSubstr("no exact variant of add"),
                                   HasSubstr("reference rows are independent of each other")));
}

TEST_F(Plan, TheWidestAllowedInstructionSetWins) {
  EXPECT_THAT(choose(matmul_call(Phase::kDecode, 1), {}, Isa::kAvx512).variant->name,
              StrEq("exact_avx2"));
  EXPECT_THAT(choose(matmul_call(Phase::kDecode, 1), {}, Isa::kScalar).variant->name,
              StrEq("exact_scalar"));
  const Choice scalar = choose(matmul_call(Phase::kPrefill, 512), {"cpu.isa=scalar"});
  EXPECT_THAT(scalar.variant->name, StrEq("exact_scalar"));
  EXPECT_THAT(scalar.reason, HasSubstr("cpu.isa=scalar"));
}

TEST_F(Plan, AForcedInstructionSetThatTheMachineLacksIsAnError) {
  EXPECT_THAT(error(matmul_call(Phase::kDecode, 1), {"cpu.isa=avx2"}, Isa::kScalar,
                    ErrorKind::kUnsupported),
              AllOf(HasSubstr("cpu.isa=avx2"), HasSubstr("Test CPU"), HasSubstr("scalar")));
  // An op without any avx2 row is refused there, too: the setting is wrong for the machine.
  const OpCall add{Op::kAdd, Phase::kDecode, DType::kF32, 1, 0, 576, 0};
  EXPECT_THAT(error(add, {"cpu.isa=avx2"}, Isa::kScalar, ErrorKind::kUnsupported),
              HasSubstr("cpu.isa=avx2"));
  EXPECT_THAT(error(add, {"cpu.isa=avx512"}, Isa::kAvx2, ErrorKind::kUnsupported),
              AllOf(HasSubstr("cpu.isa=avx512"), HasSubstr("avx2")));
}

TEST_F(Plan, AnOpWithoutTheForcedInstructionSetRunsAndSaysSo) {
  const OpCall add{Op::kAdd, Phase::kDecode, DType::kF32, 1, 0, 576, 0};
  const Choice choice = choose(add, {"cpu.isa=avx2"});
  EXPECT_THAT(choice.variant->name, StrEq("reference"));
  EXPECT_THAT(choice.reason, HasSubstr("there is no avx2 variant of add"));

  const Choice matmul = choose(matmul_call(Phase::kDecode, 1), {"cpu.isa=avx512"}, Isa::kAvx512);
  EXPECT_THAT(matmul.variant->name, StrEq("exact_avx2"));
  EXPECT_THAT(matmul.reason, HasSubstr("there is no avx512 variant of matmul"));
}

TEST_F(Plan, AForcedVariantRuns) {
  const Choice choice = choose(matmul_call(Phase::kPrefill, 512), {"kernel.matmul=reference"});
  EXPECT_THAT(choice.variant->name, StrEq("reference"));
  EXPECT_EQ(choice.rule, "forced");
  EXPECT_EQ(choice.reason, "forced by kernel.matmul");
}

TEST_F(Plan, AForcedVariantIsNeverSilentlyReplaced) {
  // Switches know the names of this build's kernels; exact_scalar stands for a fast one here.
  Variant& row = matmul_row("exact_scalar");
  row.numerics = NumericsClass::kFast;
  row.supports = fake::only_q4_1;
  const OpCall prefill = matmul_call(Phase::kPrefill, 512);
  const OpCall decode = matmul_call(Phase::kDecode, 1);
  const OpCall q8_0 = matmul_call(Phase::kPrefill, 512, 1536, DType::kQ8_0);
  EXPECT_THAT(choose(prefill, {"kernel.matmul=exact_scalar"}).variant->name, StrEq("exact_scalar"));
  EXPECT_THAT(error(q8_0, {"kernel.matmul=exact_scalar"}),
              AllOf(HasSubstr("kernel.matmul=exact_scalar"), HasSubstr("512x1536x576 q8_0"),
                    HasSubstr("weights must be q4_1")));
  EXPECT_THAT(error(decode, {"kernel.matmul=exact_scalar"}),
              AllOf(HasSubstr("of class fast"), HasSubstr("decode needs exact")));
  EXPECT_THAT(error(prefill, {"kernel.matmul=exact_scalar", "prefill.numerics=exact"}),
              HasSubstr("prefill.numerics=exact needs exact"));
  EXPECT_THAT(error(decode, {"kernel.matmul=exact_avx2", "numerics=reference"}),
              HasSubstr("numerics=reference needs reference"));
  EXPECT_THAT(error(decode, {"kernel.matmul=exact_avx2"}, Isa::kScalar, ErrorKind::kUnsupported),
              HasSubstr("needs avx2"));
  EXPECT_THAT(error(decode, {"kernel.matmul=exact_avx2", "cpu.isa=scalar"}, Isa::kAvx2,
                    ErrorKind::kUnsupported),
              AllOf(HasSubstr("needs avx2"), HasSubstr("cpu.isa=scalar")));
}

TEST_F(Plan, AVariantOfAnotherTableIsAnError) {
  Planner planner(switches({"kernel.matmul=exact_avx2"}), fake::device(Isa::kAvx2),
                  std::span(table_).first(7));
  const Result<const Choice*> choice = planner.choose(matmul_call(Phase::kDecode, 1));
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(choice.error().message, HasSubstr("no such variant"));
}

TEST_F(Plan, ACallThatNothingRunsNamesEveryReason) {
  for (Variant& row : table_) row.supports = fake::only_q4_1;
  EXPECT_THAT(
      error(matmul_call(Phase::kDecode, 1, 1536, DType::kQ8_0), {}, Isa::kScalar,
            ErrorKind::kFailed),
      AllOf(HasSubstr("matmul 1x1536x576 q8_0"), HasSubstr("exact_scalar: weights must be q4_1"),
            HasSubstr("exact_avx2: needs avx2")));
}

TEST_F(Plan, ParametersThatMakeNoDifferenceAreSetBack) {
  const OpCall narrow = matmul_call(Phase::kPrefill, 512, 576);
  const OpCall wide = matmul_call(Phase::kPrefill, 512, 1536);

  Choice choice = choose(wide, {"prefill.tile_order=band8"});
  EXPECT_EQ(choice.params.tile_order, TileOrder::kBand8);
  EXPECT_THAT(choice.reason, HasSubstr("prefill.tile_order=band8"));
  EXPECT_EQ(choice.rule, "numerics-class");

  choice = choose(narrow, {"prefill.tile_order=band8"});
  EXPECT_EQ(choice.params, KernelParams());
  EXPECT_EQ(choice.rule, "no-effect");
  EXPECT_THAT(choice.reason, HasSubstr("prefill.tile_order=band8 walks the same order as row: one "
                                       "band (N=576 is 5 tiles)"));
  EXPECT_EQ(predicted_row(narrow, choice), predicted_row(narrow, choose(narrow)));

  // A variant without bands, and phases that the switch does not reach.
  choice = choose(wide, {"prefill.tile_order=band8", "prefill.numerics=exact"});
  EXPECT_EQ(choice.params, KernelParams());
  EXPECT_THAT(choice.reason, HasSubstr("exact_avx2 has no bands"));
  table_.back().numerics = NumericsClass::kExact;
  choice = choose(matmul_call(Phase::kVerify, 4), {"prefill.tile_order=band8"});
  EXPECT_EQ(choice.params, KernelParams());
  EXPECT_EQ(choice.rule, "numerics-class");
}

KernelParams any_tile(const OpCall& /*call*/, const KernelParams& wanted, const Device&) {
  KernelParams params = wanted;
  if (wanted.tile == TileShape::kSquare) params.tile = TileShape::kAuto;
  return params;
}

TEST_F(Plan, TileRulesChooseWhereTheTileIsAuto) {
  matmul_row("fast_avx2").effective = any_tile;
  const std::string path = ::testing::TempDir() + "plan_test.yaml";
  std::ofstream(path)
      << "name: test\ndate: today\nledger: unmeasured\nchunks: [512]\n"
         "when: {backend: cpu, device.vendor: TestVendor, device.isa: avx2, device.units: 1}\n"
         "shapes: [{op: matmul, type: q4_1, n: 1536, k: 576}]\n"
         "rules:\n"
         "  - {op: matmul, type: any, n: 1000.., k: 1.., rows: 1.., tile: wide}\n"
         "  - {op: matmul, type: any, n: 500.., k: 1.., rows: 1.., tile: square}\n";
  const std::string rules = "prefill.tile_rules=" + path;
  const OpCall call = matmul_call(Phase::kPrefill, 512);
  Choice choice = choose(call, {rules.c_str()});
  EXPECT_EQ(choice.params.tile, TileShape::kWide);
  EXPECT_EQ(choice.rule, "test:1");
  EXPECT_THAT(choice.reason, HasSubstr(rules + " (test) row 1, matmul any n=1000..: wide"));
  ASSERT_NE(choice.tile_rules, nullptr);
  EXPECT_EQ(choice.tile_rules->name, "test");
  // One thread and 64 tokens are not what they were tuned at: they answer, and say so.
  choice = choose(call, {rules.c_str(), "prefill.chunk=64"});
  EXPECT_EQ(choice.params.tile, TileShape::kWide);
  EXPECT_THAT(choice.extrapolated, HasSubstr("chunk 64 (tuned at 512)"));
  EXPECT_THAT(choice.reason, HasSubstr("; extrapolated: "));
  // Row 2 names the kernel's own tile; no row fits the third.
  choice = choose(matmul_call(Phase::kPrefill, 512, 576), {rules.c_str()});
  EXPECT_EQ(choice.params, KernelParams());
  EXPECT_EQ(choice.rule, "test:2");
  EXPECT_THAT(choice.reason, HasSubstr("square, as the kernel's own"));
  choice = choose(matmul_call(Phase::kPrefill, 512, 64), {rules.c_str()});
  EXPECT_EQ(choice.params, KernelParams());
  EXPECT_THAT(choice.reason, HasSubstr("no row fits"));
  // They are not asked where the switch says the tile, in other phases, or of kernels without.
  EXPECT_EQ(choose(call, {rules.c_str(), "prefill.tile=tall"}).params.tile, TileShape::kTall);
  EXPECT_EQ(choose(call, {"prefill.tile_rules=none"}).params, KernelParams());
  for (const Choice& other : {choose(matmul_call(Phase::kDecode, 1), {rules.c_str()}),
                              choose(call, {rules.c_str(), "prefill.numerics=exact"}),
                              choose(call, {rules.c_str(), "prefill.tile=tall"})}) {
    EXPECT_EQ(other.tile_rules, nullptr) << other.reason;
    EXPECT_EQ(other.extrapolated, "");
  }
  std::remove(path.c_str());
}

TEST_F(Plan, ScratchIsForTheThreadsThatRun) {
  EXPECT_EQ(choose(matmul_call(Phase::kPrefill, 10), {"cpu.threads=3"}).scratch_bytes,
            10u * 64 * 3);
  EXPECT_EQ(choose(matmul_call(Phase::kDecode, 1)).scratch_bytes, 0u);
  Device device = fake::device(Isa::kAvx2);
  device.cores = 6;
  EXPECT_EQ(Planner({}, device, table_).threads(), 6);
  EXPECT_EQ(Planner(switches({"cpu.threads=64"}), device, table_).threads(), 64);
}

TEST_F(Plan, IsPureAndMemoised) {
  const OpCall call = matmul_call(Phase::kPrefill, 512);
  Planner planner({}, fake::device(Isa::kAvx2), table_);
  const Choice* first = *planner.choose(call);
  for (int64_t rows = 1; rows < 300; ++rows) {
    ASSERT_TRUE(planner.choose(matmul_call(Phase::kPrefill, rows)).ok());
  }
  EXPECT_EQ(*planner.choose(call), first);  // found again where it was
  Planner other({}, fake::device(Isa::kAvx2), table_);
  ASSERT_TRUE(other.choose(matmul_call(Phase::kDecode, 1)).ok());
  const Choice* second = *other.choose(call);
  EXPECT_EQ(second->variant, first->variant);
  EXPECT_EQ(second->params, first->params);
  EXPECT_EQ(second->reason, first->reason);
  EXPECT_EQ(second->scratch_bytes, first->scratch_bytes);
}

TEST_F(Plan, TwoNamesOfOneFunctionAreOneKernel) {
  // As if somebody had copied a row and not the kernel.
  matmul_row("exact_avx2").function = matmul_row("exact_scalar").function;
  const OpCall call = matmul_call(Phase::kDecode, 1);
  std::vector<DispatchRow> rows;
  for (const char* forced : {"kernel.matmul=exact_scalar", "kernel.matmul=exact_avx2"}) {
    const Choice choice = choose(call, {forced});
    EXPECT_THAT(choice.identity, StrEq("exact_scalar"));
    rows.push_back(predicted_row(call, choice));
  }
  EXPECT_EQ(rows[0], rows[1]);
  EXPECT_EQ(fingerprint({&rows[0], 1}), fingerprint({&rows[1], 1}));
}

TEST(PlanDeathTest, ARowWhoseFunctionIsOfAnotherOpIsABug) {
  auto table = fake::table();
  table[0].op = Op::kAdd;
  EXPECT_DEATH(Planner({}, fake::device(Isa::kScalar), table), "function.index");
}

}  // namespace
}  // namespace reckon::kernels
