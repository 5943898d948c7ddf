// The test executable's main: the tests, or one of the processes that they start.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "experiment/round_protocol.h"
#include "experiment/test_support.h"

namespace reckon::experiment {
namespace {

// Logs every pair that is on disk.
class LoggingProgress : public Progress {
 public:
  explicit LoggingProgress(const char* path)
      : fd_(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}

  void on_pair(const PairProgress& pair) override {
    const std::string line = fmt::format("{} {} {} {}\n", pair.experiment, pair.round_id,
                                         pair.warmup ? "warmup" : "pair", pair.pair);
    (void)!::write(fd_, line.data(), line.size());
  }

 private:
  int fd_;
};

int fake_worker() {
  const Status status = serve_round(open_fake_runner, 0, 1);
  return status.ok() ? 0 : 1;
}

int run_queue_file(const char* ledger_path, const char* queue_path, const char* log_path) {
  Result<std::unique_ptr<ledger::Store>> store = ledger::open_store(ledger_path);
  Result<Queue> queue = load_queue(queue_path);
  if (!store.ok() || !queue.ok()) return 2;
  FakeRunner runner;
  LoggingProgress progress(log_path);
  RunOptions options;
  options.worker_command = {program_path(), kFakeWorker};
  options.writer = "tester";
  const Result<QueueOutcome> outcome = run_queue(*queue, runner, **store, options, progress);
  if (!outcome.ok()) {
    std::fprintf(stderr, "%s\n", outcome.error().message.c_str());
    return 1;
  }
  for (const Outcome& experiment : outcome->experiments) {
    std::fprintf(stderr, "%s\n", experiment.text.c_str());
  }
  return outcome->exit_code();
}

}  // namespace
}  // namespace reckon::experiment

int main(int argc, char** argv) {
  using namespace reckon::experiment;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == kFakeWorker) return fake_worker();
  if (mode == kRunQueue && argc == 5) return run_queue_file(argv[2], argv[3], argv[4]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
