#include "cli/output.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/regular_file.h"

namespace reckon::cli {
namespace {

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

Error file_error(const std::string& path) {
  return failed(fmt::format("{}: {}", path, std::strerror(errno)));
}

// A pipe in the file system may have no writer and would be waited for in vain. What a shell made
// (`<(command)` is /dev/fd/63) has one.
Status check_readable(const std::string& path) {
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return {};
  const std::string why = why_not_a_file(path);
  if (why.empty()) return {};
  return usage_error(fmt::format("{}: {}", path, why));
}

}  // namespace

std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

void print_json(const nlohmann::json& json) {
  fmt::print("{}", json_text(json));
}

void print_notes(std::span<const std::string> notes) {
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
}

Result<std::string> read_text(const std::string& path) {
  File opened;
  std::FILE* file = stdin;
  if (path != "-") {
    TRY(check_readable(path));
    opened.reset(std::fopen(path.c_str(), "rb"));
    if (!opened) return file_error(path);
    file = opened.get();
  }
  std::string text;
  std::array<char, 1 << 16> buffer;
  size_t count = 0;
  errno = 0;
  while ((count = std::fread(buffer.data(), 1, buffer.size(), file)) > 0) {
    text.append(buffer.data(), count);
    if (text.size() > kMaximumTextBytes) {
      return usage_error(
          fmt::format("{}: more than {} of text", path, format_bytes_short(kMaximumTextBytes)));
    }
  }
  if (std::ferror(file) != 0) return file_error(path);
  return text;
}

Status check_writable(const std::string& path) {
  if (!File(std::fopen(path.c_str(), "ab"))) return file_error(path);
  return {};
}

Status write_text(const std::string& path, std::string_view text) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) return file_error(path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  if (std::fclose(file.release()) != 0 || !written) return file_error(path);
  return {};
}

}  // namespace reckon::cli
