// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): small,
// seedable, the same on every machine. One thread a generator.
#pragma once

#include <cstdint>

namespace reckon::measure {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // In [0, bound), bound > 0; its bias, below bound / 2^64, is of no account here.
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t state_;
};

}  // namespace reckon::measure
