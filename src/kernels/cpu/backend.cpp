// The CPU as a backend: host memory, a thread pool, and passes that run where they are called.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/bounds.h"
#include "kernels/dispatch.h"

namespace reckon::kernels {
namespace {

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(Planner& planner, Trace& trace, const ExecutorResources& resources)
      : audit_(resources.audit),
        threads_(planner.threads()),
        dispatcher_(planner, {.threads = &threads_,
                              .trace = &trace,
                              .scratch = resources.scratch,
                              .scratch_bytes = resources.scratch_bytes,
                              .queue = nullptr,
                              .audit = resources.audit}) {}

  Status run(const Step& step, const Work& work) override {
    RECKON_CHECK(!step.picked_token);
    dispatcher_.set_phase(step.phase);
    return work(dispatcher_);
  }

  Status start_sample(Activation logits, const Sampling& sampling) override {
    picks_.resize(static_cast<size_t>(logits.rows));
    dispatcher_.set_phase(Phase::kDecode);
    return dispatcher_.sample(logits, sampling, picks_);
  }
  Result<std::vector<Pick>> take_picks() override { return picks_; }
  bool runs_ahead() const override { return false; }

  Status wait() override { return {}; }

  Result<Activation> host_view(Activation values) override {
    if (audit_ != nullptr) audit_->note(host_read_of(values));
    return values;
  }

 private:
  BufferAudit* audit_;
  ThreadPool threads_;
  Dispatcher dispatcher_;
  std::vector<Pick> picks_;
};

// A line "Name:   123 kB" of /proc/meminfo, in bytes.
Result<uint64_t> meminfo_bytes(const std::string& wanted) {
  std::ifstream file("/proc/meminfo");
  if (!file) return failed(std::string("/proc/meminfo: ") + std::strerror(errno));
  std::string name;
  uint64_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes) {
    std::getline(file, unit);
    if (name == wanted + ":") return kibibytes * 1024;
  }
  return failed("/proc/meminfo: no line '" + wanted + "'");
}

class CpuBackend final : public Backend {
 public:
  const Device& device() const override { return device_; }
  std::span<const Variant> variants() const override { return all_variants(); }
  MemorySource& memory() override { return host_memory(); }

  Result<Memory> memory_state() const override {
    TRY_ASSIGN(const uint64_t available, meminfo_bytes("MemAvailable"));
    TRY_ASSIGN(const uint64_t total, meminfo_bytes("MemTotal"));
    return Memory{available, total, "available memory"};
  }

  uint64_t step_bytes(int64_t /*max_rows*/) const override { return 0; }
  Result<std::unique_ptr<Executor>> make_executor(Planner& planner, Trace& trace,
                                                  const ExecutorResources& resources) override {
    return std::unique_ptr<Executor>(std::make_unique<CpuExecutor>(planner, trace, resources));
  }

  Result<std::vector<Bound>> measure_bounds(const BoundsOptions& options) override {
    TRY_ASSIGN(const Memory memory, memory_state());
    return cpu::measure_bounds(device_, memory.available_bytes, options);
  }

 private:
  Device device_ = detect_cpu();
};

}  // namespace

Backend& cpu_backend() {
  static CpuBackend backend;
  return backend;
}

}  // namespace reckon::kernels
