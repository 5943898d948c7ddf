#include "base/large_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace reckon {
namespace {

constexpr uintptr_t kLargePage = uintptr_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack

bool advise(uintptr_t first, uintptr_t bytes, int advice) {
  return madvise(reinterpret_cast<void*>(first), bytes, advice) == 0;
}

}  // namespace

LargePages::LargePages(void* memory, uint64_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  first_ = (address + kLargePage - 1) / kLargePage * kLargePage;
  end_ = (address + bytes) / kLargePage * kLargePage;
  if (first_ >= end_) return;
  collapses_ = advise(first_, 0, kCollapse);
  if (!collapses_) (void)advise(first_, end_ - first_, MADV_HUGEPAGE);
}

void LargePages::start() {
  if (!collapses_) return;
  const auto collapse = [first = first_, end = end_](const std::stop_token& stop) {
    for (uintptr_t page = first; page < end && !stop.stop_requested(); page += kLargePage) {
      // Of other errors, such as a page that the kernel holds, the next page knows nothing.
      if (!advise(page, kLargePage, kCollapse) && (errno == ENOMEM || errno == EINVAL)) return;
    }
  };
  try {
    worker_ = std::jthread(collapse);
  } catch (const std::system_error&) {
    collapses_ = false;  // no thread to be had: the pages stay small
  }
}

}  // namespace reckon
