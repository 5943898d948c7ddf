// Runs the built `reckon` the way a user does: its own folder, its own home, arguments in, exit
// code and both outputs back. Implemented in command_test.cpp.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/test_data.h"

namespace reckon::cli {

struct Finished {
  int code = -1;  // 128 + the signal where one ended it
  std::string out;
  std::string err;

  // Errors are exactly one line on stderr.
  [[nodiscard]] bool one_error_line() const;
  [[nodiscard]] nlohmann::json json() const;  // stdout as JSON; discarded where it is none
};

enum class Stdout { kFile, kClosedPipe, kFullDisk, kNoStreams };  // kNoStreams: 0, 1, 2 closed

// A folder of one test: working folder, home, and the place of the ledger "ledger".
class Sandbox {
 public:
  Sandbox();
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  Finished run(const std::vector<std::string>& arguments, std::string_view input = "");
  Finished run_to(Stdout target, const std::vector<std::string>& arguments);
  // Starts it and returns at once; finish() waits for it.
  pid_t start(const std::vector<std::string>& arguments, std::string_view input = "",
              Stdout target = Stdout::kFile);
  Finished finish(pid_t child);

  [[nodiscard]] std::filesystem::path path(std::string_view name) const { return folder_ / name; }
  // Creates or replaces a file and returns its path.
  std::string write(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path folder_;
};

[[nodiscard]] std::string file_text(const std::filesystem::path& path);
[[nodiscard]] std::string tiny_model();
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

}  // namespace reckon::cli
