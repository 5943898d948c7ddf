// The error of the first task of a parallel loop that failed, whichever thread saw it when.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

#include "base/result.h"

namespace reckon::models {

class FirstError {
 public:
  // Thread-safe.
  void add(int64_t task, Status status) {
    if (status.ok()) return;
    const std::lock_guard lock(mutex_);
    if (task >= task_) return;
    task_ = task;
    status_ = std::move(status);
  }
  // After the loop.
  [[nodiscard]] Status take() { return std::move(status_); }

 private:
  std::mutex mutex_;
  int64_t task_ = std::numeric_limits<int64_t>::max();
  Status status_;
};

}  // namespace reckon::models
