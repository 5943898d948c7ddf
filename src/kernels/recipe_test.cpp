#include "kernels/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace reckon::kernels {
namespace {

using testing::HasSubstr;

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
  ASSERT_TRUE(recipe->apply(machine(Isa::kAmx), switches).ok());
  EXPECT_EQ(switches.get("prefill.chunk"), "256");
  EXPECT_EQ(switches.get("decode.mtp_depth"), "auto");
}

TEST(Recipe, IsRefusedOnAnotherDevice) {
  const auto recipe =
      parse_recipe("when: {backend: cpu, device.isa: amx}\nswitches: []\n", "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet switches;
  const Status applied = recipe->apply(machine(Isa::kAvx2), switches);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(applied.error().message, "r.yaml: a recipe for cpu with amx; this is cpu with avx2");
}

TEST(Recipe, IsRefusedInOneLine) {
  const auto recipe = parse_recipe("when: {backend: \"a\\nb\"}\nswitches: []\n", "r.yaml");
  ASSERT_TRUE(recipe.ok()) << recipe.error().message;
  SwitchSet switches;
  const Status applied = recipe->apply(machine(Isa::kAvx2), switches);
  ASSERT_FALSE(applied.ok());
  EXPECT_EQ(applied.error().message.find('\n'), std::string::npos);
}

TEST(Recipe, NamesTheLineOfAMistake) {
  EXPECT_THAT(error_of("switches:\n  - {key: prefill.chunk}\n").message,
              HasSubstr("r.yaml:2: 'value' is missing"));
  EXPECT_THAT(error_of("switches: 3\n").message, HasSubstr("r.yaml:1: expected a list"));
  EXPECT_THAT(error_of("when: {}\n").message, HasSubstr("'switches' is missing"));
  EXPECT_THAT(error_of("when: {chunk: 3}\nswitches: []\n").message,
              HasSubstr("unknown key 'chunk'; known are backend, device.isa"));
  EXPECT_THAT(error_of("switches:\n  - {key: a, value: b}\n  - {key: a, value: c}\n").message,
              HasSubstr("r.yaml:3: 'a' stands twice, first in line 2"));
}

TEST(Recipe, SaysWhichSwitchIsUnknown) {
  const auto recipe = parse_recipe("switches:\n  - {key: prefill.chunks, value: 3}\n", "r.yaml");
  ASSERT_TRUE(recipe.ok());
  SwitchSet switches;
  const Status applied = recipe->apply(machine(Isa::kAmx), switches);
  ASSERT_FALSE(applied.ok());
  EXPECT_THAT(applied.error().message, HasSubstr("r.yaml:2: unknown switch 'prefill.chunks'"));
}

TEST(Recipe, AFolderIsNone) {
  const auto recipe = load_recipe(std::filesystem::temp_directory_path().string());
  ASSERT_FALSE(recipe.ok());
  EXPECT_EQ(recipe.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(recipe.error().message, HasSubstr("is a folder, not a file"));
}

}  // namespace
}  // namespace reckon::kernels
