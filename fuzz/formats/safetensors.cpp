// A safetensors file: its header and the ends of every tensor.
#include "formats/safetensors.h"

#include "fuzz/fuzz.h"

namespace reckon::fuzz {

void fuzz(std::string_view bytes) {
  const auto file = SafetensorsFile::parse(MappedFile::copy_of("input.safetensors", bytes));
  if (!accepted(file)) return;
  for (const SafetensorsTensor& tensor : file->tensors()) {
    RECKON_CHECK(file->find(tensor.name) == &tensor);
    if (tensor.bytes.empty()) continue;
    const volatile char* data = tensor.bytes.data();
    (void)data[0];
    (void)data[tensor.bytes.size() - 1];
    (void)accepted(file->floats(tensor.name));
    (void)accepted(file->integers(tensor.name));
    (void)accepted(file->raw_bytes(tensor.name));
  }
}

}  // namespace reckon::fuzz
