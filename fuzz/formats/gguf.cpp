// A GGUF file: its header, every metadata value by every getter, the ends of every tensor and the
// first row dequantised; then its tokenizer, where it has one, on a text.
#include "formats/gguf.h"

#include <algorithm>
#include <vector>

#include "formats/tokenizer_gguf.h"
#include "fuzz/fuzz.h"
#include "tensor/dtype.h"

namespace reckon::fuzz {
namespace {

constexpr int64_t kLongestRow = 1 << 16;

void read_metadata(const GgufFile& gguf) {
  for (const auto& [key, value] : gguf.metadata()) {
    (void)accepted(gguf.integer(key));
    (void)accepted(gguf.number(key));
    (void)accepted(gguf.boolean(key));
    (void)accepted(gguf.string(key));
    (void)accepted(gguf.strings(key));
    (void)accepted(gguf.integers(key));
    (void)accepted(gguf.numbers(key));
  }
}

void read_tensors(const GgufFile& gguf) {
  for (const GgufTensor& tensor : gguf.tensors()) {
    RECKON_CHECK(gguf.find(tensor.name) == &tensor);
    const auto* data = static_cast<const volatile char*>(tensor.data);
    (void)data[0];
    (void)data[tensor.bytes - 1];
    const int64_t k = tensor.shape.back();
    if (tensor.type == DType::kI32 || k > kLongestRow) continue;
    std::vector<float> row(static_cast<size_t>(k));
    dequantize_row(tensor.type, tensor.data, k, row.data());
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  const Result<GgufFile> gguf = GgufFile::parse(MappedFile::copy_of("input.gguf", bytes));
  if (!accepted(gguf)) return;
  read_metadata(*gguf);
  read_tensors(*gguf);
  const auto tokenizer = read_gguf_tokenizer(*gguf);
  if (!accepted(tokenizer)) return;
  std::vector<int32_t> ids;
  (*tokenizer)->encode("Hello world, 12 caf\xc3\xa9s\n <s>\xff", Special::kParse, ids);
  for (const int32_t id : ids) RECKON_CHECK(static_cast<size_t>(id) < (*tokenizer)->bytes.size());
}

}  // namespace reckon::fuzz
