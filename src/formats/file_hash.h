// XXH3-128 of model files, remembered by path, size and time, so that a big file is not read again
// only to be told from another.
//
// A hash is kept as one line in FOLDER/hashes, one file for each path: written aside and renamed,
// with a checksum of its own, so that processes need no lock and a damaged line counts for nothing.
// What cannot be kept (no folder, no room) is computed each time. A file that was written to or
// changed within the last two seconds is not remembered: file systems do not tell such times well
// enough apart. Nor is one that changes while it is hashed.
//
// A program that writes through a shared mapping changes bytes long before the file's times. So the
// line has a hash of 64 pages as well, spread over the file by its path, and a file in which they
// differ is read again. A change elsewhere that has no time yet is not seen.
#pragma once

#include <cstdint>
#include <string>

#include "formats/cache_folder.h"
#include "formats/mapped_file.h"

namespace reckon {

struct FileHashOptions {
  std::string folder = cache_folder();        // "": nothing is remembered
  uint64_t least_bytes = uint64_t{64} << 20;  // smaller files are hashed each time
  int64_t settled_ns = 2'000'000'000;         // how long a file was left alone to be remembered
};

// What `xxhsum -H2` prints for the file.
[[nodiscard]] std::string file_hash(const MappedFile& file, const FileHashOptions& options = {});

}  // namespace reckon
