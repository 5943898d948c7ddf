#include "experiment/rows.h"

#include <gmock/gmock.h>

namespace reckon::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const DispatchRow kDecode{"decode", "matmul", "1x8x8", "exact", "", "h1"};
const DispatchRow kDecodeFast{"decode", "matmul", "1x8x8", "fast", "bands=8", "h2"};
const DispatchRow kPrefill{"prefill", "matmul", "5x8x8", "exact", "", "h1"};
const DispatchRow kNorm{"decode", "rms_norm", "1x8", "plain", "", "h3"};

Prediction plan(const std::vector<DispatchRow>& certain,
                const std::vector<DispatchRow>& possible = {}) {
  Prediction prediction;
  for (const DispatchRow& row : certain)
    prediction.rows.push_back({row, "because " + row.op, true});
  for (const DispatchRow& row : possible) prediction.rows.push_back({row, "perhaps", false});
  return prediction;
}

TEST(Rows, Texts) {
  EXPECT_EQ(row_text(kDecodeFast), "decode matmul 1x8x8 fast bands=8 @h2");
  EXPECT_EQ(reach_text({"matmul", ""}), "matmul/*");
  const Prediction prediction = plan({kDecode, kPrefill, kNorm});
}

TEST(Rows, ReasonsThatNameTheSwitchComeFirst) {
  const Prediction prediction = plan({kDecode, kPrefill, kNorm});
  EXPECT_THAT(reasons_at(prediction, {"", "decode"}, "rms_norm"),
              ElementsAre("because rms_norm", "because matmul"));
  EXPECT_THAT(reasons_at(prediction, {"", "decode"}, "none"),
              ElementsAre("because matmul", "because rms_norm"));
  EXPECT_THAT(reasons_at(prediction, {"matmul", ""}, "none"), ElementsAre("because matmul"));
  EXPECT_THAT(reasons_at(prediction, {"rope", ""}, "none"), IsEmpty());
}

TEST(Rows, TheDecidingRuleIsTheClauseOfTheSwitch) {
  const std::vector<std::string> reasons = {
      "no fast variant; order=band8 walks as row: one band; x"};
  EXPECT_EQ(deciding_rule(reasons, "order"), "order=band8 walks as row: one band");
  EXPECT_EQ(deciding_rule(reasons, "x"), "x");
  EXPECT_EQ(deciding_rule(reasons, "none"), reasons[0]);
  EXPECT_EQ(deciding_rule({}, "none"), "");
}

TEST(Rows, FingerprintIgnoresOrderAndRepeats) {
  const std::vector<DispatchRow> a{kDecode, kNorm};
  const std::vector<DispatchRow> b{kNorm, kDecode, kNorm};
  const std::vector<DispatchRow> c{kNorm, kDecodeFast};
  EXPECT_EQ(fingerprint(a), fingerprint(b));
  EXPECT_NE(fingerprint(a), fingerprint(c));
  EXPECT_EQ(fingerprint(a).size(), 16u);
}

TEST(Rows, DifferencesAtAndOutsideTheReach) {
  const std::vector<DispatchRow> base{kDecode, kPrefill};
  const std::vector<DispatchRow> arm{kDecodeFast, kPrefill, kNorm};
  const ledger::Proof proof = compare_rows(base, arm, {"matmul", "decode"});
  EXPECT_NE(proof.base_fingerprint, proof.arm_fingerprint);
  EXPECT_THAT(proof.only_base, ElementsAre("decode matmul 1x8x8 exact @h1"));
  EXPECT_THAT(proof.only_arm, ElementsAre("decode matmul 1x8x8 fast bands=8 @h2"));
  EXPECT_THAT(proof.side_effects, ElementsAre("arm: decode rms_norm 1x8 plain @h3"));
  const ledger::Proof equal = compare_rows(base, arm, {"matmul", "prefill"});
  EXPECT_EQ(equal.base_fingerprint, equal.arm_fingerprint);
  EXPECT_THAT(equal.only_arm, IsEmpty());
}

TEST(Rows, SameAtReachNeedsEqualCertainty) {
  const Reach reach{"matmul", "decode"};
  EXPECT_TRUE(same_at_reach(plan({kDecode, kPrefill}), plan({kDecode, kNorm}), reach));
  EXPECT_FALSE(same_at_reach(plan({kDecode}), plan({kDecodeFast}), reach));
  EXPECT_FALSE(same_at_reach(plan({kDecode}), plan({}, {kDecode}), reach));
  EXPECT_TRUE(same_at_reach(plan({}, {kDecode}), plan({}, {kDecode}), reach));
}

TEST(Rows, ObservedMustFollowThePlan) {
  const Prediction prediction = plan({kDecode}, {kNorm});
  EXPECT_TRUE(check_observed(prediction, std::vector{kDecode}, "the arm").ok());
  EXPECT_TRUE(check_observed(prediction, std::vector{kNorm, kDecode}, "the arm").ok());
  const Status missing = check_observed(prediction, std::vector{kNorm}, "the base arm");
  EXPECT_THAT(missing.error().message, HasSubstr("the base arm did not dispatch"));
  const Status extra = check_observed(prediction, std::vector{kDecode, kPrefill}, "the arm");
  EXPECT_THAT(extra.error().message, HasSubstr("prefill matmul 5x8x8 exact @h1"));
  EXPECT_EQ(extra.error().kind, ErrorKind::kFailed);
}

TEST(Rows, SourcesOfBothArmsInReach) {
  const auto sources =
      sources_in_reach(plan({kDecode, kNorm}), plan({kDecodeFast}), {"matmul", "decode"});
  EXPECT_EQ(sources,
            (std::map<std::string, std::string>{{"matmul.exact", "h1"}, {"matmul.fast", "h2"}}));
}

TEST(Rows, WhatAProgramDispatchesIsKnownOnlyWhenItRan) {
  Prediction program = plan({kDecode});
  program.complete = false;
  EXPECT_TRUE(check_observed(program, std::vector{kPrefill}, "the arm").ok());
  program.sources = {{"./bench", "h7"}};
  EXPECT_EQ(sources_in_reach(program, plan({}), {"matmul", "decode"}).at("./bench"), "h7");
}

TEST(Rows, AWeakProofObservesNothing) {
  ledger::Proof proof;
  proof.observed = true;
  mark_weak(plan({kDecode}), proof);
  EXPECT_TRUE(proof.observed);
  Prediction program = plan({kDecode});
  program.weak_proof = "by name only";
  mark_weak(program, proof);
  EXPECT_FALSE(proof.observed);
  EXPECT_EQ(proof.extra["weak"], "by name only");
}

TEST(Rows, LeavesOutWhatARowDoesNotSay) {
  EXPECT_EQ(row_text({"run", "norm", "", "", "", ""}), "run norm");
}

}  // namespace
}  // namespace reckon::experiment
