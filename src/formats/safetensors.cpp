#include "formats/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "formats/file_error.h"
#include "formats/json_file.h"

namespace reckon {
namespace {

using nlohmann::json;

constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr size_t kMostDimensions = 8;

struct ElementType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> type;
};

constexpr ElementType kElementTypes[] = {
    {"F64", 8, std::nullopt},     {"F32", 4, DType::kF32},      {"F16", 2, DType::kF16},
    {"BF16", 2, DType::kBF16},    {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"I64", 8, std::nullopt},     {"I32", 4, DType::kI32},      {"I16", 2, std::nullopt},
    {"I8", 1, std::nullopt},      {"U64", 8, std::nullopt},     {"U32", 4, std::nullopt},
    {"U16", 2, std::nullopt},     {"U8", 1, std::nullopt},      {"BOOL", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt},
};

const ElementType* find_element_type(std::string_view name) {
  const auto* found = std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                                   [name](const ElementType& t) { return t.name == name; });
  return found == std::end(kElementTypes) ? nullptr : found;
}

// A JSON number that is an integer in 0 ... 2^63 - 1.
std::optional<uint64_t> size_value(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto size = value.get<uint64_t>();
  if (size > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return size;
}

// Fills `tensor` from its header entry; a message where the entry is not as the format says.
std::optional<std::string> parse_entry(const json& entry, std::string_view data,
                                       SafetensorsTensor& tensor) {
  if (!entry.is_object()) return "expected a JSON object";
  const auto type = entry.find("dtype");
  if (type == entry.end() || !type->is_string()) return "expected a string 'dtype'";
  tensor.type_name = type->get<std::string>();
  const ElementType* element = find_element_type(tensor.type_name);
  if (element != nullptr) tensor.type = element->type;

  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array() || shape->size() > kMostDimensions) {
    return fmt::format("expected an array 'shape' of at most {} dimensions", kMostDimensions);
  }
  uint64_t bytes = element == nullptr ? 1 : element->bytes;
  for (const json& dimension : *shape) {
    const auto size = size_value(dimension);
    if (!size) return "expected dimensions that are integers of 0 or more";
    if (!multiply_checked(bytes, *size, bytes)) return "its shape overflows 64 bits";
    tensor.shape.push_back(static_cast<int64_t>(*size));
  }

  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2) {
    return "expected 'data_offsets' [begin, end]";
  }
  const auto begin = size_value((*offsets)[0]);
  const auto end = size_value((*offsets)[1]);
  if (!begin || !end || *begin > *end) return "expected 'data_offsets' with begin <= end";
  if (*end > data.size()) {
    return fmt::format("its data ends at byte {} of {} data bytes: truncated?", *end, data.size());
  }
  if (element != nullptr && *end - *begin != bytes) {
    return fmt::format("has {} data bytes: its shape and type {} need {}", *end - *begin,
                       tensor.type_name, bytes);
  }
  tensor.bytes = data.substr(*begin, *end - *begin);
  return std::nullopt;
}

std::string range_text(std::string_view bytes, std::string_view data) {
  const auto begin = static_cast<size_t>(bytes.data() - data.data());
  return fmt::format("[{}, {}]", begin, begin + bytes.size());
}

// The data of the tensors cover `data` without a gap and none covers another's; a message where
// that is not so.
std::optional<std::string> check_cover(std::span<const SafetensorsTensor> tensors,
                                       std::string_view data) {
  std::vector<const SafetensorsTensor*> order;
  for (const SafetensorsTensor& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const SafetensorsTensor* tensor) {
    return std::pair(tensor->bytes.data(), tensor->bytes.size());
  });
  const char* end = data.data();
  std::string before = "the header";
  for (const SafetensorsTensor* tensor : order) {
    const std::string name = fmt::format("tensor '{}'", printable(tensor->name));
    const char* begin = tensor->bytes.data();
    if (begin < end) {
      return fmt::format(
          "{} has the data bytes {}, of which {} has some, too: expected each byte "
          "in one tensor",
          name, range_text(tensor->bytes, data), before);
    }
    if (begin > end) {
      return fmt::format("{} data bytes between {} and {} belong to no tensor: expected none",
                         begin - end, before, name);
    }
    end = begin + tensor->bytes.size();
    if (!tensor->bytes.empty()) before = name;
  }
  const auto rest = static_cast<size_t>(data.data() + data.size() - end);
  if (rest == 0) return std::nullopt;
  return fmt::format("{} bytes behind {} belong to no tensor: expected none", rest, before);
}

template <typename T>
std::vector<T> copy_elements(std::string_view bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  return parse(std::move(file));
}

Result<SafetensorsFile> SafetensorsFile::parse(MappedFile file) {
  SafetensorsFile parsed(std::move(file));
  TRY(parsed.read_header());
  return parsed;
}

Status SafetensorsFile::read_header() {
  const std::string_view all = bytes();
  uint64_t length = 0;
  if (all.size() < sizeof length) {
    return file_error(path(),
                      fmt::format("not a safetensors file: it has only {} bytes", all.size()));
  }
  std::memcpy(&length, all.data(), sizeof length);
  const std::string_view behind = all.substr(sizeof length);
  if (length > kLongestHeader || length > behind.size()) {
    return file_error(path(), fmt::format("the header claims {} bytes, but {} follow: truncated, "
                                          "or not a safetensors file",
                                          length, behind.size()));
  }
  json header;
  TRY(parse_json_object(path(), "the header", behind.substr(0, length), header));

  const std::string_view data = behind.substr(length);
  for (const auto& [name, entry] : header.items()) {  // sorted by name
    if (name == "__metadata__") continue;
    SafetensorsTensor tensor;
    tensor.name = name;
    if (const auto problem = parse_entry(entry, data, tensor)) {
      return file_error(path(), fmt::format("tensor '{}': {}", printable(name), *problem));
    }
    tensors_.push_back(std::move(tensor));
  }
  if (const auto problem = check_cover(tensors_, data)) return file_error(path(), *problem);
  for (size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
  return {};
}

const SafetensorsTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<const SafetensorsTensor*> SafetensorsFile::typed(std::string_view name,
                                                        std::string_view type_name) const {
  const SafetensorsTensor* tensor = find(name);
  if (tensor == nullptr) {
    return file_error(path(), fmt::format("tensor '{}' is missing: expected {}", name, type_name));
  }
  if (tensor->type_name != type_name) {
    return file_error(path(), fmt::format("tensor '{}' has the element type {}: expected {}", name,
                                          printable(tensor->type_name), type_name));
  }
  return tensor;
}

Result<std::vector<float>> SafetensorsFile::floats(std::string_view name) const {
  TRY_ASSIGN(const SafetensorsTensor* tensor, typed(name, "F32"));
  return copy_elements<float>(tensor->bytes);
}

Result<std::vector<int32_t>> SafetensorsFile::integers(std::string_view name) const {
  TRY_ASSIGN(const SafetensorsTensor* tensor, typed(name, "I32"));
  return copy_elements<int32_t>(tensor->bytes);
}

Result<std::string_view> SafetensorsFile::raw_bytes(std::string_view name) const {
  TRY_ASSIGN(const SafetensorsTensor* tensor, typed(name, "U8"));
  return tensor->bytes;
}

}  // namespace reckon
