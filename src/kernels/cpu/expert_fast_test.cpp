// The fast matmuls of experts: against the reference for every number of rows, and against
// themselves, since neither the tile nor what is skipped may change a bit; and what the plan makes
// of their switches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/expert_fast.h"
#include "kernels/cpu/expert_testing.h"
#include "kernels/cpu/variants_testing.h"
#include "kernels/device.h"
#include "kernels/plan.h"

namespace reckon::kernels {
namespace {

using cpu::effective_expert_params;
using testing::expect_rows_close;
using testing::Experts;
using testing::for_each_row;
using ::testing::HasSubstr;
using testing::Random;
using testing::Runner;
using testing::same_bits;

constexpr DType kWeightTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K,
                                  DType::kQ6_K, DType::kP8,   DType::kP4};

int64_t columns_for(DType type, int64_t k) {
  const int64_t block = pads_rows(type) ? 1 : block_elements(type);
  return (k + block - 1) / block * block;
}

// Calls `check(row)` for the fast rows of an op that run the call here.
template <typename Args, typename Check>
void for_each_fast_row(Op op, const Args& args, const Check& check) {
  for_each_row(op, [&](const Variant& row) {
    if (row.numerics != NumericsClass::kFast) return;
    if (row.supports(testing::in_panels(call_of(args, Phase::kPrefill))).empty()) check(row);
  });
}

// All ways to cut an expert's rows.
std::vector<KernelParams> all_params() {
  std::vector<KernelParams> all;
  for (const int32_t tile : {32, 16, 64}) {
    for (const bool skip : {true, false}) {
      KernelParams params;
      params.expert_tile = tile;
      params.skip_empty = skip;
      all.push_back(params);
    }
  }
  return all;
}

// Every way of each fast row, against the reference and to the bit against the first.
template <typename MakeArgs>
void check_all(Op op, int64_t out_rows, DType type, const MakeArgs& args_of, Runner& runner) {
  std::vector<float> expected, out, first;
  runner.run(testing::reference_row(op), args_of(expected));
  for_each_fast_row(op, args_of(out), [&](const Variant& row) {
    first.clear();
    for (const KernelParams& params : all_params()) {
      const auto args = args_of(out);
      runner.run(row, args, params);
      const std::string what =
          shape_text(call_of(args, Phase::kPrefill)) + " " + params_text(params);
      expect_rows_close(out, expected, out_rows, row, what, type);
      if (row.layout == WeightLayout::kRows) {  // activations of 16 bits, weights as they are
        EXPECT_LE(
            testing::relative_error(out.data(), expected.data(), static_cast<int64_t>(out.size())),
            1e-4)
            << row.name << " " << what;
      }
      if (first.empty()) first = out;
      EXPECT_TRUE(same_bits(out.data(), first.data(), static_cast<int64_t>(out.size())))
          << row.name << " " << what;
    }
  });
  runner.trace().reset();
}

void check_swiglu(const Experts& of, Runner& runner) {
  check_all(
      Op::kExpertMatmulSwiglu, of.rows * of.top_k, of.type,
      [&](std::vector<float>& out) { return of.swiglu(out, 0, of.rows); }, runner);
}

void check_combine(const Experts& of, Runner& runner) {
  check_all(
      Op::kExpertMatmulCombine, of.rows, of.type,
      [&](std::vector<float>& out) { return of.combine(out, 0, of.rows); }, runner);
}

TEST(FastExpertMatmul, EveryNumberOfRowsAndEveryTileGivesTheSameBits) {
  Random random(90);
  Runner runner(2);
  for (const DType type : kWeightTypes) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      const int64_t k = columns_for(type, random.integer(1, 600));
      check_swiglu(Experts(type, rows, 6, 2, 16 * random.integer(1, 10), k, 1, random), runner);
      check_combine(Experts(type, rows, 5, 3, 16 * random.integer(1, 10), k, 3, random), runner);
    }
  }
}

// A few experts have nearly all rows, most have none; several tiles of each size, and K in parts.
TEST(FastExpertMatmul, SkewedSelectionsAndEmptyExperts) {
  Random random(91);
  Runner runner(3);
  for (const DType type : kWeightTypes) {
    const int64_t k = columns_for(type, 530);
    check_swiglu(Experts(type, 150, 40, 3, 48, k, 1, random), runner);
    check_combine(Experts(type, 150, 40, 3, 80, k, 3, random), runner);
    check_combine(Experts(type, 70, 1, 1, 144, k, 1, random), runner);  // one has every row
  }
}

// Packed rows take any N and K.
TEST(FastExpertMatmul, WeightRowsAndColumnsThatFillNoTile) {
  Random random(92);
  Runner runner(2);
  for (const DType type : {DType::kP4, DType::kP8}) {
    for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1}, {36, 36}, {131, 65}, {17, 515}}) {
      check_swiglu(Experts(type, 20, 4, 2, n, k, 1, random), runner);
      check_combine(Experts(type, 20, 4, 2, n, k, 2, random), runner);
    }
  }
}

TEST(FastExpertMatmul, RowsDoNotDependOnTheBatchNorOnThreads) {
  constexpr int64_t kRows = 40;
  Random random(93);
  Runner one(1), three(3);
  for (const DType type : kWeightTypes) {
    const Experts of(type, kRows, 5, 3, 48, columns_for(type, 300), 1, random);
    std::vector<float> out, whole;
    for_each_fast_row(Op::kExpertMatmulSwiglu, of.swiglu(out, 0, 1), [&](const Variant& row) {
      three.run(row, of.swiglu(whole, 0, kRows));
      for (int64_t r = 0; r < kRows; r += 13) {
        one.run(row, of.swiglu(out, r, 1));
        EXPECT_TRUE(same_bits(out.data(), whole.data() + r * 3 * 48, int64_t{3} * 48)) << row.name;
      }
    });
  }
}

