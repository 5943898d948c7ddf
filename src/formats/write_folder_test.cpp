#include "formats/write_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>

#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::HasSubstr;

Checkpoint must_open(const std::string& path) {
  auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  return std::move(checkpoint).value();
}

size_t entries(const std::string& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// Files of this process end after so many bytes, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*handler_)(int);
};

TEST(WriteFolder, OpensAsTheSameCheckpoint) {
  for (const char* model : {"synth:tiny-llama,seed=9", "synth:tiny-qwen3,layers=2"}) {
    const Checkpoint made = must_open(model);
    for (const int threads : {1, 3}) {
      const TestFolder folder;
      const std::string path = folder.path() + "/made";
      std::vector<uint64_t> done;
      const auto progress = [&](uint64_t bytes, uint64_t total) {
        EXPECT_EQ(total, folder_bytes(made));
        done.push_back(bytes);
        return true;
      };
      const Status status = write_folder(made, path + "/", {threads, progress});
      ASSERT_TRUE(status.ok()) << status.error().message;
      EXPECT_EQ(done.back(), folder_bytes(made));
      EXPECT_EQ(entries(folder.path()), 1U);
      EXPECT_EQ(entries(path), 2U);
      const Checkpoint read = must_open(path);
      EXPECT_EQ(read.kind(), CheckpointKind::kHuggingFace);
      EXPECT_EQ(read.shape_hash(), made.shape_hash());
      EXPECT_EQ(read.weight_format(), "bf16");
      ASSERT_EQ(read.tensors().size(), made.tensors().size());
      for (const CheckpointTensor& tensor : read.tensors()) {
        const Weight weight = *tensor.weight;
        std::string expected(static_cast<size_t>(weight.bytes()), '\0');
        ASSERT_TRUE(
            made.rows(tensor.name).value()->rows(0, weight.n, weight.type, expected.data()).ok());
        EXPECT_EQ(std::memcmp(weight.data, expected.data(), expected.size()), 0) << tensor.name;
      }
    }
  }
}

TEST(WriteFolder, TakesAnEmptyFolderAndNoOther) {
  const Checkpoint made = must_open("synth:tiny-llama");
  const TestFolder folder;
  const std::string path = folder.path() + "/made";
  std::filesystem::create_directory(path);
  ASSERT_TRUE(write_folder(made, path).ok());
  const Status again = write_folder(made, path);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(again.error().message, HasSubstr("is there already"));
  EXPECT_EQ(write_folder(made, folder.write("file", "x")).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(write_folder(made, folder.path() + "/no/parent").error().kind, ErrorKind::kUsage);
  EXPECT_EQ(entries(folder.path()), 2U);
}

TEST(WriteFolder, LeavesNothingWhereTheDiskIsFull) {
  const Checkpoint made = must_open("synth:tiny-llama");
  const TestFolder folder;
  Status status;
  {
    const FileSizeLimit limit(20'000);
    status = write_folder(made, folder.path() + "/made");
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("model.safetensors: File too large"));
  EXPECT_EQ(entries(folder.path()), 0U);
}

TEST(WriteFolder, LeavesNothingWhereItIsStopped) {
  const Checkpoint made = must_open("synth:tiny-llama");
  const TestFolder folder;
  const Status status = write_folder(made, folder.path() + "/made",
                                     {1, [](uint64_t done, uint64_t) { return done < 30'000; }});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(entries(folder.path()), 0U);
}

TEST(WriteFolder, RefusesWhatIsNoFolder) {
  const TestFolder folder;
  const Checkpoint gguf = must_open(golden_path("gguf/tiny-llama-mixed.gguf"));
  EXPECT_THAT(write_folder(gguf, folder.path() + "/made").error().message,
              HasSubstr("config.json"));
}

}  // namespace
}  // namespace reckon
