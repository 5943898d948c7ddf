#include "engine/container_limit.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "base/text.h"

namespace reckon::engine {
namespace {

// A version's file names and the memory.stat line of file cache that can be dropped.
struct Layout {
  const char* limit;
  const char* usage;
  const char* cache_line;
};
constexpr Layout kVersion2{"memory.max", "memory.current", "inactive_file"};
constexpr Layout kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};

// Version 1 writes "no limit" as the largest multiple of a page below 2^63.
constexpr uint64_t kUnlimited = uint64_t{1} << 62;

std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number)) return std::nullopt;  // "max", or no such file
  return number;
}

uint64_t droppable_cache(const std::string& folder, const char* wanted) {
  std::ifstream file(folder + "/memory.stat");
  std::string name;
  uint64_t bytes = 0;
  while (file >> name >> bytes) {
    if (name == wanted) return bytes;
  }
  return 0;
}

std::optional<uint64_t> left_in(const std::string& folder, const Layout& layout) {
  const auto limit = read_number(folder + "/" + layout.limit);
  if (!limit || *limit >= kUnlimited) return std::nullopt;
  const uint64_t used = read_number(folder + "/" + layout.usage).value_or(0);
  const uint64_t held = used - std::min(used, droppable_cache(folder, layout.cache_line));
  return *limit - std::min(*limit, held);
}

// `path` and each of its parents, up to "" (the mount itself).
std::vector<std::string> upwards(std::string path) {
  std::vector<std::string> paths;
  while (!path.empty() && path != "/") {
    paths.push_back(path);
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  paths.emplace_back();
  return paths;
}

struct Membership {
  std::string hierarchy;  // folder under the mount: "" or "/memory"
  std::string path;
  Layout layout;
};

// Lines are "number:controllers:/path"; version 2 has number 0 and no controllers.
std::optional<Membership> find_membership(std::string_view text) {
  std::optional<Membership> version2;
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() < 3) continue;
    const std::vector<std::string> controllers = split(fields[1], ',');
    if (std::ranges::find(controllers, "memory") != controllers.end()) {
      return Membership{"/memory", fields[2], kVersion1};
    }
    if (fields[0] == "0" && fields[1].empty()) version2 = Membership{"", fields[2], kVersion2};
  }
  return version2;
}

}  // namespace

std::optional<uint64_t> container_memory_left(const std::string& mount,
                                              std::string_view membership) {
  const auto found = find_membership(membership);
  if (!found) return std::nullopt;
  std::optional<uint64_t> least;
  for (const std::string& path : upwards(found->path)) {
    const auto left = left_in(mount + found->hierarchy + path, found->layout);
    if (left && (!least || *left < *least)) least = left;
  }
  return least;
}

}  // namespace reckon::engine
