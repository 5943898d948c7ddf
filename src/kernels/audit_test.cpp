#include "kernels/audit.h"

#include <gtest/gtest.h>

#include "kernels/dispatch.h"
#include "kernels/fake_table.h"

namespace reckon::kernels {
namespace {

TEST(BufferAudit, NotesWhatAnAccessOverlaps) {
  const char memory[256] = {};
  BufferAudit audit;
  audit.watch(MemoryTag::kState, "low", memory, 64);
  audit.watch(MemoryTag::kActivations, "middle", memory + 64, 64);
  audit.watch(MemoryTag::kWeights, "high", memory + 128, 64);
  const auto marks = [&] {
    std::string text;
    for (const BufferAudit::Buffer& buffer : audit.buffers()) {
      text += buffer.read ? "r" : "-";
      text += buffer.written ? "w " : "- ";
    }
    return text;
  };
  audit.note({memory + 64, 0, AccessKind::kReadWrite});    // nothing
  audit.note({memory + 192, 64, AccessKind::kReadWrite});  // nobody's
  audit.note({nullptr, 64, AccessKind::kRead});            // nobody's
  EXPECT_EQ(marks(), "-- -- -- ");
  audit.note({memory + 64, 64, AccessKind::kWrite});
  EXPECT_EQ(marks(), "-- -w -- ");
  audit.note({memory + 190, 1, AccessKind::kRead});
  EXPECT_EQ(marks(), "-- -w r- ");
  audit.note({memory + 63, 2, AccessKind::kReadWrite});
  EXPECT_EQ(marks(), "rw rw r- ");
}

// The fake table's kernels touch nothing: what is noted is what the ops declare, and the scratch
// that one of them asks for.
TEST(BufferAudit, TheDispatcherNotesEveryCallAndTheScratch) {
  alignas(64) static unsigned char scratch_memory[1024];
  const float x[64] = {}, weight[64] = {};
  float out[64] = {};
  std::array<Variant, 25> table = fake::table();
  Planner planner(SwitchSet(), fake::device(Isa::kAvx2), table);
  ThreadPool threads(1);
  Trace trace;
  BufferAudit audit;
  audit.watch(MemoryTag::kActivations, "x", x, sizeof x);
  audit.watch(MemoryTag::kWeights, "weight", weight, sizeof weight);
  audit.watch(MemoryTag::kActivations, "out", out, sizeof out);
  audit.watch(MemoryTag::kScratch, "scratch", scratch_memory, sizeof scratch_memory);
  Dispatcher dispatcher(planner, {.threads = &threads,
                                  .trace = &trace,
                                  .scratch = scratch_memory,
                                  .scratch_bytes = sizeof scratch_memory,
                                  .queue = nullptr,
                                  .audit = &audit});
  const Activation from{const_cast<float*>(x), 1, 64};
  const auto read = [&](size_t i) { return audit.buffers()[i].read; };

  ASSERT_TRUE(dispatcher.matmul(from, {weight, DType::kF32, 1, 64}, {out, 1, 1}).ok());
  EXPECT_TRUE(read(0) && read(1) && !read(2) && audit.buffers()[2].written);
  EXPECT_FALSE(read(3));  // only the variant for q4_1 wants any
  ASSERT_TRUE(dispatcher.matmul(from, {weight, DType::kQ4_1, 1, 64}, {out, 1, 1}).ok());
  EXPECT_TRUE(read(3));
}

}  // namespace
}  // namespace reckon::kernels
