// Rows, selections and experts for the tests of routed experts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/kernel_testing.h"

namespace reckon::kernels::testing {

inline std::vector<int32_t> ids_of(const std::vector<float>& selection, int64_t row,
                                   int64_t top_k) {
  const int32_t* ids = selected_experts(selection.data(), row, top_k);
  return {ids, ids + top_k};
}

inline std::vector<float> weights_of(const std::vector<float>& selection, int64_t row,
                                     int64_t top_k) {
  const float* weights = selected_weights(selection.data(), row, top_k);
  return {weights, weights + top_k};
}

// Some rows, their selections, and the experts' matrices.
struct Experts {
  DType type;
  int64_t rows, experts, top_k, n, k;
  std::vector<float> x, selection;
  std::vector<uint8_t> first, second;

  // `x_rows` of x are given for each row. Its values are without outliers and give gates of about
  // 1, as a model's do: the errors of the two products that SwiGLU multiplies add up, and a far
  // gate stretches them, but the tolerance is that of one product.
  Experts(DType weight_type, int64_t row_count, int64_t expert_count, int64_t selected,
          int64_t outputs, int64_t columns, int64_t x_rows, Random& random)
      : type(weight_type),
        rows(row_count),
        experts(expert_count),
        top_k(selected),
        n(outputs),
        k(columns),
        x(random.floats(row_count * x_rows * columns, 0.1F)),
        selection(static_cast<size_t>(row_count * 2 * selected)),
        first(random.weights(weight_type, expert_count * outputs, columns)),
        second(random.weights(weight_type, expert_count * outputs, columns)) {
    for (float& value : x) value = std::clamp(value, -0.3F, 0.3F);
    for (int64_t r = 0; r < rows; ++r) select(r, random);
  }

  // A few experts are popular, so that there are large and small groups, and some are idle.
  void select(int64_t row, Random& random) {
    std::vector<int32_t> ids;
    while (static_cast<int64_t>(ids.size()) < top_k) {
      const int64_t most = random.integer(0, 1) == 0 ? top_k : experts - 1;
      const auto id = static_cast<int32_t>(random.integer(0, std::min(most, experts - 1)));
      if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end());
    float* words = selection.data() + row * 2 * top_k;
    std::copy(ids.begin(), ids.end(), reinterpret_cast<int32_t*>(words));
    const std::vector<float> weights = random.floats(top_k);
    std::copy(weights.begin(), weights.end(), words + top_k);
  }

  [[nodiscard]] ExpertMatmulSwigluArgs swiglu(std::vector<float>& out, int64_t from,
                                              int64_t count) const {
    out.assign(static_cast<size_t>(count * top_k * n), std::nanf(""));
    return {.x = x.data() + from * k,
            .selection = selection.data() + from * 2 * top_k,
            .gate = first.data(),
            .up = second.data(),
            .weight_type = type,
            .out = out.data(),
            .rows = count,
            .experts = experts,
            .top_k = top_k,
            .n = n,
            .k = k};
  }

  [[nodiscard]] ExpertMatmulCombineArgs combine(std::vector<float>& out, int64_t from,
                                                int64_t count) const {
    out.assign(static_cast<size_t>(count * n), std::nanf(""));
    return {.x = x.data() + from * top_k * k,
            .selection = selection.data() + from * 2 * top_k,
            .down = first.data(),
            .weight_type = type,
            .out = out.data(),
            .rows = count,
            .experts = experts,
            .top_k = top_k,
            .n = n,
            .k = k};
  }
};

}  // namespace reckon::kernels::testing
