#include "tensor/quantise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"

namespace reckon {
namespace {

constexpr int64_t kBlock = 64;
constexpr float kLargestHalf = 65504.0F;

// Shares of a group's range that codes of p4 are tried to span: cutting off the outermost weights
// pays where they are few.
constexpr std::array<float, 4> kShrink{0.95F, 0.9F, 0.84F, 0.76F};
constexpr int kLeastSquareSteps = 2;

// Four values side by side, for the loops that packing spends its time in: compilers do not
// vectorise them at the usual level of optimisation.
using Four = float __attribute__((vector_size(16)));
constexpr int64_t kFours = kBlock / 4;

// The next half towards minus infinity; not for -65504 and below.
uint16_t half_below(uint16_t half) {
  if ((half & 0x7fffU) == 0) return 0x8001;
  return static_cast<uint16_t>((half & 0x8000U) != 0 ? half + 1U : half - 1U);
}

uint16_t half_rounded_down(float value) {
  const uint16_t half = float_to_half(value);
  return half_to_float(half) > value ? half_below(half) : half;
}

// For values of 0 and more.
uint16_t half_rounded_up(float value) {
  const uint16_t half = float_to_half(value);
  return half_to_float(half) < value ? static_cast<uint16_t>(half + 1U) : half;
}

// To the nearest whole number, ties to even, for values far below 2^22.
template <typename T>
T whole(T value) {
  constexpr float kRound = 0x1.8p23F;
  return (value + kRound) - kRound;
}

template <typename T>
T between(T value, T low, T high) {
  value = value > low ? value : low;
  return value < high ? value : high;
}

Four four_of(float value) {
  return Four{value, value, value, value};
}

float sum_of(Four v) {
  return (v[0] + v[1]) + (v[2] + v[3]);
}

// A group filled up with zeros to 64; `real` is 1 for its elements and 0 for the filling.
struct Group {
  Four x[kFours];
  Four real[kFours];
  int64_t count;
  float values[kBlock];  // x again
};

Group group_at(const float* row, int64_t first, int64_t k) {
  Group group;
  group.count = std::min(kBlock, k - first);
  std::memcpy(group.values, row + first, static_cast<size_t>(group.count) * sizeof(float));
  for (Four& real : group.real) real = four_of(1);
  for (int64_t i = group.count; i < kBlock; ++i) {
    group.values[i] = 0;
    group.real[i / 4][i % 4] = 0;
  }
  std::memcpy(group.x, group.values, sizeof group.x);
  return group;
}

// ---- p4 ----

struct Grid {
  uint16_t scale;
  uint16_t minimum;
};

// 0 for a scale of 0, whose codes are all 0.
float inverse_of(float scale) {
  return scale > 0 ? 1.0F / scale : 0.0F;
}

Four nearest_codes(Four x, float minimum, float inverse) {
  return whole(between((x - minimum) * inverse, four_of(0), four_of(15)));
}

float squared_error(const Group& group, const Grid& grid) {
  const float scale = half_to_float(grid.scale);
  const float minimum = half_to_float(grid.minimum);
  const float inverse = inverse_of(scale);
  Four sums = four_of(0);
  for (int64_t i = 0; i < kFours; ++i) {
    const Four codes = nearest_codes(group.x[i], minimum, inverse);
    const Four error = (group.x[i] - (codes * scale + minimum)) * group.real[i];
    sums += error * error;
  }
  return sum_of(sums);
}

// The scale and minimum of least squared error for the codes that `grid` gives; `grid` itself where
// they do not determine one (all codes equal) or a half cannot hold it.
Grid least_squares(const Group& group, const Grid& grid) {
  const float minimum = half_to_float(grid.minimum);
  const float inverse = inverse_of(half_to_float(grid.scale));
  Four code_sums = four_of(0), square_sums = code_sums, sums = code_sums, product_sums = code_sums;
  for (int64_t i = 0; i < kFours; ++i) {
    const Four codes = nearest_codes(group.x[i], minimum, inverse) * group.real[i];
    const Four above = (group.x[i] - minimum) * group.real[i];
    code_sums += codes;
    square_sums += codes * codes;
    sums += above;
    product_sums += codes * above;
  }
  const auto n = static_cast<float>(group.count);
  const float codes = sum_of(code_sums);
  const float above = sum_of(sums);
  const float determinant = n * sum_of(square_sums) - codes * codes;  // whole numbers: exact
  if (!(determinant > 0)) return grid;
  const float scale = (n * sum_of(product_sums) - codes * above) / determinant;
  const float offset = minimum + (above - scale * codes) / n;
  if (!(scale > 0 && scale <= kLargestHalf && std::abs(offset) <= kLargestHalf)) return grid;
  return {float_to_half(scale), float_to_half(offset)};
}

class BestGrid {
 public:
  BestGrid(const Group& group, const Grid& first)
      : group_(group), grid_(first), error_(squared_error(group, first)) {}

