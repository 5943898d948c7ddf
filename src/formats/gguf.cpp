#include "formats/gguf.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "formats/file_error.h"
#include "formats/gguf_types.h"

namespace reckon {
namespace {

template <typename T>
T load(std::string_view bytes) {
  T value;
  RECKON_CHECK(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// The integer that one encoded scalar holds; none where it is no integer or exceeds int64.
std::optional<int64_t> scalar_integer(GgufType type, std::string_view bytes) {
  switch (type) {
    case GgufType::kUint8:
      return load<uint8_t>(bytes);
    case GgufType::kInt8:
      return load<int8_t>(bytes);
    case GgufType::kUint16:
      return load<uint16_t>(bytes);
    case GgufType::kInt16:
      return load<int16_t>(bytes);
    case GgufType::kUint32:
      return load<uint32_t>(bytes);
    case GgufType::kInt32:
      return load<int32_t>(bytes);
    case GgufType::kInt64:
      return load<int64_t>(bytes);
    case GgufType::kUint64: {
      const auto value = load<uint64_t>(bytes);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

// Integers, too; none where it is no number.
std::optional<double> scalar_number(GgufType type, std::string_view bytes) {
  if (type == GgufType::kFloat32) return load<float>(bytes);
  if (type == GgufType::kFloat64) return load<double>(bytes);
  const auto integer = scalar_integer(type, bytes);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

}  // namespace

bool GgufFile::has(std::string_view key) const {
  return key_index_.contains(key);
}

const GgufValue* GgufFile::find_key(std::string_view key) const {
  const auto found = key_index_.find(key);
  return found == key_index_.end() ? nullptr : &metadata_[found->second].second;
}

Result<const GgufValue*> GgufFile::value(std::string_view key, std::string_view expected) const {
  if (const GgufValue* found = find_key(key)) return found;
  return file_error(
      path(), fmt::format("metadata key '{}' is missing: expected {}", printable(key), expected));
}

Error GgufFile::wrong_type(std::string_view key, const GgufValue& value,
                           std::string_view expected) const {
  const std::string held =
      value.type == GgufType::kArray
          ? fmt::format("an array of {} {}", value.count, gguf_type_name(value.element_type))
          : std::string(gguf_type_name(value.type));
  return file_error(path(), fmt::format("metadata key '{}' holds {}: expected {}", printable(key),
                                        held, expected));
}

Result<int64_t> GgufFile::integer(std::string_view key) const {
  TRY_ASSIGN(const GgufValue* found, value(key, "an integer"));
  if (const auto number = scalar_integer(found->type, found->bytes)) return *number;
  if (found->type != GgufType::kUint64) return wrong_type(key, *found, "an integer");
  return file_error(path(), fmt::format("metadata key '{}' is {}: expected an integer below 2^63",
                                        printable(key), load<uint64_t>(found->bytes)));
}

Result<double> GgufFile::number(std::string_view key) const {
  TRY_ASSIGN(const GgufValue* found, value(key, "a number"));
  const auto number = scalar_number(found->type, found->bytes);
  if (!number) return wrong_type(key, *found, "a number");
  if (!std::isfinite(*number)) {
    return file_error(path(), fmt::format("metadata key '{}' is {}: expected a finite number",
                                          printable(key), *number));
  }
  return *number;
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  TRY_ASSIGN(const GgufValue* found, value(key, "a boolean"));
  if (found->type != GgufType::kBool) return wrong_type(key, *found, "a boolean");
  const auto byte = load<uint8_t>(found->bytes);
  if (byte > 1) {
    return file_error(
        path(), fmt::format("metadata key '{}' is {}: expected 0 or 1", printable(key), byte));
  }
  return byte == 1;
}

Result<std::string_view> GgufFile::string(std::string_view key) const {
  TRY_ASSIGN(const GgufValue* found, value(key, "a string"));
  if (found->type != GgufType::kString) return wrong_type(key, *found, "a string");
  return found->bytes;
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  TRY_ASSIGN(const GgufValue* found, value(key, kExpected));
  if (found->type != GgufType::kArray || found->element_type != GgufType::kString) {
    return wrong_type(key, *found, kExpected);
  }
  std::vector<std::string_view> strings;
  strings.reserve(found->count);  // bounded by the file's size when it was parsed
  std::string_view rest = found->bytes;
  for (uint64_t i = 0; i < found->count; ++i) {
    const auto length = load<uint64_t>(rest);
    strings.push_back(rest.substr(sizeof length, length));
    rest.remove_prefix(sizeof length + length);
  }
  return strings;
}

Result<std::vector<int64_t>> GgufFile::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of integers";
  TRY_ASSIGN(const GgufValue* found, value(key, kExpected));
  if (found->type != GgufType::kArray) return wrong_type(key, *found, kExpected);
  const uint64_t size = gguf_scalar_bytes(found->element_type);
  std::vector<int64_t> integers;
  for (uint64_t i = 0; i < found->count; ++i) {
    if (size == 0) return wrong_type(key, *found, kExpected);
    const auto integer = scalar_integer(found->element_type, found->bytes.substr(i * size, size));
    if (!integer) return wrong_type(key, *found, kExpected);
    integers.push_back(*integer);
  }
  return integers;
}

Result<std::vector<bool>> GgufFile::booleans(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of booleans";
  TRY_ASSIGN(const GgufValue* found, value(key, kExpected));
  if (found->type != GgufType::kArray || found->element_type != GgufType::kBool) {
    return wrong_type(key, *found, kExpected);
  }
  std::vector<bool> booleans;
  for (const char byte : found->bytes) {
    if (static_cast<unsigned char>(byte) > 1) {
      return file_error(path(), fmt::format("metadata key '{}' holds {}: expected 0 or 1",
                                            printable(key), static_cast<unsigned char>(byte)));
    }
    booleans.push_back(byte == 1);
  }
  return booleans;
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of finite numbers";
  TRY_ASSIGN(const GgufValue* found, value(key, kExpected));
  if (found->type != GgufType::kArray) return wrong_type(key, *found, kExpected);
  const uint64_t size = gguf_scalar_bytes(found->element_type);
  std::vector<double> numbers;
  for (uint64_t i = 0; i < found->count; ++i) {
    if (size == 0) return wrong_type(key, *found, kExpected);
    const auto number = scalar_number(found->element_type, found->bytes.substr(i * size, size));
    if (!number || !std::isfinite(*number)) return wrong_type(key, *found, kExpected);
    numbers.push_back(*number);
  }
  return numbers;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace reckon
