// GgufFile::parse: one pass over the header, in the file's order (metadata, tensor table), then the
// data ranges. Nothing is reserved by a count that the file merely claims.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "formats/file_error.h"
#include "formats/gguf.h"
#include "formats/gguf_types.h"

namespace reckon {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kLargestAlignment = 65536;
constexpr int kDeepestArray = 4;
constexpr uint32_t kMostDimensions = 4;
// The smallest encodings: key length + type + one byte; name length + rank + one dimension + type
// + offset. A count above remaining / smallest cannot be true.
constexpr uint64_t kSmallestKey = 8 + 4 + 1;
constexpr uint64_t kSmallestTensor = 8 + 4 + 8 + 4 + 8;

}  // namespace

class GgufParser {
 public:
  explicit GgufParser(MappedFile file) : gguf_(std::move(file)), rest_(gguf_.bytes()) {}

  Result<GgufFile> run() {
    TRY(parse_header());
    for (uint64_t i = 0; i < key_count_; ++i) TRY(parse_key(i));
    TRY(read_alignment());
    for (uint64_t i = 0; i < tensor_count_; ++i) TRY(parse_tensor(i));
    TRY(place_tensors());
    return std::move(gguf_);
  }

 private:
  [[nodiscard]] Error error(std::string_view message) const {
    return file_error(gguf_.path(), message);
  }

  [[nodiscard]] Error ends_inside(std::string_view what) const {
    return error(fmt::format("the file ends inside {} (it has {} bytes): truncated?", what,
                             gguf_.bytes().size()));
  }

  template <typename T>
  [[nodiscard]] Result<T> read(std::string_view what) {
    T value;
    if (rest_.size() < sizeof value) return ends_inside(what);
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }

  [[nodiscard]] Result<std::string_view> read_string(std::string_view what) {
    TRY_ASSIGN(const uint64_t length, read<uint64_t>(what));
    if (length > rest_.size()) return ends_inside(what);
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return text;
  }

  [[nodiscard]] Status parse_header() {
    if (!rest_.starts_with("GGUF")) {
      return error("not a GGUF file: expected it to start with the bytes 'GGUF'");
    }
    rest_.remove_prefix(4);
    TRY_ASSIGN(gguf_.version_, read<uint32_t>("the header"));
    if ((gguf_.version_ & 0xffffU) == 0 && gguf_.version_ != 0) {
      return error("a big-endian GGUF file: expected little-endian");
    }
    if (gguf_.version_ != 2 && gguf_.version_ != 3) {
      return error(fmt::format("GGUF version {}: expected 2 or 3", gguf_.version_));
    }
    TRY_ASSIGN(tensor_count_, read<uint64_t>("the header"));
    TRY_ASSIGN(key_count_, read<uint64_t>("the header"));
    if (key_count_ > rest_.size() / kSmallestKey) {
      return error(fmt::format("the header claims {} metadata keys, more than {} bytes can hold",
                               key_count_, gguf_.bytes().size()));
    }
    if (tensor_count_ > rest_.size() / kSmallestTensor) {
      return error(fmt::format("the header claims {} tensors, more than {} bytes can hold",
                               tensor_count_, gguf_.bytes().size()));
    }
    return {};
  }

  [[nodiscard]] Status parse_key(uint64_t index) {
    TRY_ASSIGN(const std::string_view key,
               read_string(fmt::format("metadata key {} of {}", index + 1, key_count_)));
    const std::string what = fmt::format("metadata key '{}'", printable(key));
    if (key.empty()) return error(fmt::format("metadata key {} has no name", index + 1));
    TRY_ASSIGN(const auto type, read<uint32_t>(what));
    GgufValue value;
    value.type = static_cast<GgufType>(type);
    if (value.type == GgufType::kString) {
      TRY_ASSIGN(value.bytes, read_string(what));
    } else if (value.type == GgufType::kArray) {
      TRY(parse_array(what, value, 1));
    } else {
      const uint64_t size = gguf_scalar_bytes(value.type);
      if (size == 0) return error(fmt::format("{} has the unknown type {}", what, type));
      if (size > rest_.size()) return ends_inside(what);
      value.bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
    }
    if (!gguf_.key_index_.emplace(key, gguf_.metadata_.size()).second) {
      return error(what + " occurs twice");
    }
    gguf_.metadata_.emplace_back(key, value);
    return {};
  }

  // The element type, the count and then the elements, of which value.bytes becomes a view.
  [[nodiscard]] Status parse_array(const std::string& what, GgufValue& value, int depth) {
    if (depth > kDeepestArray) {
      return error(fmt::format("{} nests arrays deeper than {}", what, kDeepestArray));
    }
    TRY_ASSIGN(const auto type, read<uint32_t>(what));
    TRY_ASSIGN(value.count, read<uint64_t>(what));
    value.element_type = static_cast<GgufType>(type);
    const std::string_view start = rest_;
    const bool is_string = value.element_type == GgufType::kString;
    if (is_string || value.element_type == GgufType::kArray) {
      if (value.count > rest_.size() / sizeof(uint64_t)) return too_long(what, value.count);
      for (uint64_t i = 0; i < value.count; ++i) {
        if (is_string) {
          TRY(read_string(what));
        } else {
          GgufValue element;
          TRY(parse_array(what, element, depth + 1));
        }
      }
    } else {
      const uint64_t size = gguf_scalar_bytes(value.element_type);
      if (size == 0) return error(fmt::format("{} is an array of the unknown type {}", what, type));
      if (value.count > rest_.size() / size) return too_long(what, value.count);
      rest_.remove_prefix(value.count * size);
    }
    value.bytes = start.substr(0, start.size() - rest_.size());
    return {};
  }

