#include "formats/file_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/hash.h"
#include "formats/new_file.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 32;
constexpr size_t kPage = 4096;
constexpr uint64_t kSamples = 64;

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? "" : canonical.string();
}

// Of pages at places that depend on the path alone: one in each of kSamples parts of the file.
uint64_t sample_hash(std::string_view path, std::string_view bytes) {
  const uint64_t pages = (bytes.size() + kPage - 1) / kPage;
  Hasher hasher;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const uint64_t first = pages * i / kSamples;
    const uint64_t count = std::max<uint64_t>(1, pages * (i + 1) / kSamples - first);
    const uint64_t page = first + hash64(fmt::format("{} {}", path, i)) % count;
    hasher.add(bytes.substr(page * kPage, kPage));
  }
  return hash64(hasher.hex());
}

// The line up to its hash: equal as long as nobody wrote to the file.
std::string line_head(const std::string& path, const MappedFile& file) {
  const FileStamp& stamp = file.stamp();
  return fmt::format("2 {} {} {} {} {:016x} ", hash_hex(path), stamp.bytes, stamp.modified_ns,
                     stamp.changed_ns, sample_hash(path, file.bytes()));
}

std::string checksum_of(std::string_view line) {
  return fmt::format("{:016x}", hash64(line));
}

// MappedFile waits for no pipe that lies where a record is expected.
std::optional<std::string> remembered(const std::string& record, const std::string& head) {
  const auto file = MappedFile::open(record);
  if (!file.ok()) return std::nullopt;
  const std::string_view line = file->bytes().substr(0, file->bytes().find('\n'));
  if (!line.starts_with(head)) return std::nullopt;
  const std::string hash(line.substr(head.size(), kHashDigits));
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

bool settled(const FileStamp& stamp, int64_t settled_ns) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  return now_ns - std::max(stamp.modified_ns, stamp.changed_ns) >= settled_ns;
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
  const std::string head = line_head(path, file);
  if (auto hash = remembered(record, head)) return *std::move(hash);
  const bool keep = settled(stamp, options.settled_ns);
  std::string hash = hash_of(file);
  if (keep && file.change() == FileChange::kNone) remember(record, head, hash);
  return hash;
}

}  // namespace reckon
