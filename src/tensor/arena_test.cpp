#include "tensor/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace reckon {
namespace {

using ::testing::HasSubstr;

TEST(Arena, BuffersAreZeroedAlignedAndCounted) {
  ArenaSet arenas;
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{64}, uint64_t{65}, uint64_t{1} << 20}) {
    const auto memory = arenas.allocate(MemoryTag::kScratch, "buffer", bytes);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % kArenaAlignment, 0U);
    const auto* data = static_cast<const char*>(*memory);
    for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], 0);
    std::memset(*memory, 1, arena_rounded(bytes));  // the rounding belongs to the buffer
  }
  EXPECT_EQ(arenas.bytes(MemoryTag::kScratch), 0U + 64 + 64 + 128 + (1 << 20));
  EXPECT_EQ(arenas.bytes(MemoryTag::kState), 0U);
}

TEST(Arena, PeakOutlivesReleaseUntilReset) {
  ArenaSet arenas;
  ASSERT_TRUE(arenas.allocate(MemoryTag::kState, "kv cache", 1000).ok());
  arenas.adopt(MemoryTag::kWeights, "mapped file", 6400);
  ASSERT_TRUE(arenas.allocate(MemoryTag::kScratch, "tile", 64).ok());
  EXPECT_EQ(arenas.total_bytes(), 1024U + 6400 + 64);
  arenas.release(MemoryTag::kState);
  EXPECT_EQ(arenas.total_bytes(), 6464U);
  EXPECT_EQ(arenas.peak_bytes(), 7488U);
  arenas.reset_peak();
  EXPECT_EQ(arenas.peak_bytes(), 6464U);

  const auto terms = arenas.terms();
  ASSERT_EQ(terms.size(), 2U);
  EXPECT_EQ(terms[0].name, "mapped file");
  EXPECT_EQ(terms[0].tag, MemoryTag::kWeights);
  EXPECT_EQ(terms[1].bytes, 64U);
  const auto buffers = arenas.buffers();
  ASSERT_EQ(buffers.size(), 2U);
  EXPECT_EQ(buffers[0].memory, nullptr);  // somebody else's
  EXPECT_EQ(buffers[1].term.name, "tile");
  EXPECT_NE(buffers[1].memory, nullptr);
}

TEST(Arena, TheSourceKnowsWhatIsHeld) {
  const uint64_t before = host_memory().held_bytes();
  {
    ArenaSet arenas;
    ASSERT_TRUE(arenas.allocate(MemoryTag::kState, "kv cache", 1000).ok());
    ASSERT_TRUE(arenas.allocate(MemoryTag::kScratch, "tile", 64).ok());
    arenas.adopt(MemoryTag::kWeights, "mapped file", 6400);
    EXPECT_EQ(host_memory().held_bytes(), before + 1024 + 64);
    arenas.release(MemoryTag::kState);
    EXPECT_EQ(host_memory().held_bytes(), before + 64);
    EXPECT_FALSE(arenas.allocate(MemoryTag::kState, "too much", uint64_t{1} << 62).ok());
    EXPECT_EQ(host_memory().held_bytes(), before + 64);
  }
  EXPECT_EQ(host_memory().held_bytes(), before);
}

TEST(Arena, AnImpossibleSizeIsAnErrorThatNamesTheBuffer) {
  ArenaSet arenas;
  for (uint64_t bytes : {uint64_t{1} << 62, ~uint64_t{0}}) {
    const auto memory = arenas.allocate(MemoryTag::kActivations, "logits", bytes);
    ASSERT_FALSE(memory.ok());
    EXPECT_THAT(memory.error().message, HasSubstr("'logits' (activations)"));
  }
  EXPECT_EQ(arenas.total_bytes(), 0U);
  EXPECT_TRUE(arenas.terms().empty());
}

TEST(Arena, TagsHaveNames) {
  EXPECT_EQ(memory_tag_name(MemoryTag::kWeights), "weights");
  EXPECT_EQ(memory_tag_name(MemoryTag::kState), "state");
  EXPECT_EQ(memory_tag_name(MemoryTag::kActivations), "activations");
  EXPECT_EQ(memory_tag_name(MemoryTag::kScratch), "scratch");
}

}  // namespace
}  // namespace reckon
