#include "kernels/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace reckon::kernels {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Device machine(Isa isa) {
  Device device;
  device.backend = "cpu";
  device.best_isa = isa;
  return device;
}

Error error_of(const std::string& text) {
  const auto recipe = parse_recipe(text, "r.yaml");
  return recipe.ok() ? Error{} : recipe.error();
}

TEST(Recipe, SetsItsSwitches) {
  const auto recipe = parse_recipe(
      "when: {backend: cpu, device.isa: amx}\n"
      "switches:\n"
      "  - {key: prefill.chunk, value: 256, ledger: unmeasured}\n"
      "  - {key: decode.mtp_depth, value: auto, ledger: [rk-abcd, rk-efgh]}\n",
      "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet switches;
  const auto applied = recipe->apply(machine(Isa::kAmx), switches);
  ASSERT_TRUE(applied.ok()) << applied.error().message;
  EXPECT_THAT(*applied, IsEmpty());
  EXPECT_EQ(switches.get("prefill.chunk"), "256");
  EXPECT_EQ(switches.get("decode.mtp_depth"), "auto");
}

TEST(Recipe, LeavesOutLinesWhoseConditionDoesNotHold) {
  const auto recipe = parse_recipe(
      "switches:\n"
      "  - {key: prefill.chunk, value: 256, when: {device.isa: [avx2, avx512]}}\n"
      "  - {key: prefill.chunk, value: 1024, when: {device.isa: amx, device.units: 4}}\n"
      "  - {key: decode.graph, value: of another version, when: {backend: cuda}}\n",
      "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet narrow;
  Device device = machine(Isa::kAvx512);
  device.cores = 2;
  const auto first = recipe->apply(device, narrow);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(narrow.get("prefill.chunk"), "256");
  EXPECT_THAT(*first,
              ElementsAre("r.yaml:3: prefill.chunk=1024 is left out: for device.isa amx, "
                          "device.units 4; this is device.isa avx512, device.units 2",
                          "r.yaml:4: decode.graph=of another version is left out: for backend "
                          "cuda; this is backend cpu"));
  SwitchSet wide;
  device = machine(Isa::kAmx);
  device.cores = 4;
  const auto second = recipe->apply(device, wide);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(wide.get("prefill.chunk"), "1024");
}

TEST(Recipe, TwoLinesThatBothHoldAreAMistake) {
  const auto recipe = parse_recipe(
      "switches:\n"
      "  - {key: prefill.chunk, value: 256, when: {backend: cpu}}\n"
      "  - {key: prefill.chunk, value: 1024, when: {device.isa: amx}}\n",
      "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet switches;
  EXPECT_TRUE(recipe->apply(machine(Isa::kAvx2), switches).ok());
  const auto applied = recipe->apply(machine(Isa::kAmx), switches);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().message,
            "r.yaml:3: 'prefill.chunk' is set in line 2, too, and both conditions hold here");
}

TEST(Recipe, IsRefusedOnAnotherDevice) {
  const auto recipe =
      parse_recipe("when: {backend: cpu, device.isa: amx}\nswitches: []\n", "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet switches;
  const auto applied = recipe->apply(machine(Isa::kAvx2), switches);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(
      applied.error().message,
      "r.yaml: a recipe for backend cpu, device.isa amx; this is backend cpu, device.isa avx2");
}

TEST(Recipe, IsRefusedInOneLine) {
  const auto recipe = parse_recipe("when: {backend: \"a\\nb\"}\nswitches: []\n", "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet switches;
  const auto applied = recipe->apply(machine(Isa::kAvx2), switches);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().message.find('\n'), std::string::npos);
}

TEST(Recipe, NamesTheLineOfAMistake) {
  EXPECT_THAT(error_of("switches:\n  - {key: prefill.chunk}\n").message,
              HasSubstr("r.yaml:2: 'value' is missing"));
  EXPECT_THAT(error_of("switches: 3\n").message, HasSubstr("r.yaml:1: expected a list"));
  EXPECT_THAT(error_of("when: {}\n").message, HasSubstr("'switches' is missing"));
  EXPECT_THAT(error_of("when: {chunk: 3}\nswitches: []\n").message,
              HasSubstr("unknown key 'chunk'; known are backend, device.vendor, device.isa"));
  EXPECT_THAT(error_of("when: {device.units: 2..4}\nswitches: []\n").message,
              HasSubstr("r.yaml:1: when.device.units: expected a value or a list of values"));
  EXPECT_THAT(error_of("switches:\n  - {key: a, value: b, when: {chunk: 3}}\n").message,
              HasSubstr("r.yaml:2: unknown key 'chunk'"));
  EXPECT_THAT(error_of("switches:\n  - {key: a, value: b}\n  - {key: a, value: c}\n").message,
              HasSubstr("r.yaml:3: 'a' stands twice, first in line 2"));
}

TEST(Recipe, SaysWhichSwitchIsUnknown) {
  for (const char* when : {"", ", when: {backend: cuda}"}) {
    const auto recipe = parse_recipe(
        "switches:\n  - {key: prefill.chunks, value: 3" + std::string(when) + "}\n", "r.yaml");
    ASSERT_TRUE(recipe.ok());
    SwitchSet switches;
    const auto applied = recipe->apply(machine(Isa::kAmx), switches);
    ASSERT_FALSE(applied.ok());
    EXPECT_THAT(applied.error().message, HasSubstr("r.yaml:2: unknown switch 'prefill.chunks'"));
  }
}

TEST(Recipe, AFolderIsNone) {
  const auto recipe = load_recipe(std::filesystem::temp_directory_path().string());
  ASSERT_FALSE(recipe.ok());
  EXPECT_EQ(recipe.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(recipe.error().message, HasSubstr("is a folder, not a file"));
}

}  // namespace
}  // namespace reckon::kernels
