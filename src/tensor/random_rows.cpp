#include "tensor/random_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"

namespace reckon {
namespace {

constexpr int64_t kBlock = 64;
constexpr double kSumDeviation = 147.8;   // of the sum of four bytes: sqrt(4 * (256^2 - 1) / 12)
constexpr double kCodeDeviation4 = 4.61;  // of 0...15: sqrt((16^2 - 1) / 12)
constexpr double kCodeDeviation8 = 73.6;  // of -127...127: sqrt((255^2 - 1) / 12)
constexpr double kNormNoise = 0.02;

uint64_t splitmix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

class Stream {
 public:
  explicit Stream(uint64_t seed) {
    for (uint64_t& word : s_) word = splitmix64(seed);
  }

  uint64_t next() {
    const uint64_t result = std::rotl(s_[0] + s_[3], 23) + s_[0];
    const uint64_t t = s_[1] << 17;
    s_[2] ^= s_[0];
    s_[3] ^= s_[1];
    s_[1] ^= s_[2];
    s_[0] ^= s_[3];
    s_[2] ^= t;
    s_[3] = std::rotl(s_[3], 45);
    return result;
  }

 private:
  std::array<uint64_t, 4> s_;
};

// Two sums of four bytes each, in the halves of the word.
uint64_t byte_sums(uint64_t x) {
  constexpr uint64_t kBytes = 0x00ff00ff00ff00ffU;
  constexpr uint64_t kPairs = 0x0000ffff0000ffffU;
  const uint64_t pairs = (x & kBytes) + ((x >> 8) & kBytes);
  return (pairs & kPairs) + ((pairs >> 16) & kPairs);
}

// put(i, value) for each of the k values of a row.
template <typename Values, typename Put>
void draw_values(Stream stream, const Values& values, int64_t k, const Put& put) {
  for (int64_t i = 0; i < k; i += 2) {
    const uint64_t sums = byte_sums(stream.next());
    put(i, values[sums & 0xffffU]);
    if (i + 1 < k) put(i + 1, values[sums >> 32]);
  }
}

template <typename T>
void store(void* out, int64_t index, T value) {
  std::memcpy(static_cast<char*>(out) + index * int64_t{sizeof value}, &value, sizeof value);
}

// Four random bits a block, out of one word for sixteen.
class Picks {
 public:
  size_t next(Stream& stream) {
    if (left_ == 0) {
      word_ = stream.next();
      left_ = 16;
    }
    const size_t pick = word_ & 15U;
    word_ >>= 4;
    --left_;
    return pick;
  }

