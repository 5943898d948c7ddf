#include "adapters/command_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "adapters/command_process.h"
#include "adapters/shell_words.h"
#include "base/hash.h"
#include "base/text.h"
#include "formats/file_hash.h"

namespace reckon::adapters {
namespace {

namespace fs = std::filesystem;
using experiment::CommandWorkload;

constexpr size_t kHashDigits = 16;
constexpr const char* kShell = "/bin/sh";

// Where the words of a command begin to matter: its program and what follows it.
struct Words {
  std::vector<std::string> words;  // the program first
  std::string before, after;       // of the program's word in the command's text
};

bool is_file(const std::string& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

bool is_program(const std::string& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

std::string base_name(const std::string& path) {
  return fs::path(path).filename().string();
}

std::string canonical(const std::string& path) {
  std::error_code failure;
  const fs::path result = fs::canonical(path, failure);
  return failure ? path : result.string();
}

Words words_of(const CommandWorkload& command) {
  Words result;
  if (!command.shell) {
    result.words = command.command;
    for (size_t i = 1; i < command.command.size(); ++i) {
      result.after += " " + shell_quoted(command.command[i]);
    }
    return result;
  }
  const std::string& text = command.command.front();
  const std::vector<ShellWord> words = shell_words(text);
  for (const ShellWord& word : words) result.words.push_back(word.text);
  const size_t begin = words.empty() ? 0 : words.front().begin;
  result.before = text.substr(0, begin);
  result.after = text.substr(words.empty() ? 0 : words.front().end);
  return result;
}

Result<std::string> content_hash(const std::string& path) {
  TRY_ASSIGN(const MappedFile file, MappedFile::open(path));
  return file_hash(file).substr(0, kHashDigits);
}

// Where ldd says that a program's libraries lie, the system's own left out. Nothing for what is no
// dynamic program.
std::vector<std::string> libraries_of(const std::string& program, const CommandWorkload& command) {
  std::vector<std::string> libraries;
  ProcessJob job{.argv = {"ldd", program}, .env = command.env};
  job.timeout = std::chrono::seconds(10);
  const Result<ProcessEnd> end = run_process(job);
  if (!end.ok()) return libraries;
  for (const std::string& line : split(end->output.text(), '\n')) {
    const size_t arrow = line.find("=> /");
    if (arrow == std::string::npos) continue;
    const std::string path = line.substr(arrow + 3, line.rfind(" (") - arrow - 3);
    const std::string real = canonical(path);
    if (real.starts_with("/usr/lib") || real.starts_with("/lib")) continue;
    libraries.push_back(path);
  }
  return libraries;
}

// The program's file: the first word, or the shell where the shell alone knows what that is.
Result<std::string> program_file(const CommandWorkload& command, const Words& words) {
  if (words.words.empty()) return std::string(kShell);
  const std::string& name = words.words.front();
  std::string path = find_program(name);
  if (!path.empty()) return path;
  if (command.shell && name.find('/') == std::string::npos) return std::string(kShell);
  return usage_error(fmt::format("'{}' is no program: there is no such file that can be run{}",
                                 one_line(name),
                                 name.find('/') == std::string::npos ? " on PATH" : ""));
}

// As queued, or the first argument that is a file and no option.
std::vector<std::string> inputs_of(const CommandWorkload& command, const Words& words) {
  if (command.inputs) return *command.inputs;
  for (size_t i = 1; i < words.words.size(); ++i) {
    const std::string& word = words.words[i];
    if (!word.empty() && word.front() != '-' && is_file(word)) return {word};
  }
  return {};
}

}  // namespace

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string file = (fs::path(folder.empty() ? "." : folder) / name).string();
    if (!name.empty() && is_program(file)) return file;
  }
  return "";
}

Result<CommandIdentity> identify(const CommandWorkload& command) {
  const Words words = words_of(command);
  TRY_ASSIGN(const std::string file, program_file(command, words));
  CommandIdentity identity;
  identity.program = base_name(file);
  const std::string name = words.words.empty() ? "" : base_name(words.words.front());
  identity.text = one_line(words.before + name + words.after);
  Hasher hash;
  Hasher place;
  hash.add_field(command.shell ? "shell" : "list").add_field(words.before).add_field(name);
  hash.add_field(words.after);
  for (const auto& [key, value] : command.env) hash.add_field(key).add_field(value);
  std::vector<std::string> files = libraries_of(file, command);
  files.insert(files.begin(), file);
  const size_t of_program = files.size();
  for (std::string& input : inputs_of(command, words)) files.push_back(std::move(input));
  for (size_t i = 0; i < files.size(); ++i) {
    const Result<std::string> content = content_hash(files[i]);
    if (!content.ok()) return usage_error(content.error().message);
    identity.files[files[i]] = *content;
    hash.add_field(i < of_program ? base_name(files[i]) : files[i]).add_field(*content);
    place.add_field(canonical(files[i]));
  }
  identity.hash = hash.hex().substr(0, kHashDigits);
  identity.place = place.hex().substr(0, kHashDigits);
  return identity;
}

}  // namespace reckon::adapters
