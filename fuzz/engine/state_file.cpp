// A saved state: its header, whose checksums are put right first, since no mutation finds them, and
// every row of the buffers that it says it has.
#include "engine/state_file.h"

#include <cstring>
#include <string>

#include "base/hash.h"
#include "fuzz/fuzz.h"

namespace reckon::fuzz {
namespace {

constexpr size_t kHead = 40;
constexpr size_t kData = 4096;  // behind the header, at a multiple of 64

// The bytes as a header, followed by some data. Where they say that a checksum is "SUM", it is that
// of the data's first 64 bytes.
std::string file_of(std::string_view bytes) {
  const std::string data(kData, '\1');
  std::string header(bytes);
  const std::string sum = hash_hex(std::string_view(data).substr(0, 64));
  for (size_t at = header.find("SUM"); at != std::string::npos; at = header.find("SUM", at)) {
    header.replace(at, 3, sum);
  }
  std::string file = "RKSTATE\n" + std::string(kHead - 8, '\0') + header;
  file.resize((file.size() + 63) / 64 * 64);
  file += data;
  const uint64_t numbers[] = {engine::kStateFileVersion, file.size(), header.size(),
                              hash64(header)};
  std::memcpy(file.data() + 8, numbers, sizeof numbers);
  return file;
}

void read(std::string_view bytes) {
  const auto file = engine::StateFile::parse(MappedFile::copy_of("state", bytes));
  if (!accepted(file)) return;
  const engine::StateContents& contents = file->contents();
  RECKON_CHECK(!contents.tokens.empty());
  for (size_t i = 0; i < contents.buffers.size(); ++i) {
    const engine::StateRows& rows = contents.buffers[i];
    const auto size = static_cast<uint64_t>(rows.parts * rows.count * rows.row_bytes());
    RECKON_CHECK(file->rows(i).size() == size);
    uint64_t sum = 0;
    for (const char byte : file->rows(i)) sum += static_cast<unsigned char>(byte);
    RECKON_CHECK(sum <= size * 255);
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  read(bytes);
  read(file_of(bytes));
}

}  // namespace reckon::fuzz
