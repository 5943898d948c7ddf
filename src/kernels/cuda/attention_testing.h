// Sequences for the tests of CUDA attention, and what a kernel makes of them in passes of any size.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/cuda/device_testing.h"

namespace reckon::kernels::cuda::testing {

struct Heads {
  int64_t queries, kv, dim;
};

inline std::vector<char> stored(const std::vector<float>& values, DType type) {
  std::vector<char> bytes(values.size() * (type == DType::kF16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = float_to_half(values[i]);
    if (type == DType::kF16) {
      std::memcpy(bytes.data() + 2 * i, &half, 2);
    } else {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    }
  }
  return bytes;
}

inline std::vector<float> loaded(const std::vector<char>& bytes, DType type) {
  std::vector<float> values(bytes.size() / (type == DType::kF16 ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    if (type == DType::kF16) {
      std::memcpy(&half, bytes.data() + 2 * i, 2);
      values[i] = half_to_float(half);
    } else {
      std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    }
  }
  return values;
}

// Rows of one sequence from position `first` on, behind a cache of random values; what lies beyond
// them in the cache is no number.
struct Sequence {
  Sequence(const Heads& of, DType type, int64_t first_position, int64_t count, Random& random)
      : heads(of),
        kv_type(type),
        first(first_position),
        rows(count),
        q(normal_floats(rows * heads.queries * heads.dim, 2.5F, random)),
        k(normal_floats(rows * heads.kv * heads.dim, 1, random)),
        v(normal_floats(rows * heads.kv * heads.dim, 1, random)),
        past_k(normal_floats(heads.kv * first * heads.dim, 1, random)),
        past_v(normal_floats(heads.kv * first * heads.dim, 1, random)) {}

  [[nodiscard]] std::vector<char> cache(const std::vector<float>& past, int64_t capacity) const {
    std::vector<float> values(static_cast<size_t>(heads.kv * capacity * heads.dim), std::nanf(""));
    for (int64_t h = 0; h < heads.kv; ++h) {
      std::copy_n(past.begin() + h * first * heads.dim, first * heads.dim,
                  values.begin() + h * capacity * heads.dim);
    }
    return stored(values, kv_type);
  }

  Heads heads;
  DType kv_type;
  int64_t first, rows;
  std::vector<float> q, k, v, past_k, past_v;
};

struct Outcome {
  std::vector<float> out;
  std::vector<char> cache_k, cache_v;

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return same_bits(a.out, b.out) && same_bits(a.cache_k, b.cache_k) &&
           same_bits(a.cache_v, b.cache_v);
  }
};

class AttentionTest : public DeviceTest {
 protected:
  // Calls pass(args) for passes of `chunk` rows.
  template <typename Pass>
  static Outcome in_chunks(Sequence& s, int64_t capacity, int64_t chunk, const Pass& pass) {
    Outcome outcome{std::vector<float>(s.q.size()), s.cache(s.past_k, capacity),
                    s.cache(s.past_v, capacity)};
    for (int64_t at = 0; at < s.rows; at += chunk) {
      AttentionArgs args;
      args.q = s.q.data() + at * s.heads.queries * s.heads.dim;
      args.k = s.k.data() + at * s.heads.kv * s.heads.dim;
      args.v = s.v.data() + at * s.heads.kv * s.heads.dim;
      args.cache_k = outcome.cache_k.data();
      args.cache_v = outcome.cache_v.data();
      args.kv_type = s.kv_type;
      args.out = outcome.out.data() + at * s.heads.queries * s.heads.dim;
      args.rows = std::min(chunk, s.rows - at);
      args.heads = s.heads.queries;
      args.kv_heads = s.heads.kv;
      args.head_dim = s.heads.dim;
      args.capacity = capacity;
      args.first_position = s.first + at;
      args.scale = 1 / std::sqrt(static_cast<float>(s.heads.dim));
      pass(args);
    }
    return outcome;
  }

  Outcome attend(const Variant& row, Sequence& s, int64_t capacity, int64_t chunk) {
    return in_chunks(s, capacity, chunk,
                     [&](const AttentionArgs& args) { device->run(row, args); });
  }

  // The CPU's reference, on float32 values that the cache's type holds.
  Outcome expected(const Sequence& s, int64_t capacity) {
    Sequence floats = s;
    for (std::vector<float>* values : {&floats.k, &floats.v, &floats.past_k, &floats.past_v}) {
      *values = loaded(stored(*values, s.kv_type), s.kv_type);
    }
    floats.kv_type = DType::kF32;
    Outcome outcome = in_chunks(floats, capacity, s.rows, [&](const AttentionArgs& args) {
      host.run(kernels::testing::reference_row(Op::kAttention), args);
    });
    for (std::vector<char>* cache : {&outcome.cache_k, &outcome.cache_v}) {
      *cache = stored(loaded(*cache, DType::kF32), s.kv_type);
    }
    return outcome;
  }

  static bool supports(const Variant& row, const Sequence& s, int64_t rows) {
    OpCall call{row.op, Phase::kPrefill, s.kv_type, rows, s.heads.queries, s.heads.dim, s.heads.kv};
    return row.supports == nullptr || row.supports(call).empty();
  }

  Random random{21};
};

}  // namespace reckon::kernels::cuda::testing
