// Where finished pairs wait until their round or verdict is in the ledger:
// journal/<key>.jsonl in the ledger's local folder (ledger/store.h), one checksummed JSON object a
// line, each on stable storage before the next pair begins.
//
// A round belongs to the journal, not to a process: when a run is killed, the next one goes on with
// the pairs that are missing, in a fresh child process (which warms up again), and the round says
// how many processes it took. Before the ledger is written, the events to be appended are written
// here (`commit`); whoever finds them appends those that the ledger lacks and clears the journal.
// So at whatever moment a run is killed, no finished pair is lost and none counts twice.
//
// A line that is torn or does not match its checksum is moved to <key>.set-aside with a warning.
// Used from one thread; a lock keeps other processes out while it is open.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "experiment/file_lock.h"
#include "experiment/runner.h"
#include "ledger/event.h"
#include "ledger/store.h"

namespace reckon::experiment {

// Identity of a round, repeated on every line so that each stands alone.
struct RoundIdentity {
  std::string id;  // "rd-" and 20 base-32 characters
  int64_t index = 0;
  std::string started;  // "2026-09-14T08:30:00Z"
  uint64_t seed = 0;    // of the slot order

  bool operator==(const RoundIdentity&) const = default;
};

struct JournalPair {
  RoundIdentity round;
  int64_t process = 0;  // of the round, counted from 0
  int64_t index = 0;    // in the round's order; of warm-ups, in their process
  bool warmup = false;
  bool arm_first = false;
  double base = 0, arm = 0;  // in the metric's unit
  double seconds = 0;        // that the pair took
  std::string disturbed;  // why it does not count: its window was dirty; then `warmup` is set, too
  double paused_seconds = 0;  // that the run waited for calm before it
  // The control metric, where the experiment has one.
  std::optional<double> base_control, arm_control;
  uint64_t base_peak_bytes = 0, arm_peak_bytes = 0;
  // Dispatch rows that no earlier line of this journal has.
  std::vector<DispatchRow> base_rows, arm_rows;
  KernelUse base_kernel_use, arm_kernel_use;  // likewise
  std::vector<int32_t> tokens;                // of the base arm, in the first line only
  // Beside them, where they may differ and do: the other arm's, and the base arm's top-2 logit
  // margin where they part.
  std::vector<int32_t> arm_tokens;
  std::optional<double> margin;
  nlohmann::json environment = nlohmann::json::object();  // in the first line of a process only
};

class Journal {
 public:
  // Makes the folder where needed. `what` names the experiment when another process holds it.
  [[nodiscard]] static Result<std::unique_ptr<Journal>> open(const std::string& folder,
                                                             const std::string& key,
                                                             const std::string& what);

  // What is on disk, in order; a counted pair (round and index) once.
  [[nodiscard]] const std::vector<JournalPair>& pairs() const { return pairs_; }
  // Events of a commit whose journal was not cleared.
  [[nodiscard]] const std::vector<ledger::Event>& committed() const { return committed_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

  // Both are on stable storage when they return ok.
  [[nodiscard]] Status append(const JournalPair& pair);
  [[nodiscard]] Status commit(std::span<const ledger::Event> events);

  // Forgets the pairs of rounds that the ledger already has.
  [[nodiscard]] Status drop_rounds(const std::set<std::string>& ids);
  // Removes the file.
  [[nodiscard]] Status clear();

 private:
  explicit Journal(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Status load();
  [[nodiscard]] Status take_line(const std::string& line);
  void take_pair(JournalPair pair);
  [[nodiscard]] Status rewrite();

  std::string path_;
  std::unique_ptr<FileLock> lock_;
  std::vector<JournalPair> pairs_;
  std::set<std::pair<std::string, int64_t>> counted_;  // of pairs_: round and index
  std::vector<ledger::Event> committed_;
  std::vector<std::string> warnings_;
};

// Makes the folder `journal` (which git ignores) in the ledger's local folder and returns its path.
[[nodiscard]] Result<std::string> journal_folder(const ledger::Store& store);

}  // namespace reckon::experiment
