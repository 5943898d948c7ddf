// Reader of safetensors files over a mapping.
// Format: https://github.com/huggingface/safetensors#format
//
// open() checks the header (its length, its JSON, every shape, type size and data range) against
// overflow and the file's size, and that every byte of the data belongs to one tensor, as the
// format's own library does; failures are one line naming the file and the tensor. An element type
// that Reckon does not read is an error only when that tensor is asked for. Views point into
// the mapping and live as long as the SafetensorsFile (moves keep them valid); thread-safe.
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

struct SafetensorsTensor {
  std::string name;
  std::string type_name;       // as the file writes it: "F32", "BF16", "U8", ...
  std::optional<DType> type;   // F32, F16, BF16 and I32; none for other types
  std::vector<int64_t> shape;  // outermost first; empty for a scalar
  std::string_view bytes;      // not necessarily aligned to the element's size
};

class SafetensorsFile {
 public:
  [[nodiscard]] static Result<SafetensorsFile> open(const std::string& path);
  [[nodiscard]] static Result<SafetensorsFile> parse(MappedFile file);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] std::string_view bytes() const { return file_.bytes(); }
  [[nodiscard]] const MappedFile& file() const { return file_; }
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const { return tensors_; }  // by name
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const;

  // The tensor's elements, copied. Fails where it is absent or of another type.
  [[nodiscard]] Result<std::vector<float>> floats(std::string_view name) const;      // F32 only
  [[nodiscard]] Result<std::vector<int32_t>> integers(std::string_view name) const;  // I32 only
  [[nodiscard]] Result<std::string_view> raw_bytes(std::string_view name) const;     // U8 only

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  [[nodiscard]] Status read_header();
  [[nodiscard]] Result<const SafetensorsTensor*> typed(std::string_view name,
                                                       std::string_view type_name) const;

  MappedFile file_;
  std::vector<SafetensorsTensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace reckon
