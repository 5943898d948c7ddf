// Helpers of this module's tests: temporary files, GGUF files made in memory, golden data.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/test_data.h"
#include "formats/gguf.h"
#include "formats/model_path.h"

namespace reckon {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A folder of this test's own, removed at the end.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = ::testing::TempDir() + "reckon_formats_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  // Writes a file and gives its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::string path = path_ + "/" + name;
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

 private:
  std::string path_;
};

// Little-endian bytes, one value after the other.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& put(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes_.append(raw, sizeof value);
    return *this;
  }
  ByteWriter& text(std::string_view text) {  // as GGUF writes it
    put<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  ByteWriter& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// A GGUF file, written the way the format says unless a test asks for something else.
class GgufWriter {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;
  uint64_t extra_keys = 0;     // added to the count in the header
  uint64_t extra_tensors = 0;  // likewise

  GgufWriter& key(std::string_view name, GgufType type, std::string_view value) {
    keys_.text(name).put(type).raw(value);
    ++key_count_;
    return *this;
  }
  GgufWriter& string(std::string_view name, std::string_view value) {
    return key(name, GgufType::kString, ByteWriter().text(value).bytes());
  }
  template <typename T>
  GgufWriter& scalar(std::string_view name, GgufType type, T value) {
    return key(name, type, ByteWriter().put(value).bytes());
  }
  GgufWriter& strings(std::string_view name, const std::vector<std::string>& values) {
    ByteWriter array;
    array.put(GgufType::kString).put<uint64_t>(values.size());
    for (const std::string& value : values) array.text(value);
    return key(name, GgufType::kArray, array.bytes());
  }
  // `shape` innermost first, as the file has it; `data` is padded to the alignment.
  GgufWriter& tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                     std::string_view data) {
    return tensor_at(name, shape, type, data_.size(), data);
  }
  GgufWriter& tensor_at(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                        uint64_t offset, std::string_view data) {
    tensors_.text(name).put<uint32_t>(static_cast<uint32_t>(shape.size()));
    for (const uint64_t size : shape) tensors_.put(size);
    tensors_.put(type).put(offset);
    ++tensor_count_;
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }

  [[nodiscard]] std::string bytes() const {
    ByteWriter file;
    file.raw("GGUF").put(version).put(tensor_count_ + extra_tensors).put(key_count_ + extra_keys);
    file.raw(keys_.bytes()).raw(tensors_.bytes());
    const uint64_t header = file.bytes().size();
    file.raw(std::string((alignment - header % alignment) % alignment, '\0')).raw(data_);
    return file.bytes();
  }

 private:
  ByteWriter keys_;
  ByteWriter tensors_;
  std::string data_;
  uint64_t key_count_ = 0;
  uint64_t tensor_count_ = 0;
};

// Real models that some tests need, "tiny", which the project ships, and "smollm2", which is
// fetched: where RECKON_TEST_TINY or RECKON_TEST_SMOLLM2 says, else where they belong. "" where
// absent.
inline std::string real_model(std::string_view name) {
  const bool shipped = name == "tiny";
  const char* elsewhere = std::getenv(shipped ? "RECKON_TEST_TINY" : "RECKON_TEST_SMOLLM2");
  const std::string path = elsewhere != nullptr ? std::string(elsewhere)
                           : shipped            ? project_path("models/tiny")
                                                : model_cache_folder() + "/smollm2.gguf";
  return std::filesystem::exists(path) ? path : "";
}
inline std::string tiny_path() {
  return real_model("tiny");
}
inline std::string smollm2_path() {
  return real_model("smollm2");
}

// Tests of real text run on each.
inline std::vector<std::string> real_models() {
  return {"tiny", "smollm2"};
}

// Skips the test where the model is absent.
#define RECKON_REQUIRE_MODEL(name)                                                        \
  if (::reckon::real_model(name).empty()) {                                               \
    GTEST_SKIP() << (name) << " is absent: set RECKON_TEST_TINY or RECKON_TEST_SMOLLM2, " \
                 << "or run scripts/get-model smollm2";                                   \
  }                                                                                       \
  static_assert(true)
#define RECKON_REQUIRE_TINY() RECKON_REQUIRE_MODEL("tiny")
#define RECKON_REQUIRE_SMOLLM2() RECKON_REQUIRE_MODEL("smollm2")

}  // namespace reckon
