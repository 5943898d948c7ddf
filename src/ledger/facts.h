// The numbers that a `revisit_when` condition may name, of the machine and the build: what an
// environment record says of them. Pure and thread-safe.
#pragma once

#include "ledger/predicate.h"
#include "ledger/record.h"

namespace reckon::ledger {

// The record's own facts and, where its texts say so: gcc_version or clang_version (of the compiler
// that built Reckon), kernel_version, driver_version, cuda_version, all as version_number() has
// them, and cpu_max_mhz. What changes from minute to minute (load, clocks, temperature) is none.
[[nodiscard]] Facts facts_of(const Environment& environment);

}  // namespace reckon::ledger
