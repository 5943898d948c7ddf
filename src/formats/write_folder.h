// Writing a checkpoint as a Hugging Face folder: config.json and one model.safetensors.
// Format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "formats/checkpoint.h"

namespace reckon {

struct WriteFolderOptions {
  int threads = 0;  // 0: every core that this process may use
  // Called after each strip with bytes written and bytes in all; false stops.
  std::function<bool(uint64_t done, uint64_t total)> progress;
};

// Bytes of the model.safetensors that write_folder() makes, about (without its header).
[[nodiscard]] uint64_t folder_bytes(const Checkpoint& checkpoint);

// `checkpoint` is synthetic or a folder of plain types (else failed). Afterwards `path` is a
// complete folder, on stable storage, that opens as a checkpoint with the same shape hash and the
// same weights, or it is what it was before; what was written is removed then. Usage error: `path`
// is there already (an empty folder will do) or its parent is not. Fails where the disk has no
// room (asked before, and reported where it runs out on the way) or `progress` said stop.
[[nodiscard]] Status write_folder(const Checkpoint& checkpoint, const std::string& path,
                                  const WriteFolderOptions& options = {});

}  // namespace reckon