  void consider(const Grid& grid) {
    const float error = squared_error(group_, grid);
    if (!(error < error_)) return;
    grid_ = grid;
    error_ = error;
  }
  [[nodiscard]] const Grid& grid() const { return grid_; }

 private:
  const Group& group_;
  Grid grid_;
  float error_;
};

Grid choose_grid(const Group& group) {
  const auto [low, high] = std::minmax_element(group.values, group.values + group.count);
  const float range = *high - *low;
  const uint16_t minimum = half_rounded_down(*low);
  const float reach = *high - half_to_float(minimum);
  if (reach == 0) return {0, minimum};
  BestGrid best(group, {half_rounded_up(reach / 15), minimum});
  if (range == 0) return best.grid();
  for (const float share : kShrink) {
    const float cut = range * (1 - share) / 2;
    best.consider({float_to_half(range * share / 15), float_to_half(*low + cut)});
  }
  for (int step = 0; step < kLeastSquareSteps; ++step) {
    best.consider(least_squares(group, best.grid()));
  }
  return best.grid();
}

bool quantise_p4(const Group& group, BlockP4& block) {
  for (int64_t i = 0; i < group.count; ++i) {
    if (!(std::abs(group.values[i]) <= kLargestHalf)) return false;
  }
  const Grid grid = choose_grid(group);
  block = {grid.scale, grid.minimum, {}};
  const float minimum = half_to_float(grid.minimum);
  const float inverse = inverse_of(half_to_float(grid.scale));
  for (int64_t i = 0; i < kFours; ++i) {
    const Four codes = nearest_codes(group.x[i], minimum, inverse) * group.real[i];
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t at = 4 * i + j;
      const int code = static_cast<int>(codes[j]) << (at < 32 ? 0 : 4);
      block.codes[at % 32] = static_cast<uint8_t>(block.codes[at % 32] | code);
    }
  }
  return true;
}

// ---- p8 ----

bool quantise_p8(const Group& group, BlockP8& block) {
  float largest = 0;
  for (int64_t i = 0; i < group.count; ++i) {
    const float magnitude = std::abs(group.values[i]);
    if (!(magnitude <= 127 * kLargestHalf)) return false;
    largest = std::max(largest, magnitude);
  }
  block = {};
  if (largest == 0) return true;
  block.scale = float_to_half(largest / 127);
  if (half_to_float(block.scale) * 127.5F < largest) ++block.scale;
  const float scale = half_to_float(block.scale);
  for (int64_t i = 0; i < group.count; ++i) {
    block.codes[i] = static_cast<int8_t>(whole(between(group.values[i] / scale, -127.0F, 127.0F)));
  }
  return true;
}

template <typename Block, typename Pack>
bool quantise_blocks(const float* row, int64_t k, void* out, const Pack& pack) {
  auto* bytes = static_cast<char*>(out);
  for (int64_t first = 0; first < k; first += kBlock, bytes += sizeof(Block)) {
    Block block;
    if (!pack(group_at(row, first, k), block)) return false;
    std::memcpy(bytes, &block, sizeof block);
  }
  return true;
}

}  // namespace

bool can_quantise_to(DType type) {
  return type == DType::kP4 || type == DType::kP8;
}

bool quantise_row(DType to, const float* row, int64_t k, void* out) {
  RECKON_CHECK(can_quantise_to(to) && k >= 0);
  if (to == DType::kP4) return quantise_blocks<BlockP4>(row, k, out, quantise_p4);
  return quantise_blocks<BlockP8>(row, k, out, quantise_p8);
}

}  // namespace reckon
