// A tokenizer.json, and a text through the tokenizer that it makes.
#include "formats/tokenizer_json.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

namespace reckon::fuzz {
namespace {

// The reader wants a folder: one of this process's own, removed at the end.
class Folder {
 public:
  Folder() {
    path_ = std::filesystem::temp_directory_path() / "reckon_fuzz_XXXXXX";
    RECKON_CHECK(mkdtemp(path_.data()) != nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

}  // namespace

void fuzz(std::string_view bytes) {
  static const Folder folder;
  folder.write("tokenizer.json", bytes);
  const auto tokenizer = read_json_tokenizer(folder.path());
  if (!accepted(tokenizer)) return;
  for (const Special special : {Special::kParse, Special::kIgnore}) {
    std::vector<int32_t> ids;
    (*tokenizer)->encode(" Hello  world, 12 caf\xc3\xa9s\r\n\n <s>\xff</s>", special, ids);
    for (const int32_t id : ids) RECKON_CHECK(static_cast<size_t>(id) < (*tokenizer)->bytes.size());
  }
}

}  // namespace reckon::fuzz
