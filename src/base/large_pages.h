// Large pages for memory that is filled once and then streamed again and again, without waiting for
// them: clearing pages of 2 MB costs a virtual machine whose host has to find them first three
// times what filling small ones does. So the memory is filled through small pages, and a thread of
// this object's own replaces them (MADV_COLLAPSE, Linux 6.1) while the program goes on.
//
// Contents and addresses stay, and any thread may read and write meanwhile: one that needs a page
// just being replaced waits for it, some milliseconds at most. Where the system has no large pages,
// or none left, the memory keeps small ones.
#pragma once

#include <cstdint>
#include <thread>

namespace reckon {

class LargePages {
 public:
  // Of memory that nothing has touched yet and that outlives this object. An older system is asked
  // for large pages at once.
  LargePages(void* memory, uint64_t bytes);
  // Leaves undone what is not done by now.
  ~LargePages() = default;
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;

  void start();  // once, when the memory is filled

 private:
  uintptr_t first_ = 0, end_ = 0;  // whole large pages of the memory
  bool collapses_ = false;
  std::jthread worker_;
};

}  // namespace reckon
