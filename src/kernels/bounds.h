// What a machine can do at most, measured now: how fast it reads memory, and how many operations
// its multiplying instructions do. Every other figure is worth what share of these it reaches.
//
// Pure but for Backend::measure_bounds() (backend.h), which makes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reckon::kernels {

enum class BoundKind : uint8_t {
  kRead,      // bytes read a second
  kCopy,      // bytes read and written a second
  kMultiply,  // operations a second; a multiplication and an addition count as two
  kClock,     // cycles a second of one core
};

struct Bound {
  std::string name;  // "read", "fma_f32_avx2": stable, for scripts
  double value = 0;  // the median of the repetitions
  std::string unit;  // "byte/s", "op/s" or "Hz"
  BoundKind kind = BoundKind::kRead;
  double spread = 0;   // (largest - smallest) / median of the repetitions
  std::string detail;  // how it was measured: "3.75 GiB, 2 threads"
};

struct BoundsOptions {
  int threads = 0;            // of a CPU; 0: every core that this process may use
  uint64_t buffer_bytes = 0;  // to read; 0: as much as no cache holds (each backend says how much)
  int repetitions = 7;        // at least 1
  double repetition_ms = 30;  // how long each repetition of kMultiply lasts, about
};

// A bound of the rates that were seen, at least one.
[[nodiscard]] Bound bound_of(std::string name, BoundKind kind, std::vector<double> rates,
                             std::string detail);

// The highest of a kind; null where there is none.
[[nodiscard]] const Bound* best_bound(std::span<const Bound> bounds, BoundKind kind);

[[nodiscard]] const char* bound_kind_name(BoundKind kind);  // "read", "copy", "multiply", "clock"

}  // namespace reckon::kernels
