// Numbers that no other process draws.
#pragma once

#include <cstdint>
#include <random>

namespace reckon::experiment {

[[nodiscard]] inline uint64_t random_bits() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace reckon::experiment
