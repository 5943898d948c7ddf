// XXH3-128 of model files, remembered by path, size and time, so that a big file is not read again
// only to be told from another.
//
// A hash is kept as one line in FOLDER/hashes, one file for each path: written aside and renamed,
// with a checksum of its own, so that processes need no lock and a damaged line counts for nothing.
// What cannot be kept (no folder, no room) is computed each time. A file that was written to within
// the last two seconds is not remembered: file systems do not tell such times well enough apart.
#pragma once

#include <cstdint>
#include <string>

#include "formats/cache_folder.h"
#include "formats/mapped_file.h"

namespace reckon {

struct FileHashOptions {
  std::string folder = cache_folder();        // "": nothing is remembered
  uint64_t least_bytes = uint64_t{64} << 20;  // smaller files are hashed each time
};

// What `xxhsum -H2` prints for the file.
[[nodiscard]] std::string file_hash(const MappedFile& file, const FileHashOptions& options = {});

}  // namespace reckon