  [[nodiscard]] Error too_long(std::string_view what, uint64_t count) const {
    return error(
        fmt::format("{} claims {} elements, more than the {} bytes that follow hold: "
                    "truncated?",
                    what, count, rest_.size()));
  }

  [[nodiscard]] Status read_alignment() {
    if (!gguf_.has("general.alignment")) return {};
    TRY_ASSIGN(const int64_t alignment, gguf_.integer("general.alignment"));
    alignment_ = static_cast<uint64_t>(alignment);
    if (alignment < 8 || alignment_ > kLargestAlignment || !std::has_single_bit(alignment_)) {
      return error(
          fmt::format("metadata key 'general.alignment' is {}: expected a power of two "
                      "from 8 to {}",
                      alignment, kLargestAlignment));
    }
    return {};
  }

  [[nodiscard]] Status parse_tensor(uint64_t index) {
    GgufTensor tensor;
    TRY_ASSIGN(tensor.name,
               read_string(fmt::format("the entry of tensor {} of {}", index + 1, tensor_count_)));
    if (tensor.name.empty()) return error(fmt::format("tensor {} has no name", index + 1));
    const std::string what = fmt::format("tensor '{}'", printable(tensor.name));
    TRY_ASSIGN(const auto rank, read<uint32_t>(what));
    if (rank < 1 || rank > kMostDimensions) {
      return error(
          fmt::format("{} has {} dimensions: expected 1 to {}", what, rank, kMostDimensions));
    }
    uint64_t elements = 1;
    for (uint32_t d = 0; d < rank; ++d) {
      TRY_ASSIGN(const auto size, read<uint64_t>(what));
      if (size == 0 || !multiply_checked(elements, size, elements) || elements > kMostElements) {
        return error(fmt::format("{} has the impossible dimension {} (number {} of {})", what, size,
                                 d + 1, rank));
      }
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    TRY_ASSIGN(const auto type, read<uint32_t>(what));
    TRY(set_type(what, type, elements, tensor));
    TRY_ASSIGN(const auto offset, read<uint64_t>(what));
    if (offset % alignment_ != 0) {
      return error(fmt::format("{} starts at data offset {}: expected a multiple of {}", what,
                               offset, alignment_));
    }
    if (!gguf_.tensor_index_.emplace(tensor.name, gguf_.tensors_.size()).second) {
      return error(what + " occurs twice");
    }
    offsets_.push_back(offset);
    gguf_.tensors_.push_back(std::move(tensor));
    return {};
  }

  [[nodiscard]] Status set_type(const std::string& what, uint32_t number, uint64_t elements,
                                GgufTensor& tensor) const {
    const auto type = gguf_tensor_type(number);
    if (!type) {
      return error(
          fmt::format("{} has the element type {}, which is not supported: expected one "
                      "of {}",
                      what, gguf_tensor_type_name(number), gguf_tensor_types_read()));
    }
    tensor.type = *type;
    const int64_t block = block_elements(*type);
    if (tensor.shape.back() % block != 0) {
      return error(fmt::format("{} has rows of {} elements: {} needs a multiple of {}", what,
                               tensor.shape.back(), gguf_tensor_type_name(number), block));
    }
    // Fits: elements <= 2^56 and a block has at most four bytes an element.
    tensor.bytes =
        elements / static_cast<uint64_t>(block) * static_cast<uint64_t>(block_bytes(*type));
    return {};
  }

  // Data ranges are relative to the first aligned byte behind the tensor table.
  [[nodiscard]] Status place_tensors() {
    const std::string_view file = gguf_.bytes();
    const uint64_t header = file.size() - rest_.size();
    const uint64_t start = (header + alignment_ - 1) / alignment_ * alignment_;
    for (size_t i = 0; i < offsets_.size(); ++i) {
      GgufTensor& tensor = gguf_.tensors_[i];
      uint64_t end = 0;
      const bool fits = add_checked(start, offsets_[i], end) &&
                        add_checked(end, tensor.bytes, end) && end <= file.size();
      if (!fits) {
        return error(
            fmt::format("tensor '{}' ({} bytes at data offset {}) ends behind the file's "
                        "{} bytes: truncated?",
                        printable(tensor.name), tensor.bytes, offsets_[i], file.size()));
      }
      tensor.data = file.data() + start + offsets_[i];
    }
    return check_apart();
  }

  // Gaps are padding, but no byte belongs to two tensors.
  [[nodiscard]] Status check_apart() const {
    std::vector<const GgufTensor*> order;
    for (const GgufTensor& tensor : gguf_.tensors_) order.push_back(&tensor);
    std::ranges::sort(order, {}, &GgufTensor::data);
    for (size_t i = 1; i < order.size(); ++i) {
      const GgufTensor& before = *order[i - 1];
      if (static_cast<const char*>(before.data) + before.bytes <= order[i]->data) continue;
      return error(fmt::format("tensors '{}' and '{}' overlap: expected each byte in one tensor",
                               printable(before.name), printable(order[i]->name)));
    }
    return {};
  }

  static constexpr uint64_t kMostElements = uint64_t{1} << 56;

  GgufFile gguf_;
  std::string_view rest_;  // what has not been read yet
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::vector<uint64_t> offsets_;  // of each tensor, relative to the data
};

Result<GgufFile> GgufFile::open(const std::string& path) {
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  return parse(std::move(file));
}

Result<GgufFile> GgufFile::parse(MappedFile file) {
  return GgufParser(std::move(file)).run();
}

}  // namespace reckon
