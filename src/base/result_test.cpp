#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace reckon {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return usage_error("odd");
  return value / 2;
}

Result<std::string> quarter_text(int value) {
  TRY_ASSIGN(const int first, half(value));
  TRY_ASSIGN(const int second, half(first));
  return std::to_string(second);
}

Status check_even(int value) {
  TRY(half(value));
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = half(4);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 2);
  const Result<int> bad = half(3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(bad.error().message, "odd");
}

TEST(Result, TryPassesErrorsOn) {
  EXPECT_EQ(quarter_text(8).value(), "2");
  EXPECT_EQ(quarter_text(6).error().message, "odd");
  EXPECT_TRUE(check_even(2).ok());
  EXPECT_EQ(check_even(1).error().kind, ErrorKind::kUsage);
}

TEST(Result, CarriesTypesThatOnlyMove) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  std::unique_ptr<int> taken = make().value();
  EXPECT_EQ(*taken, 7);
}

TEST(Result, KindsMapToTheirMakers) {
  EXPECT_EQ(failed("x").kind, ErrorKind::kFailed);
  EXPECT_EQ(usage_error("x").kind, ErrorKind::kUsage);
  EXPECT_EQ(refused("x").kind, ErrorKind::kRefused);
  EXPECT_EQ(unsupported("x").kind, ErrorKind::kUnsupported);
}

TEST(ResultDeathTest, AskingForWhatIsNotThereIsABug) {
  EXPECT_DEATH((void)half(3).value(), "CHECK");
  EXPECT_DEATH((void)half(4).error(), "CHECK");
  EXPECT_DEATH((void)check_even(2).error(), "CHECK");
}

}  // namespace
}  // namespace reckon
