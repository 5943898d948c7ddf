// Two commands typed on a command line as a queue of one experiment. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "experiment/queue.h"

namespace reckon::cli {

struct AbOptions {
  std::string base, arm;        // for /bin/sh -c
  std::string metric = "wall";  // wall, cpu, json:PATH, regex:PATTERN
  std::string unit, better;
  std::string name = "ab";
  std::string idea;
  std::string claim;
  std::string timeout;
  std::string dispatch_file;
  std::vector<std::string> env;  // KEY=VALUE
  std::vector<std::string> inputs;
  std::vector<std::string> tags;  // KEY=VALUE
  int rounds = 2;
  int pairs = 6;
  int warmup = 1;
  int floor = 0;  // A/A rounds that the ledger shall hold; 0: none are measured
};

// The comparison, behind the A/A rounds of its base command where they were asked for. Usage
// errors name the option.
[[nodiscard]] Result<experiment::Queue> ab_queue(const AbOptions& options);

// An experiment's error without the place in a queue file that does not exist.
[[nodiscard]] std::string without_place(const std::string& message);

}  // namespace reckon::cli