 private:
  uint64_t word_ = 0;
  int left_ = 0;
};

template <typename Grids>
void draw_p4(Stream stream, const Grids& grids, int64_t k, void* out) {
  Picks picks;
  auto* to = static_cast<char*>(out);
  for (int64_t first = 0; first < k; first += kBlock, to += sizeof(BlockP4)) {
    BlockP4 block;
    std::memcpy(&block, &grids[picks.next(stream)], 2 * sizeof(uint16_t));
    for (size_t i = 0; i < sizeof block.codes; i += sizeof(uint64_t)) {
      const uint64_t word = stream.next();
      std::memcpy(block.codes + i, &word, sizeof word);
    }
    for (int64_t i = k - first; i < kBlock; ++i) {  // padding
      block.codes[i % 32] = static_cast<uint8_t>(block.codes[i % 32] & (i < 32 ? 0xf0 : 0x0f));
    }
    std::memcpy(to, &block, sizeof block);
  }
}

// -128 in any byte becomes 0.
uint64_t without_lowest(uint64_t word) {
  constexpr uint64_t kLow7 = 0x7f7f7f7f7f7f7f7fU;
  // The high bit of each byte of `others` is set where the low seven bits are not all 0.
  const uint64_t others = (word & kLow7) + kLow7;
  return word & (others | kLow7);
}

template <typename Scales>
void draw_p8(Stream stream, const Scales& scales, int64_t k, void* out) {
  Picks picks;
  auto* to = static_cast<char*>(out);
  for (int64_t first = 0; first < k; first += kBlock, to += sizeof(BlockP8)) {
    BlockP8 block;
    block.scale = scales[picks.next(stream)];
    for (size_t i = 0; i < sizeof block.codes; i += sizeof(uint64_t)) {
      const uint64_t word = without_lowest(stream.next());
      std::memcpy(block.codes + i, &word, sizeof word);
    }
    for (int64_t i = k - first; i < kBlock; ++i) block.codes[i] = 0;  // padding
    std::memcpy(to, &block, sizeof block);
  }
}

template <typename Tables>
void draw_row(const Stream& stream, const Tables& tables, DType type, int64_t k, void* out) {
  switch (type) {
    case DType::kBF16:
      return draw_values(stream, tables.values, k,
                         [&](int64_t i, uint16_t v) { store(out, i, v); });
    case DType::kF32:
      return draw_values(stream, tables.values, k,
                         [&](int64_t i, uint16_t v) { store(out, i, bf16_to_float(v)); });
    case DType::kF16:
      return draw_values(stream, tables.values, k, [&](int64_t i, uint16_t v) {
        store(out, i, float_to_half(bf16_to_float(v)));
      });
    case DType::kP4:
      return draw_p4(stream, tables.p4_grids, k, out);
    case DType::kP8:
      return draw_p8(stream, tables.p8_scales, k, out);
    default:
      RECKON_CHECK(false);  // no type that rows are made in
  }
}

}  // namespace

RandomRows::RandomRows(uint64_t seed, std::string_view name, RandomKind kind, int64_t n, int64_t k,
                       std::vector<float> row_factors)
    : kind_(kind), n_(n), k_(k), row_factors_(std::move(row_factors)) {
  RECKON_CHECK(n > 0 && k > 0);
  RECKON_CHECK(row_factors_.empty() || static_cast<int64_t>(row_factors_.size()) == n);
  uint64_t state = hash64(name) ^ splitmix64(seed);
  key_ = splitmix64(state);
  tables_ = make_tables(kind, 1 / std::sqrt(static_cast<double>(k)));
}

RandomRows::Tables RandomRows::make_tables(RandomKind kind, double deviation) {
  Tables tables;
  const double mean = kind == RandomKind::kNorm ? 1 : 0;
  const double step = (kind == RandomKind::kNorm ? kNormNoise : deviation) / kSumDeviation;
  for (size_t i = 0; i < kSums; ++i) {
    const double value = mean + (static_cast<double>(i) - (kSums - 1) / 2.0) * step;
    tables.values[i] = float_to_bf16(static_cast<float>(value));
  }
  for (size_t i = 0; i < kScales; ++i) {
    const double scale = deviation * (0.75 + (static_cast<double>(i) + 0.5) / (2 * kScales));
    // Seven bits of the scale: 7.5 times it, its half 15 times, is a half as well.
    const uint32_t grid = float_to_half(static_cast<float>(scale / kCodeDeviation4)) & 0xfff0U;
    const float minimum = -7.5F * half_to_float(static_cast<uint16_t>(grid));
    tables.p4_grids[i] = grid | static_cast<uint32_t>(float_to_half(minimum)) << 16;
    tables.p8_scales[i] = float_to_half(static_cast<float>(scale / kCodeDeviation8));
  }
  return tables;
}

void RandomRows::write_row(int64_t row, DType type, void* out) const {
  uint64_t state = key_ + static_cast<uint64_t>(row);
  const Stream stream(splitmix64(state));
  if (row_factors_.empty()) return draw_row(stream, tables_, type, k_, out);
  const double factor = row_factors_[static_cast<size_t>(row)];
  const double deviation = factor / std::sqrt(static_cast<double>(k_));
  draw_row(stream, make_tables(kind_, deviation), type, k_, out);
}

Status RandomRows::rows(int64_t first, int64_t count, DType type, void* out) const {
  RECKON_CHECK(first >= 0 && count >= 0 && first + count <= n_);
  RECKON_CHECK(kind_ == RandomKind::kMatrix || block_elements(type) == 1);
  const int64_t stride = row_bytes(type, k_);
  for (int64_t j = 0; j < count; ++j) {
    write_row(first + j, type, static_cast<char*>(out) + j * stride);
  }
  return {};
}

}  // namespace reckon
