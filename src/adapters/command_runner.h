// Any program as a Runner: a measurement is one run of it, its metric is read from what it prints
// or is its time, and what it dispatched is what it writes to a file, or, weaker and called so,
// what its program file, arguments, environment and inputs tell.
//
// Switches are the {KEY} of its texts (experiment/command_workload.h). The device is the machine's
// processor. A measurement forks, so this belongs into a process without other threads.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "adapters/command_identity.h"
#include "adapters/command_process.h"
#include "experiment/runner.h"

namespace reckon::adapters {

// What a verdict says of the weaker proof.
inline constexpr const char* kWeakProof = "by command line and binary only";
inline constexpr uint64_t kMaximumDispatchBytes = uint64_t{1} << 20;

class CommandRunner final : public experiment::Runner {
 public:
  Result<experiment::Subject> describe(const experiment::Workload& workload,
                                       const experiment::Arm& base) override;
  Result<experiment::Prediction> predict(const experiment::Workload& workload,
                                         const experiment::Arm& arm) override;
  // A program that fails, hangs or prints no metric is `broken`; a shell that finds no program is
  // kUsage.
  Result<experiment::Measurement> measure(const experiment::Workload& workload,
                                          const experiment::Arm& arm) override;
  nlohmann::json environment() override;
  std::vector<MetricInfo> metrics() const override;
  Status check_switch(const std::string& key, const std::string& value) override;
  std::string default_value(const std::string& key) override;

 private:
  // An identity, until one of its files changes.
  struct Known {
    CommandIdentity identity;
    std::map<std::string, std::filesystem::file_time_type> times;
  };
  [[nodiscard]] Result<CommandIdentity> identity_of(const experiment::CommandWorkload& command);
  // The lines of the dispatch file, checked against what this arm wrote before.
  [[nodiscard]] Result<std::vector<experiment::DispatchRow>> dispatched(
      const experiment::CommandWorkload& command, const std::string& arm);

  std::map<std::string, Known> known_;  // by the command with everything filled in
  std::map<std::string, std::vector<experiment::DispatchRow>> written_;  // by arm
};

}  // namespace reckon::adapters
