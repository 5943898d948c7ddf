// What one run of a queue has concluded so far, so that a run that was killed or stopped by its
// budget goes on behind it instead of measuring an inconclusive experiment again.
//
// A file beside the journals, removed when the run has come to its end. Used from one thread, by
// the holder of the queue's lock.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"

namespace reckon::experiment {

class RunRecord {
 public:
  // Lines that are torn or damaged are left out: at worst their experiment is measured again.
  [[nodiscard]] static Result<RunRecord> open(const std::string& path);

  // The ledger entry that holds the verdict on the experiment with this journal key.
  [[nodiscard]] std::optional<std::string> entry_of(const std::string& key) const;

  // On stable storage when it returns ok.
  [[nodiscard]] Status concluded(const std::string& key, const std::string& entry);

  // The run has come to its end.
  [[nodiscard]] Status finish();

 private:
  explicit RunRecord(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::map<std::string, std::string> entries_;
};

}  // namespace reckon::experiment
