#include "formats/safetensors_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "formats/file_error.h"
#include "formats/json_file.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kMap = "weight_map";

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// A name of a file in the same folder, whatever the system makes of backslashes.
bool is_plain_name(std::string_view name) {
  return name.ends_with(".safetensors") && name.find_first_of("/\\") == name.npos &&
         name.find('\0') == name.npos;
}

std::set<std::string> files_of(const SafetensorsIndex& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index) names.insert(file);
  return names;
}

Status check_listed(const std::string& index_path, const SafetensorsIndex& index,
                    const std::map<std::string, const SafetensorsFile*>& by_name) {
  for (const auto& [tensor, file] : index) {
    if (by_name.at(file)->find(tensor) == nullptr) {
      return file_error(index_path, fmt::format("lists tensor '{}' in {}, which does not have it",
                                                printable(tensor), printable(file)));
    }
  }
  return {};
}

Status check_unique(std::span<const SafetensorsFile> files) {
  std::map<std::string_view, const SafetensorsFile*> holders;
  for (const SafetensorsFile& file : files) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const auto [other, is_new] = holders.emplace(tensor.name, &file);
      if (is_new) continue;
      return file_error(file.path(), fmt::format("has tensor '{}', and so has {}",
                                                 printable(tensor.name), other->second->path()));
    }
  }
  return {};
}

}  // namespace

Result<SafetensorsIndex> parse_safetensors_index(const std::string& path, std::string_view text) {
  json root;
  TRY(parse_json_object(path, "the file", text, root));
  const auto map = root.find(kMap);
  if (map == root.end() || !map->is_object() || map->empty()) {
    return file_error(path, fmt::format("key '{}' is missing or empty: expected an object of "
                                        "tensor and file names",
                                        kMap));
  }
  SafetensorsIndex index;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>())) {
      const std::string held = file.dump(-1, ' ', true, json::error_handler_t::replace);
      return file_error(path, fmt::format("tensor '{}' is in {}: expected the name of a "
                                          ".safetensors file in the same folder",
                                          printable(tensor), printable(held)));
    }
    index.emplace_back(tensor, file.get<std::string>());
  }
  return index;
}

Result<SafetensorsSet> SafetensorsSet::open(const std::string& folder) {
  SafetensorsSet set;
  const std::string single = (fs::path(folder) / kSingle).string();
  const std::string index_path = (fs::path(folder) / kIndex).string();
  if (!exists(index_path)) {
    if (!exists(single)) {
      return file_error(folder,
                        fmt::format("has neither {} nor {}: expected one", kSingle, kIndex));
    }
    TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(single));
    set.files_.push_back(std::move(file));
    return set;
  }
  set.index_path_ = index_path;
  TRY_ASSIGN(const MappedFile text, MappedFile::open(index_path));
  TRY_ASSIGN(const SafetensorsIndex index, parse_safetensors_index(index_path, text.bytes()));
  const std::set<std::string> names = files_of(index);
  if (!names.contains(kSingle) && exists(single)) {
    return file_error(single, fmt::format("is there, but {} does not list it: expected one or the "
                                          "other",
                                          kIndex));
  }
  for (const std::string& name : names) {
    const std::string path = (fs::path(folder) / name).string();
    if (!exists(path)) {
      return file_error(path, fmt::format("is missing: {} lists it, with {} other files", kIndex,
                                          names.size() - 1));
    }
    TRY_ASSIGN(SafetensorsFile file, SafetensorsFile::open(path));
    set.files_.push_back(std::move(file));
  }
  std::map<std::string, const SafetensorsFile*> by_name;
  size_t next = 0;
  for (const std::string& name : names) by_name.emplace(name, &set.files_[next++]);
  TRY(check_listed(index_path, index, by_name));
  TRY(check_unique(set.files_));
  return set;
}

}  // namespace reckon
