#include "formats/gguf_shards.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "formats/file_error.h"

namespace reckon {
namespace {

constexpr const char* kNumber = "split.no";
constexpr const char* kCount = "split.count";
constexpr const char* kTensors = "split.tensors.count";
constexpr int64_t kMostShards = 99999;  // five digits

struct Place {
  int64_t number = 0;  // from 0
  int64_t count = 1;
  int64_t tensors = 0;  // of all shards
};

Result<Place> place_of(const GgufFile& file) {
  Place place;
  TRY_ASSIGN(place.count, file.integer(kCount));
  TRY_ASSIGN(place.number, file.integer(kNumber));
  TRY_ASSIGN(place.tensors, file.integer(kTensors));
  if (place.count < 1 || place.count > kMostShards) {
    return file_error(file.path(), fmt::format("metadata key '{}' is {}: expected 1 to {}", kCount,
                                               place.count, kMostShards));
  }
  if (place.number < 0 || place.number >= place.count) {
    return file_error(file.path(), fmt::format("metadata key '{}' is {}: expected 0 to {}", kNumber,
                                               place.number, place.count - 1));
  }
  return place;
}

std::string name_end(const Place& place, int64_t number) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, place.count);
}

// What the names of all shards begin with.
Result<std::string> name_start(const GgufFile& file, const Place& place) {
  const std::string& path = file.path();
  const std::string end = name_end(place, place.number);
  if (path.ends_with(end)) return path.substr(0, path.size() - end.size());
  return file_error(path, fmt::format("is shard {} of {} by its metadata: expected a name that "
                                      "ends in {}, so that the others are found",
                                      place.number + 1, place.count, end));
}

class ShardReader {
 public:
  ShardReader(std::string start, const Place& whole) : start_(std::move(start)), whole_(whole) {}

  Result<std::vector<GgufFile>> run() {
    for (int64_t number = 0; number < whole_.count; ++number) {
      TRY_ASSIGN(GgufFile shard, open(number));
      TRY(take_names(shard));
      if (!shards_.empty()) TRY(check_keys(shard));
      shards_.push_back(std::move(shard));
    }
    if (static_cast<int64_t>(shard_of_.size()) != whole_.tensors) {
      return file_error(shards_[0].path(),
                        fmt::format("metadata key '{}' is {}, but the {} shards have {} tensors",
                                    kTensors, whole_.tensors, whole_.count, shard_of_.size()));
    }
    return std::move(shards_);
  }

 private:
  [[nodiscard]] Result<GgufFile> open(int64_t number) const {
    const std::string path = start_ + name_end(whole_, number);
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      return file_error(
          path, fmt::format("shard {} of {} of this model is missing", number + 1, whole_.count));
    }
    TRY_ASSIGN(GgufFile shard, GgufFile::open(path));
    TRY_ASSIGN(const Place place, place_of(shard));
    if (place.number != number || place.count != whole_.count || place.tensors != whole_.tensors) {
      return file_error(
          path, fmt::format("is shard {} of {} with {} tensors in all by its metadata: expected "
                            "shard {} of {} with {}",
                            place.number + 1, place.count, place.tensors, number + 1, whole_.count,
                            whole_.tensors));
    }
    return shard;
  }

  [[nodiscard]] Status take_names(const GgufFile& shard) {
    for (const GgufTensor& tensor : shard.tensors()) {
      const auto [other, is_new] = shard_of_.emplace(tensor.name, shards_.size());
      if (is_new) continue;
      return file_error(
          shard.path(),
          fmt::format("has tensor '{}', and so has {}", printable(tensor.name),
                      start_ + name_end(whole_, static_cast<int64_t>(other->second))));
    }
    return {};
  }

  // The first shard has the model's keys. Others may repeat them, and have their own of the kinds
  // that say nothing about what is computed.
  [[nodiscard]] Status check_keys(const GgufFile& shard) const {
    for (const auto& [key, value] : shard.metadata()) {
      const bool own = key.starts_with("split.") || key.starts_with("general.");
      if (own && key != "general.architecture") continue;
      const GgufValue* expected = shards_[0].find_key(key);
      if (expected != nullptr && expected->type == value.type &&
          expected->element_type == value.element_type && expected->bytes == value.bytes) {
        continue;
      }
      return file_error(shard.path(),
                        fmt::format("metadata key '{}' is another than in {}: expected the same, "
                                    "or the key in the first file alone",
                                    printable(key), shards_[0].path()));
    }
    return {};
  }

  std::string start_;
  Place whole_;
  std::vector<GgufFile> shards_;
  std::unordered_map<std::string_view, size_t> shard_of_;  // views into the mappings
};

}  // namespace

Result<std::vector<GgufFile>> open_gguf_shards(const std::string& path) {
  TRY_ASSIGN(GgufFile file, GgufFile::open(path));
  if (file.has(kCount)) {
    TRY_ASSIGN(const Place place, place_of(file));
    if (place.count > 1) {
      TRY_ASSIGN(std::string start, name_start(file, place));
      return ShardReader(std::move(start), place).run();
    }
  }
  std::vector<GgufFile> files;
  files.push_back(std::move(file));
  return files;
}

}  // namespace reckon
