#include "kernels/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "kernels/variants.h"

namespace reckon::kernels {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string error_of(const Status& status) {
  EXPECT_FALSE(status.ok());
  if (status.ok()) return "";
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
  return status.error().message;
}

TEST(Switches, EveryDefaultIsAllowedAndLeavesTheSetUnchanged) {
  for (const SwitchInfo& info : switch_registry()) {
    SwitchSet switches;
    EXPECT_TRUE(switches.set(info.key, info.default_value).ok()) << info.key;
    EXPECT_EQ(switches, SwitchSet()) << info.key;
    EXPECT_EQ(switches.get(info.key), info.default_value);
    EXPECT_FALSE(info.help.empty()) << info.key;
  }
}

TEST(Switches, EveryOpHasItsKernelSwitchWithTheNamesOfTheTable) {
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const SwitchInfo* info = find_switch("kernel." + std::string(op_name(op)));
    ASSERT_NE(info, nullptr);
    EXPECT_THAT(info->reach_ops, ElementsAre(op));
    std::vector<std::string> expected = variant_names(op);
    if (is_composition(op)) expected.insert(expected.begin(), "parts");
    expected.insert(expected.begin(), "auto");
    EXPECT_EQ(info->values, expected);
  }
}

TEST(Switches, ChangedHoldsWhatDiffersFromTheDefaults) {
  SwitchSet switches;
  ASSERT_TRUE(switches.set("prefill.tile_order", "band8").ok());
  ASSERT_TRUE(switches.set_assignment("cpu.threads=2").ok());
  EXPECT_THAT(switches.changed(),
              ElementsAre(Pair("cpu.threads", "2"), Pair("prefill.tile_order", "band8")));
  EXPECT_EQ(switches.get("prefill.tile_order"), "band8");
  EXPECT_EQ(switches.integer("cpu.threads"), 2);
  ASSERT_TRUE(switches.set("prefill.tile_order", "row").ok());
  ASSERT_TRUE(switches.set("cpu.threads", "all").ok());
  EXPECT_EQ(switches, SwitchSet());
  EXPECT_EQ(switches.integer("cpu.threads"), 0);
  EXPECT_EQ(switches.integer("prefill.chunk"), 0);
}

TEST(Switches, AnUnknownKeySuggestsTheNearest) {
  SwitchSet switches;
  EXPECT_THAT(error_of(switches.set("prefil.tile_ordre", "row")),
              AllOf(HasSubstr("'prefil.tile_ordre'"), HasSubstr("'prefill.tile_order'")));
  EXPECT_THAT(error_of(switches.set("kernel.matmull", "auto")), HasSubstr("'kernel.matmul'"));
  // Nothing is near: the line stays one that can be read.
  EXPECT_EQ(error_of(switches.set("zzzzzzzzzzzzzzzz", "1")),
            "unknown switch 'zzzzzzzzzzzzzzzz'; docs/switches.md lists all " +
                std::to_string(switch_registry().size()));
}

TEST(Switches, AnUnknownValueNamesTheAllowedOnesAndTheNearest) {
  SwitchSet switches;
  EXPECT_THAT(error_of(switches.set("prefill.tile_order", "band9")),
              AllOf(HasSubstr("prefill.tile_order=band9"), HasSubstr("row, band8"),
                    HasSubstr("did you mean 'band8'")));
  EXPECT_THAT(error_of(switches.set("cpu.threads", "257")), HasSubstr("all or 1 to 256"));
  EXPECT_THAT(error_of(switches.set("prefill.chunk", "0")), HasSubstr("1 to 4096"));
  EXPECT_THAT(error_of(switches.set("cpu.isa", "avx51")), HasSubstr("did you mean 'avx512'"));
  EXPECT_EQ(switches, SwitchSet());
}

TEST(Switches, IntegersHaveOneSpelling) {
  SwitchSet switches;
  for (const char* text : {"", "0", "4097", "-1", "+5", "05", " 5", "5 ", "5k", "1e2", "0x10",
                           "99999999999999999999", "all", "automatic"}) {
    EXPECT_FALSE(switches.set("prefill.chunk", text).ok()) << "'" << text << "'";
  }
  for (const char* text : {"1", "10", "4096"}) {
    EXPECT_TRUE(switches.set("prefill.chunk", text).ok()) << text;
  }
  EXPECT_EQ(switches.integer("prefill.chunk"), 4096);
}

