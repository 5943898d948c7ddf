#include "base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using ::testing::HasSubstr;

TEST(Bytes, ParsesUnits) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096U);
  EXPECT_EQ(parse_bytes("0").value(), 0U);
  EXPECT_EQ(parse_bytes("7B").value(), 7U);
  EXPECT_EQ(parse_bytes("512MB").value(), 512'000'000U);
  EXPECT_EQ(parse_bytes("96GiB").value(), uint64_t{96} << 30);
  EXPECT_EQ(parse_bytes("96 GB").value(), 96'000'000'000U);
  EXPECT_EQ(parse_bytes("1.5GiB").value(), 1'610'612'736U);
  EXPECT_EQ(parse_bytes("2TiB").value(), uint64_t{2} << 40);
  EXPECT_EQ(parse_bytes("3kB").value(), 3000U);
  EXPECT_EQ(parse_bytes("3KiB").value(), 3072U);
}

TEST(Bytes, RejectsWhatIsNoSizeAndNamesIt) {
  for (const char* text :
       {"", " ", "GiB", "-1", "-1GB", "1e3", "1.2.3GB", "5 parsecs", "12gib", ".5GB", "5.GB", "nan",
        "inf", "0x10", "9000000TiB", "9223372036854775808", "99999999999999999999999999"}) {
    const auto bytes = parse_bytes(text);
    ASSERT_FALSE(bytes.ok()) << text;
    EXPECT_EQ(bytes.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(bytes.error().message, HasSubstr("'" + std::string(text) + "'"));
  }
}

TEST(Bytes, ParsesLimitsAsSizesOrShares) {
  EXPECT_EQ(parse_limit("75%", 1000).value(), 750U);
  EXPECT_EQ(parse_limit("100%", 1000).value(), 1000U);
  EXPECT_EQ(parse_limit("0.5%", 1000).value(), 5U);
  EXPECT_EQ(parse_limit("2KiB", 1000).value(), 2048U);
  for (const char* text : {"0%", "101%", "%", "-5%", "5 GB%", "five%"}) {
    EXPECT_FALSE(parse_limit(text, 1000).ok()) << text;
  }
}

TEST(Bytes, FormatsBothUnits) {
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.0 kB (1.0 KiB)");
  EXPECT_EQ(format_bytes(98'362'432), "98.4 MB (93.8 MiB)");
  EXPECT_EQ(format_bytes(uint64_t{96} << 30), "103.08 GB (96.00 GiB)");
  EXPECT_EQ(format_bytes_short(1023), "1023 B");
  EXPECT_EQ(format_bytes_short(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes_short(98'362'432), "93.8 MiB");
  EXPECT_EQ(format_bytes_short(uint64_t{3} << 29), "1.50 GiB");
}

TEST(Bytes, CheckedArithmeticSeesOverflow) {
  uint64_t out = 0;
  EXPECT_TRUE(multiply_checked(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, out));
  EXPECT_EQ(out, 0xffffffff00000000U);
  EXPECT_FALSE(multiply_checked(uint64_t{1} << 32, uint64_t{1} << 32, out));
  EXPECT_TRUE(add_checked(~uint64_t{0}, 0, out));
  EXPECT_FALSE(add_checked(~uint64_t{0}, 1, out));
}

}  // namespace
}  // namespace reckon
