// What the machine is, as far as choosing kernels and matching ledger entries goes.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/op.h"

namespace reckon::kernels {

struct Device {
  std::string name;             // "Intel(R) Xeon(R) Processor": shown, never matched on
  std::string vendor;           // matched on: "GenuineIntel"
  std::string backend;          // "cpu", "cuda"
  Isa best_isa = Isa::kScalar;  // of a CPU
  std::string
      features;   // matched on: sorted instruction-set names, "avx2 avx512f avx512vnni f16c fma"
  int cores = 1;  // usable by this process; a GPU's multiprocessors
  uint64_t memory_bytes = 0;  // physical, before limits
};

[[nodiscard]] Device detect_cpu();

}  // namespace reckon::kernels