TEST(Switches, AFormIsAWordWithANumberOfOneSpelling) {
  SwitchSet switches;
  for (const char* text :
       {"replay", "replay:", "replay:1.1", "replay:-1", "replay:0.90", "replay:.5", "replay:00.5",
        "replay:1.", "replay:1e-1", "replay:0.1234567890", "replay:nan", "replay: 1", "mtp:1",
        "replays:1"}) {
    EXPECT_FALSE(switches.set("decode.drafter", text).ok()) << "'" << text << "'";
  }
  for (const char* text : {"replay:0", "replay:0.9", "replay:1", "lookup", "none"}) {
    EXPECT_TRUE(switches.set("decode.drafter", text).ok()) << text;
  }
  ASSERT_TRUE(switches.set_assignment("decode.drafter=replay:0.25").ok());
  EXPECT_EQ(switches.number("decode.drafter", "replay"), 0.25);
  EXPECT_EQ(switches.number("decode.drafter", "mtp"), std::nullopt);
  EXPECT_EQ(switches.number("decode.confidence", "prob"), std::nullopt);
  ASSERT_TRUE(switches.set_assignment("decode.confidence=margin:4").ok());
  EXPECT_EQ(switches.number("decode.confidence", "margin"), 4);
  EXPECT_EQ(switches.number("decode.confidence", "prob"), std::nullopt);
  EXPECT_THAT(error_of(switches.set("decode.confidence", "prob:2")),
              HasSubstr("off, prob:NUMBER (0 to 1), margin:NUMBER (0 to 1000)"));
}

TEST(Switches, AFileIsReadWhenTheSwitchIsSet) {
  constexpr const char* kKey = "prefill.tile_rules";
  const std::string path = ::testing::TempDir() + "switches_test.yaml";
  const auto write = [&](const char* tile) {
    std::ofstream(path)
        << "name: t\ndate: today\nledger: unmeasured\nchunks: [8]\nshapes: []\n"
           "when: {backend: cpu, device.vendor: v, device.isa: i, device.units: 1}\n"
           "rules: [{op: matmul, type: any, n: 1.., k: 1.., rows: 1.., tile: "
        << tile << "}]\n";
  };
  SwitchSet switches;
  EXPECT_THAT(error_of(switches.set(kKey, "shippedd")),
              AllOf(HasSubstr("prefill.tile_rules: shippedd: no such file"),
                    HasSubstr("did you mean 'shipped'?")));
  EXPECT_FALSE(switches.set(kKey, "").ok());
  write("high");
  EXPECT_THAT(error_of(switches.set(kKey, path)), HasSubstr(path + ":7: rule: 'tile' is 'high'"));
  EXPECT_EQ(switches, SwitchSet());
  write("tall");
  ASSERT_TRUE(switches.set(kKey, path).ok());
  EXPECT_EQ(switches.get(kKey), path);
  ASSERT_NE(switches.tile_rules(), nullptr);
  SwitchSet again;
  ASSERT_TRUE(again.set(kKey, path).ok());
  EXPECT_EQ(again, switches);
  write("wide");
  ASSERT_TRUE(again.set(kKey, path).ok());
  EXPECT_FALSE(again == switches);  // the same path with another content
  std::remove(path.c_str());
  ASSERT_TRUE(switches.set(kKey, "shipped").ok());
  EXPECT_EQ(switches, SwitchSet());
  ASSERT_TRUE(switches.set(kKey, "none").ok());
  EXPECT_EQ(switches.tile_rules(), nullptr);
}

TEST(Switches, AnAssignmentNeedsAnEqualsSign) {
  SwitchSet switches;
  EXPECT_THAT(error_of(switches.set_assignment("prefill.chunk")), HasSubstr("key=value"));
  EXPECT_THAT(error_of(switches.set_assignment("")), HasSubstr("key=value"));
  EXPECT_THAT(error_of(switches.set_assignment("prefill.chunk=1=2")),
              HasSubstr("prefill.chunk=1=2"));
  EXPECT_FALSE(switches.set_assignment("=1").ok());
}

TEST(SwitchesDeathTest, ReadingAnUnknownKeyIsABug) {
  EXPECT_DEATH(static_cast<void>(SwitchSet().get("prefill.chnk")), "info != nullptr");
}

}  // namespace
}  // namespace reckon::kernels
