#include "tensor/row_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/quantise.h"

namespace reckon {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 5;
constexpr int64_t kColumns = 70;  // a padded group

std::vector<float> ramp() {
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.03F * static_cast<float>(i % 97) - 1;
  return values;
}

std::vector<uint8_t> rows_of(const RowSource& source, int64_t first, int64_t count, DType type) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count * row_bytes(type, kColumns)));
  const Status status = source.rows(first, count, type, bytes.data());
  EXPECT_TRUE(status.ok()) << status.error().message;
  return bytes;
}

TEST(StoredRows, CopiesItsOwnType) {
  const std::vector<float> values = ramp();
  const StoredRows source({values.data(), DType::kF32, kRows, kColumns});
  const std::vector<uint8_t> rows = rows_of(source, 1, 3, DType::kF32);
  EXPECT_EQ(std::memcmp(rows.data(), values.data() + kColumns, rows.size()), 0);
}

TEST(StoredRows, PacksAsQuantiseRowDoes) {
  const std::vector<float> values = ramp();
  const StoredRows source({values.data(), DType::kF32, kRows, kColumns});
  for (const DType type : {DType::kP4, DType::kP8}) {
    const std::vector<uint8_t> rows = rows_of(source, 2, 2, type);
    std::vector<uint8_t> expected(rows.size());
    for (int64_t j = 0; j < 2; ++j) {
      ASSERT_TRUE(quantise_row(type, values.data() + (2 + j) * kColumns, kColumns,
                               expected.data() + j * row_bytes(type, kColumns)));
    }
    EXPECT_EQ(rows, expected);
  }
}

TEST(StoredRows, RoundsToPlainTypes) {
  const std::vector<float> values = ramp();
  const StoredRows source({values.data(), DType::kF32, kRows, kColumns});
  for (const DType type : {DType::kF16, DType::kBF16}) {
    const std::vector<uint8_t> rows = rows_of(source, 0, kRows, type);
    std::vector<float> back(kRows * kColumns);
    for (int64_t j = 0; j < kRows; ++j) {
      dequantize_row(type, rows.data() + j * kColumns * 2, kColumns, back.data() + j * kColumns);
    }
    for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], values[i], 0.01) << i;
  }
}

TEST(StoredRows, NamesTheFirstRowThatDoesNotFit) {
  std::vector<float> values = ramp();
  values[3 * kColumns + 1] = values[4 * kColumns] = 1e30F;
  const StoredRows source({values.data(), DType::kF32, kRows, kColumns});
  std::vector<uint8_t> out(1 << 12);
  for (const DType type : {DType::kP4, DType::kP8, DType::kF16}) {
    const Status status = source.rows(1, 4, type, out.data());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("row 3: "));
    EXPECT_THAT(status.error().message, HasSubstr(dtype_name(type)));
    EXPECT_TRUE(source.rows(0, 3, type, out.data()).ok());
  }
}

}  // namespace
}  // namespace reckon
