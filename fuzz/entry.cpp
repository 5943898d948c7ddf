// What libFuzzer calls.
#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  reckon::fuzz::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
