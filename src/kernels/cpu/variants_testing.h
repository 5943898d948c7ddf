// What the tests that walk the tables share: every row of an op, its stamp, its distance from what
// is expected, and its bits.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "kernels/cpu/kernel_testing.h"

namespace reckon::kernels::testing {

// docs/numerics.md: int16 activations are held to the bound of float32 ones, bfloat16 to its own;
// those for q6_k have 15 bits.
inline double tolerance(const Variant& row, DType weight_type) {
  if (row.numerics == NumericsClass::kFast) return 2e-2;
  return weight_type == DType::kQ6_K ? 2e-4 : 1e-4;
}

// Row by row; a row of a few values may cancel out to nearly nothing, so those go all together.
inline void expect_rows_close(const std::vector<float>& values, const std::vector<float>& expected,
                              int64_t rows, const Variant& variant, const std::string& what = "",
                              DType weight_type = DType::kF32) {
  ASSERT_EQ(values.size(), expected.size());
  const auto size = static_cast<int64_t>(values.size());
  if (size / rows < 8) rows = 1;
  const int64_t columns = size / rows;
  for (int64_t r = 0; r < rows; ++r) {
    EXPECT_LE(relative_error(values.data() + r * columns, expected.data() + r * columns, columns),
              tolerance(variant, weight_type))
        << variant.name << " " << what << " row " << r;
  }
}

// The function must stamp its own row's name and hash, once, with the call that it was given.
inline void expect_stamped(Runner& runner, const Variant& row, const OpCall& call) {
  const std::vector<TraceCount> rows = runner.trace().rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].row.variant, row.name);
  EXPECT_EQ(rows[0].row.source_hash, row.source_hash);
  EXPECT_EQ(rows[0].row.op, op_name(row.op));
  EXPECT_EQ(rows[0].row.shape, shape_text(call));
  EXPECT_EQ(rows[0].count, 1u);
  runner.trace().reset();
}

// Calls `check(row)` for every table row of an op that this machine can run.
template <typename Check>
void for_each_row(Op op, const Check& check) {
  for (const Variant& row : all_variants()) {
    if (row.op != op) continue;
    const std::string missing = missing_isa(row);
    if (!missing.empty()) {
      std::cout << "skipped: " << missing << "\n";
      continue;
    }
    check(row);
  }
}

// Every exact row of an op that this machine can run.
inline std::vector<const Variant*> exact_rows(Op op) {
  std::vector<const Variant*> rows;
  for (const Variant& row : all_variants()) {
    if (row.op != op || row.numerics != NumericsClass::kExact) continue;
    const std::string missing = missing_isa(row);
    if (missing.empty()) {
      rows.push_back(&row);
    } else {
      std::cout << "skipped: " << missing << "\n";
    }
  }
  return rows;
}

inline bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

}  // namespace reckon::kernels::testing
