#include "base/large_pages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace reckon {
namespace {

constexpr uint64_t kBytes = (uint64_t{9} << 20) + 123;

uint8_t value_at(uint64_t i) {
  return static_cast<uint8_t>(i * 7 + i / 4096);
}

bool holds_values(const uint8_t* memory) {
  for (uint64_t i = 0; i < kBytes; ++i) {
    if (memory[i] != value_at(i)) return false;
  }
  return true;
}

using Memory = std::unique_ptr<uint8_t[], decltype(&std::free)>;

Memory zeroed(uint64_t bytes) {
  return {static_cast<uint8_t*>(std::calloc(bytes, 1)), &std::free};
}

TEST(LargePages, KeepWhatTheMemoryHolds) {
  const Memory memory = zeroed(kBytes);
  LargePages pages(memory.get(), kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) memory[i] = value_at(i);
  pages.start();
  for (int pass = 0; pass < 3; ++pass) EXPECT_TRUE(holds_values(memory.get()));
}

TEST(LargePages, MayBeGivenUpAtAnyTime) {
  const Memory memory = zeroed(kBytes);
  { LargePages never_started(memory.get(), kBytes); }
  for (uint64_t i = 0; i < kBytes; ++i) memory[i] = value_at(i);
  {
    LargePages pages(memory.get(), kBytes);
    pages.start();
  }
  EXPECT_TRUE(holds_values(memory.get()));
}

TEST(LargePages, LeaveSmallMemoryAlone) {
  const Memory memory = zeroed(100);
  LargePages pages(memory.get(), 100);
  pages.start();
  EXPECT_EQ(memory[99], 0);
}

}  // namespace
}  // namespace reckon
