#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"

namespace reckon {
namespace {

// Spinning this many times before sleeping keeps back-to-back kernels of one token cheap; it is
// about 20 microseconds, and only where there is a core for each thread.
constexpr int kSpins = 4000;

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Cores by cgroup v2 quota ("max 100000" or "200000 100000"), or 0 where there is none.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::stod(quota) / period));
}

}  // namespace

struct ThreadPool::State {
  int threads = 1;
  std::vector<std::thread> workers;

  // One loop. `open` is stored after the fields that describe the loop; a worker counts itself in
  // before it looks at `open`, and the caller closes the loop before it waits for nobody inside
  // (both sequentially consistent). So the caller waits for workers that took a task, never for one
  // that the system has not scheduled: on a busy machine the caller just does more of the work.
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> open{false};
  std::atomic<int> inside{0};
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false};
  Task task = nullptr;
  void* context = nullptr;
  int64_t tasks = 0;

  std::mutex mutex;
  std::condition_variable wake;

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (std::thread& started : workers) started.join();
  }

  void run_tasks(int thread) {
    while (true) {
      const int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= tasks) return;
      task(context, i, thread);
    }
  }

  void wait_for_work(uint64_t seen) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation.load(std::memory_order_acquire) != seen || stop.load()) return;
      cpu_relax();
    }
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen || stop; });
  }

  void worker(int thread) {
    uint64_t seen = 0;
    while (true) {
      wait_for_work(seen);
      if (stop) return;
      seen = generation.load(std::memory_order_acquire);
      inside.fetch_add(1);
      if (open.load()) run_tasks(thread);
      inside.fetch_sub(1);
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  RECKON_CHECK(threads >= 0);
  state_->threads = threads == 0 ? available_cores() : threads;
  for (int t = 1; t < state_->threads; ++t) {
    try {
      state_->workers.emplace_back([state = state_.get(), t] { state->worker(t); });
    } catch (const std::system_error& error) {
      state_->end();
      throw std::system_error(error.code(),
                              fmt::format("cannot start thread {} of {}", t + 1, state_->threads));
    }
  }
}

ThreadPool::~ThreadPool() {
  state_->end();
}

int ThreadPool::threads() const {
  return state_->threads;
}

void ThreadPool::parallel_for(int64_t tasks, Task fn, void* context) {
  if (tasks <= 0) return;
  State& s = *state_;
  if (s.threads == 1 || tasks == 1) {
    for (int64_t i = 0; i < tasks; ++i) fn(context, i, 0);
    return;
  }
  s.task = fn;
  s.context = context;
  s.tasks = tasks;
  s.next.store(0, std::memory_order_relaxed);
  s.open.store(true);
  {
    const std::lock_guard lock(s.mutex);
    s.generation.fetch_add(1, std::memory_order_release);
  }
  s.wake.notify_all();
  s.run_tasks(0);
  s.open.store(false);
  for (int spin = 0; s.inside.load() != 0; ++spin) {
    if (spin < kSpins) {
      cpu_relax();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::parallel_for(int64_t tasks, const std::function<void(int64_t)>& fn) {
  parallel_for(
      tasks,
      [](void* context, int64_t task, int) {
        (*static_cast<const std::function<void(int64_t)>*>(context))(task);
      },
      const_cast<void*>(static_cast<const void*>(&fn)));
}

int ThreadPool::available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
  const int quota = quota_cores();
  return quota > 0 ? std::min(quota, cores) : cores;
}

}  // namespace reckon
