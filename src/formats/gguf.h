// Reader of GGUF model files, versions 2 and 3, little-endian, read in place over a mapping.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
// open() checks every count, length, dimension and offset against overflow and the file's size
// before it is used, so that a truncated or damaged file is a one-line error, never a crash or a
// huge allocation; an element type that is not in gguf_types.cpp's table is an error naming the
// tensor and its type. Views returned point into the mapping and live as long as the GgufFile
// (moves keep them valid). Everything is const after open() and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "formats/mapped_file.h"
#include "tensor/dtype.h"

namespace reckon {

// Value types, numbered as in the file.
enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// A metadata value, still encoded.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element_type = GgufType::kUint8;  // of an array's elements
  uint64_t count = 1;                        // elements of an array
  std::string_view bytes;                    // the string, the scalar, or the array's elements
};

struct GgufTensor {
  std::string_view name;
  DType type = DType::kF32;
  std::vector<int64_t> shape;  // outermost first ([N, K] for a weight): the file's order reversed
  const void* data = nullptr;
  uint64_t bytes = 0;
};

class GgufFile {
 public:
  [[nodiscard]] static Result<GgufFile> open(const std::string& path);
  [[nodiscard]] static Result<GgufFile> parse(MappedFile file);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::string_view bytes() const { return file_.bytes(); }
  [[nodiscard]] const MappedFile& file() const { return file_; }
  [[nodiscard]] uint32_t version() const { return version_; }

  // Metadata. A getter fails, naming the key and the expected type, where the key is absent or
  // holds something else. integer() accepts every integer type whose value fits int64; number()
  // accepts integers, too.
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] const GgufValue* find_key(std::string_view key) const;  // null where absent
  [[nodiscard]] Result<int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> string(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string_view>> strings(std::string_view key) const;
  [[nodiscard]] Result<std::vector<int64_t>> integers(std::string_view key) const;
  [[nodiscard]] Result<std::vector<bool>> booleans(std::string_view key) const;
  [[nodiscard]] Result<std::vector<double>> numbers(std::string_view key) const;  // finite
  [[nodiscard]] std::span<const std::pair<std::string_view, GgufValue>> metadata() const {
    return metadata_;  // in the file's order
  }

  [[nodiscard]] std::span<const GgufTensor> tensors() const { return tensors_; }
  [[nodiscard]] const GgufTensor* find(std::string_view name) const;  // null where absent

 private:
  friend class GgufParser;
  explicit GgufFile(MappedFile file) : file_(std::move(file)) {}
  [[nodiscard]] Result<const GgufValue*> value(std::string_view key, std::string_view type) const;
  [[nodiscard]] Error wrong_type(std::string_view key, const GgufValue& value,
                                 std::string_view expected) const;

  MappedFile file_;
  uint32_t version_ = 0;
  std::vector<std::pair<std::string_view, GgufValue>> metadata_;
  std::unordered_map<std::string_view, size_t> key_index_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace reckon
