// The weights of a Hugging Face folder: model.safetensors, or the files that
// model.safetensors.index.json lists.
//
// Tensors are those of all files together. Errors, in one line that names the file: an index that
// is not as expected, lists a tensor twice, or names a file outside its folder; a file that is
// missing; a tensor that the index lists and its file lacks, or that two files have; a
// model.safetensors beside an index that does not list it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/safetensors.h"

namespace reckon {

class SafetensorsSet {
 public:
  [[nodiscard]] static Result<SafetensorsSet> open(const std::string& folder);

  [[nodiscard]] const std::vector<SafetensorsFile>& files() const { return files_; }
  // "" where there is no index.
  [[nodiscard]] const std::string& index_path() const { return index_path_; }

 private:
  std::vector<SafetensorsFile> files_;  // sorted by name
  std::string index_path_;
};

// (tensor, file name) of an index, sorted; checked as above, without looking at any file.
using SafetensorsIndex = std::vector<std::pair<std::string, std::string>>;
[[nodiscard]] Result<SafetensorsIndex> parse_safetensors_index(const std::string& path,
                                                               std::string_view text);

}  // namespace reckon
