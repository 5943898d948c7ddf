// RECKON_CHECK(condition): aborts with file and line when a programmer's invariant is broken.
// Never for bad input (see result.h). Always on, in every build.
#pragma once

namespace reckon::internal {
[[noreturn]] void check_failed(const char* file, int line, const char* condition);
}  // namespace reckon::internal

#define RECKON_CHECK(condition) \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::reckon::internal::check_failed(__FILE__, __LINE__, #condition))
