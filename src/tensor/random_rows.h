// Made-up weights of a tensor: for measuring a model's real dimensions without its files.
//
// Deterministic: row r depends on (seed, the tensor's name, r) and the type alone. Packed types are
// drawn directly, block by block, with no wider copy on the way, so they are not what packing the
// plain values would give. The plain types agree: their values are bf16 numbers, so that f32 and
// bf16 of one row are the same numbers (and f16, up to its rounding).
//
// A matrix [n, k] has independent weights of mean 0 and a standard deviation of 1/sqrt(k), so that
// outputs are about as large as inputs, through any number of layers behind a norm:
//   plain  the sum of four random bytes, centred (bell-shaped, within 3.5 deviations);
//   p4     codes 0...15, uniform, minimum = -7.5 scales exactly; p8: codes -127...127, uniform;
//          scales differ from group to group by up to a quarter.
// A norm is 1 with noise of 2 %. A row's deviation may have a factor of its own.
//
// The stream of a row is xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number
// Generators", 2021), seeded by their splitmix64.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/row_source.h"

namespace reckon {

enum class RandomKind : uint8_t { kMatrix, kNorm };

class RandomRows final : public RowSource {
 public:
  // `row_factors`: of each row's deviation, n of them; empty: all 1.
  RandomRows(uint64_t seed, std::string_view name, RandomKind kind, int64_t n, int64_t k,
             std::vector<float> row_factors = {});
  // f32, f16, bf16, p4 and p8. Never fails.
  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override;

 private:
  static constexpr size_t kSums = 4 * 255 + 1;  // of four bytes
  static constexpr size_t kScales = 16;

  // What a row's values are drawn from.
  struct Tables {
    std::array<uint16_t, kSums> values;       // bf16, by the sum drawn
    std::array<uint32_t, kScales> p4_grids;   // scale, minimum << 16
    std::array<uint16_t, kScales> p8_scales;  // both drawn from by a group
  };
  [[nodiscard]] static Tables make_tables(RandomKind kind, double deviation);
  void write_row(int64_t row, DType type, void* out) const;

  RandomKind kind_;
  int64_t n_;
  int64_t k_;
  uint64_t key_;
  Tables tables_;
  std::vector<float> row_factors_;
};

}  // namespace reckon
