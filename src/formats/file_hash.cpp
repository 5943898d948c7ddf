#include "formats/file_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "base/hash.h"
#include "formats/new_file.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnsettledNs = 2'000'000'000;
constexpr size_t kHashDigits = 32;

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? "" : canonical.string();
}

// The line up to its hash: equal as long as nobody wrote to the file.
std::string line_head(const std::string& path, const FileStamp& stamp) {
  return fmt::format("1 {} {} {} {} ", hash_hex(path), stamp.bytes, stamp.modified_ns,
                     stamp.changed_ns);
}

std::string checksum_of(std::string_view line) {
  return fmt::format("{:016x}", hash64(line));
}

std::optional<std::string> remembered(const std::string& record, const std::string& head) {
  std::ifstream file(record, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with(head)) return std::nullopt;
  const std::string hash = line.substr(head.size(), kHashDigits);
  if (line != fmt::format("{}{} {}", head, hash, checksum_of(head + hash))) return std::nullopt;
  return hash;
}

void remember(const std::string& record, const std::string& head, const std::string& hash) {
  std::error_code ignored;
  fs::create_directories(fs::path(record).parent_path(), ignored);
  const std::string line = fmt::format("{}{} {}\n", head, hash, checksum_of(head + hash));
  (void)replace_file(record, line);  // a cache: not kept is not lost
}

std::string hash_of(const MappedFile& file) {
  constexpr size_t kChunk = size_t{8} << 20;
  const std::string_view bytes = file.bytes();
  Hasher hasher;
  for (size_t at = 0; at < bytes.size(); at += kChunk) {
    file.read_ahead(at + kChunk, kChunk);
    hasher.add(bytes.substr(at, kChunk));
  }
  return hasher.hex();
}

bool settled(const FileStamp& stamp) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return now_ns - stamp.modified_ns >= kUnsettledNs;
}

}  // namespace

std::string file_hash(const MappedFile& file, const FileHashOptions& options) {
  const FileStamp& stamp = file.stamp();
  const bool is_file = stamp.modified_ns != 0;
  const std::string path = is_file ? absolute_path(file.path()) : "";
  if (path.empty() || options.folder.empty() || stamp.bytes < options.least_bytes) {
    return hash_of(file);
  }
  const std::string record = fmt::format("{}/hashes/{}", options.folder, hash_hex(path));
  const std::string head = line_head(path, stamp);
  if (auto hash = remembered(record, head)) return *std::move(hash);
  const bool keep = settled(stamp);
  std::string hash = hash_of(file);
  if (keep) remember(record, head, hash);
  return hash;
}

}  // namespace reckon
