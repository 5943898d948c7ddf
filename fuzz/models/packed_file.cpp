// A file of packed weights: its header, whose checksum is put right first, since no mutation finds
// it, and every row of the tensors that it says it has.
#include "models/packed_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"
#include "formats/new_file.h"
#include "fuzz/fuzz.h"

namespace reckon::fuzz {
namespace {

void put_number(std::string& bytes, size_t at, uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// The bytes as a header, followed by some data.
std::string file_of(std::string_view header) {
  std::string bytes = "RKPACKED" + std::string(16, '\0') + std::string(header);
  put_number(bytes, 8, header.size());
  put_number(bytes, 16, hash64(header));
  return bytes + std::string(4096, '\1');
}

}  // namespace

void fuzz(std::string_view bytes) {
  static const std::string path = "packed-" + std::to_string(getpid());
  RECKON_CHECK(replace_file(path, file_of(bytes)).ok());
  const auto file = models::PackedFile::open(path, {"m", "q4", 1});
  (void)unlink(path.c_str());
  if (!accepted(file)) return;
  ThreadPool pool(1);
  for (const DType type : {DType::kP4, DType::kP8}) {
    const Weight found = (*file)->find("t", {nullptr, type, 2, 65});
    if (found.data == nullptr) continue;
    (void)accepted((*file)->verify(std::vector<std::string>{"t"}, pool));
    std::vector<char> rows(static_cast<size_t>(found.bytes()));
    RECKON_CHECK(models::PackedRows(*file, found).rows(0, 2, type, rows.data()).ok());
  }
}

}  // namespace reckon::fuzz
