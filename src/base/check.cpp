#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace reckon::internal {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "reckon: internal error: %s:%d: CHECK(%s)\n", file, line, condition);
  std::abort();
}

}  // namespace reckon::internal
