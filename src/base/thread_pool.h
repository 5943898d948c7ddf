// A fixed team of threads for data-parallel loops whose results must not depend on its size.
//
// parallel_for(tasks, fn) calls fn(task) once for each task in [0, tasks), in ascending order of
// their start; threads take the next task as they come free, so which thread runs which is not
// fixed and callers must not depend on it: a task writes only its own outputs, so that any thread
// count gives the same bytes. The caller's thread works too. One parallel_for at a time per pool;
// fn must not call the same pool again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace reckon {

class ThreadPool {
 public:
  // threads >= 1; 0 means every core that this process may use.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const;

  using Task = void (*)(void* context, int64_t task, int thread);
  // Plain form, for kernels compiled for one instruction set.
  void parallel_for(int64_t tasks, Task fn, void* context);
  void parallel_for(int64_t tasks, const std::function<void(int64_t task)>& fn);

  // Cores that this process may use (affinity mask and container quota considered), at least 1.
  static int available_cores();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace reckon
