// GGUF models that are split over several files.
//
// Each file is a GGUF file with tensors of its own; the first one has the model's metadata, and all
// have split.count, split.no (from 0) and split.tensors.count (of all files together). Their names
// end in "-00002-of-00003.gguf", counted from 1, as llama.cpp's gguf-split writes them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"

namespace reckon {

// Opens a whole model from any of its files, in their order; a model in one file gives that one.
// Errors, in one line that names the file: a shard that is missing, whose keys contradict its name
// or the other shards, that has another shard's tensor, an architecture or a hyper-parameter that
// the first does not have, or tensors more or fewer than the keys say.
[[nodiscard]] Result<std::vector<GgufFile>> open_gguf_shards(const std::string& path);

}  // namespace reckon