OpCall expert_call(int64_t rows, int64_t top_k = 8) {
  OpCall call{Op::kExpertMatmulSwiglu, Phase::kPrefill, DType::kP4, rows, 512, 2048, 256};
  call.m = top_k;
  return call;
}

KernelParams effective(const OpCall& call, int32_t tile, bool skip) {
  KernelParams wanted;
  wanted.expert_tile = tile;
  wanted.skip_empty = skip;
  return effective_expert_params(call, wanted, {});
}

TEST(FastExpertMatmul, ATileThatNoExpertCanFillHasNoEffect) {
  EXPECT_EQ(effective(expert_call(32), 64, true).expert_tile, 32);
  EXPECT_EQ(effective(expert_call(33), 64, true).expert_tile, 64);
  EXPECT_EQ(effective(expert_call(16), 16, true).expert_tile, 32);
  EXPECT_EQ(effective(expert_call(17), 16, true).expert_tile, 16);
  // Zeros are multiplied in whole tiles.
  EXPECT_EQ(effective(expert_call(8), 64, false).expert_tile, 64);
  EXPECT_FALSE(effective(expert_call(8), 64, false).skip_empty);
  // Every expert has all 64 rows, and there are no empty blocks.
  EXPECT_EQ(effective(expert_call(64, 256), 64, false), effective(expert_call(64, 256), 64, true));
  EXPECT_FALSE(effective(expert_call(65, 256), 64, false).skip_empty);
}

TEST(FastExpertMatmul, SlotsAreBoundedHoweverRowsFall) {
  for (const KernelParams& params : all_params()) {
    for (const int64_t rows : {1, 7, 8, 9, 40, 64}) {
      EXPECT_LE(3 * cpu::slots_of(rows, params), cpu::most_slots(3 * rows, 8, params));
      EXPECT_GE(cpu::slots_of(rows, params), rows);
    }
  }
}

class ExpertPlan : public ::testing::Test {
 protected:
  static Choice choose(const OpCall& call, std::initializer_list<const char*> settings) {
    SwitchSet switches;
    for (const char* setting : settings) EXPECT_TRUE(switches.set_assignment(setting).ok());
    Device device;
    device.backend = "cpu";
    device.best_isa = Isa::kAmx;
    Planner planner(switches, device, all_variants());
    const Result<const Choice*> choice = planner.choose(call);
    EXPECT_TRUE(choice.ok()) << (choice.ok() ? "" : choice.error().message);
    return choice.ok() ? **choice : Choice{};
  }
};

TEST_F(ExpertPlan, SaysWhatEachSettingDoes) {
  Choice choice = choose(expert_call(512), {"moe.expert_tile=64", "moe.skip_empty=off"});
  EXPECT_STREQ(choice.variant->name, cpu::kFastRowsAmx);
  EXPECT_EQ(params_text(choice.params), "expert_tile=64 skip_empty=off");
  EXPECT_THAT(choice.reason, HasSubstr("moe.expert_tile=64, moe.skip_empty=off"));
  EXPECT_EQ(choice.rule, "numerics-class");

  const char* const kForced = "prefill.expert_matmul=fast_rows_amx";
  choice = choose(expert_call(20), {kForced, "moe.expert_tile=64"});
  EXPECT_EQ(choice.rule, "no-effect");
  EXPECT_THAT(choice.reason,
              HasSubstr("moe.expert_tile=64 changes nothing: an expert has 20 rows at most"));
  EXPECT_EQ(choice.params, KernelParams());

  choice = choose(expert_call(512), {"prefill.numerics=exact", "moe.expert_tile=16"});
  EXPECT_EQ(choice.rule, "no-effect");
  EXPECT_THAT(choice.reason, HasSubstr("exact_avx512 has no expert tiles"));
}

TEST_F(ExpertPlan, FewRowsAnExpertStayOnTheExactKernel) {
  const Choice few = choose(expert_call(32), {});
  EXPECT_EQ(few.variant->numerics, NumericsClass::kExact);
  EXPECT_THAT(few.reason, HasSubstr("no fast variant of expert_matmul_swiglu for p4 is taken ("
                                    "fast_rows_amx: fewer than"));
  EXPECT_STREQ(choose(expert_call(32), {"prefill.expert_matmul=fast_rows_amx"}).variant->name,
               cpu::kFastRowsAmx);
  OpCall decode = expert_call(1);
  decode.phase = Phase::kDecode;
  const Choice one = choose(decode, {"prefill.expert_matmul=fast_rows_amx", "moe.expert_tile=16"});
  EXPECT_EQ(one.variant->numerics, NumericsClass::kExact);
  EXPECT_EQ(one.rule, "numerics-class");
}

TEST_F(ExpertPlan, ScratchGrowsWithTilesThatAreFilledUp) {
  const auto bytes = [](std::initializer_list<const char*> settings) {
    return choose(expert_call(512), settings).scratch_bytes;
  };
  EXPECT_GT(bytes({"moe.skip_empty=off"}), bytes({}));
  EXPECT_GT(bytes({"moe.skip_empty=off", "moe.expert_tile=64"}), bytes({"moe.skip_empty=off"}));
}

}  // namespace
}  // namespace reckon::kernels
