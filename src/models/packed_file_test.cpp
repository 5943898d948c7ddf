#include "models/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>

#include "base/hash.h"
#include "formats/new_file.h"
#include "formats/test_files.h"
#include "tensor/quantise.h"
#include "tensor/random_rows.h"

namespace reckon::models {
namespace {

using ::testing::HasSubstr;

const PackedKey kKey{"model hash", "q4", kPackingVersion};

// Made-up matrices of the shapes, as p4 and p8 in turn.
class Matrices {
 public:
  explicit Matrices(const std::vector<std::pair<int64_t, int64_t>>& shapes) {
    for (const auto& [n, k] : shapes) {
      const std::string name = "m" + std::to_string(sources_.size());
      rows_.push_back(std::make_unique<RandomRows>(7, name, RandomKind::kMatrix, n, k));
      const DType type = sources_.size() % 2 == 0 ? DType::kP4 : DType::kP8;
      sources_.push_back({name, {nullptr, type, n, k}, rows_.back().get()});
    }
  }
  [[nodiscard]] std::span<const PackedSource> sources() const { return sources_; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const PackedSource& source : sources_) names.push_back(source.name);
    return names;
  }
  // Every row of the file is the one that the source gives.
  void expect_in(const std::shared_ptr<const PackedFile>& file) const {
    for (const PackedSource& source : sources_) {
      const Weight found = file->find(source.name, source.packed);
      ASSERT_NE(found.data, nullptr) << source.name;
      std::string expected(static_cast<size_t>(found.bytes()), '\0'), got = expected;
      ASSERT_TRUE(source.rows->rows(0, found.n, found.type, expected.data()).ok());
      ASSERT_TRUE(PackedRows(file, found).rows(0, found.n, found.type, got.data()).ok());
      EXPECT_TRUE(got == expected) << source.name;
    }
  }

 private:
  std::vector<std::unique_ptr<const RowSource>> rows_;
  std::vector<PackedSource> sources_;
};

Status write(const std::string& path, const Matrices& matrices, int threads = 2) {
  ThreadPool pool(threads);
  return write_packed_file(path, kKey, matrices.sources(), pool, {});
}

// The file with its rows held to their checksums.
Result<std::shared_ptr<const PackedFile>> open_whole(const std::string& path,
                                                     const Matrices& matrices, int threads = 2) {
  TRY_ASSIGN(auto file, PackedFile::open(path, kKey));
  ThreadPool pool(threads);
  TRY(file->verify(matrices.names(), pool));
  return file;
}

size_t files_in(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder),
                                           std::filesystem::directory_iterator()));
}

// Tiny, huge rows (more than a run each), many runs, and K that is no multiple of 64.
const std::vector<std::pair<int64_t, int64_t>> kShapes{{1, 1},         {3, 63},     {5, 65},
                                                       {2, 2'000'001}, {9000, 300}, {1, 64}};

TEST(PackedFile, KeepsEveryRowOfEveryShape) {
  TestFolder folder;
  const std::string path = folder.path() + "/packed";
  const Matrices matrices(kShapes);
  int64_t done = 0;
  ThreadPool pool(3);
  const Status written = write_packed_file(path, kKey, matrices.sources(), pool,
                                           [&](int64_t values) { done = values; });
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(done, 1 + 3 * 63 + 5 * 65 + 2 * 2'000'001 + 9000 * 300 + 64);
  const auto file = open_whole(path, matrices);
  ASSERT_TRUE(file.ok()) << file.error().message;
  matrices.expect_in(*file);
  EXPECT_EQ(files_in(folder.path()), 1U);
  const Weight wrong{nullptr, DType::kP8, 1, 1};
  EXPECT_EQ((*file)->find("m0", wrong).data, nullptr);
  EXPECT_EQ((*file)->find("m9", wrong).data, nullptr);
}

TEST(PackedFile, IsTheSameFromAnyNumberOfThreads) {
  TestFolder folder;
  const Matrices matrices(kShapes);
  ASSERT_TRUE(write(folder.path() + "/one", matrices, 1).ok());
  ASSERT_TRUE(write(folder.path() + "/three", matrices, 3).ok());
  EXPECT_TRUE(read_file(folder.path() + "/one") == read_file(folder.path() + "/three"));
  EXPECT_LE(std::filesystem::file_size(folder.path() + "/one"),
            packed_file_bytes(kKey, matrices.sources()));
}

TEST(PackedFile, NoByteMayChangeAndNoneMayLack) {
  TestFolder folder;
  const Matrices matrices({{3, 63}, {2, 65}});
  ASSERT_TRUE(write(folder.path() + "/whole", matrices).ok());
  const std::string whole = read_file(folder.path() + "/whole");
  const auto opened = PackedFile::open(folder.path() + "/whole", kKey);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const Weight second = (*opened)->find("m1", matrices.sources()[1].packed);
  ASSERT_NE(second.data, nullptr);
  const size_t end = whole.rfind(std::string(static_cast<const char*>(second.data),
                                             static_cast<size_t>(second.bytes()))) +
                     static_cast<size_t>(second.bytes());
  const std::string path = folder.path() + "/changed";
  const size_t gap = whole.find('\0', 24);  // between the header and the data
  const size_t data = whole.find_first_not_of('\0', gap);
  for (size_t i = 0; i < end; i += i < gap || i >= data ? 1 : 101) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    folder.write("changed", changed);
    const auto file = open_whole(path, matrices, 1);
    if (file.ok()) {  // a byte between the header and the data, or between two tensors
      matrices.expect_in(*file);
      ASSERT_EQ(whole[i], '\0') << i;
    }
    folder.write("changed", whole.substr(0, i));
    ASSERT_FALSE(open_whole(path, matrices, 1).ok()) << i;
  }
}

TEST(PackedFile, HoldsOneLongRow) {
  TestFolder folder;
  const Matrices matrices({{1, 1'000'000}});  // more weights than the file has bytes
  ASSERT_TRUE(write(folder.path() + "/packed", matrices).ok());
  const auto file = open_whole(folder.path() + "/packed", matrices);
  ASSERT_TRUE(file.ok()) << file.error().message;
  matrices.expect_in(*file);
}

// Headers whose checksum is right and that say what cannot be.
TEST(PackedFile, BelievesNoNumberThatIsNoSize) {
  TestFolder folder;
  const auto error = [&](const std::string& tensor) {
    const std::string header = R"({"model":"model hash","scheme":"q4","packing":1,"data":512,)"
                               R"("tensors":[{"name":"t","type":)" +
                               tensor + "}]}";
    folder.write("packed", ByteWriter()
                               .raw("RKPACKED")
                               .put<uint64_t>(header.size())
                               .put(hash64(header))
                               .raw(header)
                               .raw(std::string(4096, '\1'))
                               .bytes());
    const auto file = PackedFile::open(folder.path() + "/packed", kKey);
    return file.ok() ? "it opened" : file.error().message;
  };
  EXPECT_EQ(error(R"("p4","n":1,"k":1,"offset":0,"sums":[1])"), "it opened");
  for (const char* tensor :
       {R"("p4","n":6.2e30,"k":1,"offset":0,"sums":[1])",
        R"("p4","n":1,"k":-1,"offset":0,"sums":[1])",
        R"("p4","n":1,"k":1,"offset":0,"sums":[1e30])",
        R"("p4","n":1,"k":1,"offset":9999,"sums":[1])",
        R"("p4","n":18446744073709551615,"k":1,"offset":0,"sums":[1])",
        R"("p4","n":1,"k":18446744073709551615,"offset":0,"sums":[1])",
        R"("p4","n":1,"k":1,"offset":0,"sums":[])", R"("q4_1","n":1,"k":32,"offset":0,"sums":[1])",
        R"("i32","n":1,"k":1,"offset":0,"sums":[1])", R"("p4","n":0,"k":1,"offset":0,"sums":[])"}) {
    EXPECT_THAT(error(tensor), HasSubstr("the header is not as expected")) << tensor;
  }
}

TEST(PackedFile, SaysWhyItIsOfNoUse) {
  TestFolder folder;
  const std::string path = folder.path() + "/packed";
  const Matrices matrices({{3, 63}});
  EXPECT_FALSE(PackedFile::open(path, kKey).ok());
  ASSERT_TRUE(write(path, matrices).ok());
  const auto why = [&](const PackedKey& key) {
    return PackedFile::open(path, key).error().message;
  };
  EXPECT_THAT(why({"other", "q4", kPackingVersion}),
              HasSubstr("/packed: the weights are those of another model or scheme"));
  EXPECT_THAT(why({"model hash", "q8", kPackingVersion}), HasSubstr("another model or scheme"));
  EXPECT_THAT(why({"model hash", "q4", kPackingVersion + 1}), HasSubstr("another version"));
  folder.write("packed", "RKPACKED");
  EXPECT_THAT(why(kKey), HasSubstr("not a whole file"));
}

// Rows with one that cannot be packed, or at which something happens.
class Special final : public RowSource {
 public:
  Special(const RowSource& rows, int64_t row, std::function<Status()> at)
      : rows_(rows), row_(row), at_(std::move(at)) {}
  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override {
    if (first <= row_ && row_ < first + count) TRY(at_());
    return rows_.rows(first, count, type, out);
  }

 private:
  const RowSource& rows_;
  int64_t row_;
  std::function<Status()> at_;
};

TEST(PackedFile, WhatCannotBePackedLeavesTheOldFile) {
  TestFolder folder;
  const std::string path = folder.path() + "/packed";
  const Matrices matrices({{9000, 300}});
  ASSERT_TRUE(write(path, matrices).ok());
  const std::string before = read_file(path);
  const Special special(*matrices.sources()[0].rows, 8000,
                        [] { return Status(failed("row 8000: holds a NaN")); });
  const PackedSource source{"m0", matrices.sources()[0].packed, &special};
  ThreadPool pool(2);
  const Status written = write_packed_file(path, kKey, {&source, 1}, pool, {});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "tensor 'm0', row 8000: holds a NaN");
  EXPECT_TRUE(read_file(path) == before);
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(PackedFile, SourcesThatChangedOnTheWayLeaveTheOldFile) {
  TestFolder folder;
  const std::string path = folder.path() + "/packed";
  const Matrices matrices({{9, 300}});
  ThreadPool pool(1);
  const auto pack = [&] {
    return write_packed_file(path, kKey, matrices.sources(), pool, {},
                             [] { return Status(failed("the model changed")); });
  };
  ASSERT_FALSE(pack().ok());
  EXPECT_EQ(files_in(folder.path()), 0U);
  ASSERT_TRUE(write(path, matrices).ok());
  EXPECT_EQ(pack().error().message, "the model changed");
  EXPECT_TRUE(open_whole(path, matrices).ok());
  EXPECT_EQ(files_in(folder.path()), 1U);
}

// A child process that is killed halfway.
void pack_and_die(const std::string& path, const Matrices& matrices) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Special special(*matrices.sources()[0].rows, 8000, [] {
      (void)kill(getpid(), SIGKILL);
      return Status();
    });
    const PackedSource source{"m0", matrices.sources()[0].packed, &special};
    ThreadPool pool(1);
    (void)write_packed_file(path, kKey, {&source, 1}, pool, {});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(PackedFile, KilledHalfwayLosesNothingAndIsCleanedUp) {
  TestFolder folder;
  const std::string path = folder.path() + "/packed";
  const Matrices matrices({{9000, 300}});
  const bool named = NewFile::beside(path).path() != path;  // drafts, on this file system
  for (const bool was_there : {false, true}) {
    if (was_there) {
      ASSERT_TRUE(write(path, matrices).ok());
    }
    pack_and_die(path, matrices);
    EXPECT_EQ(files_in(folder.path()), (was_there ? 1U : 0U) + (named ? 1U : 0U));
    EXPECT_EQ(open_whole(path, matrices).ok(), was_there);
    // What it leaves elsewhere, early and late, and what is a user's.
    folder.write(".packed.reckon-draft-0000000000000000", "RKDRAFT\n");
    folder.write(".packed.reckon-draft-1111111111111111", "RKPACKED");
    folder.write("packed.backup", "RKPACKED");
    folder.write("packed.sha256", "mine");
    ASSERT_TRUE(write(path, matrices).ok());
    EXPECT_EQ(files_in(folder.path()), 3U);
    std::filesystem::remove(folder.path() + "/packed.backup");
    std::filesystem::remove(folder.path() + "/packed.sha256");
    const auto file = open_whole(path, matrices);
    ASSERT_TRUE(file.ok()) << file.error().message;
    matrices.expect_in(*file);
  }
}

TEST(PackedFile, TwoProcessesAtOnceAlwaysLeaveAWholeFile) {
  TestFolder folder;
  const std::string path = folder.path() + "/packed";
  const Matrices matrices({{3000, 300}, {40, 65}});
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int round = 0; round < 10; ++round) {
        if (!write(path, matrices, 1).ok()) _exit(1);
        if (!open_whole(path, matrices, 1).ok()) _exit(2);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto file = open_whole(path, matrices);
  ASSERT_TRUE(file.ok()) << file.error().message;
  matrices.expect_in(*file);
  EXPECT_EQ(files_in(folder.path()), 1U);
}

// Packed bytes that were kept are used again as long as the version stays. Where this fails because
// packing changed on purpose, raise kPackingVersion and note the new hash here.
TEST(PackedFile, ThePackingVersionStandsForTheseBytes) {
  ASSERT_EQ(kPackingVersion, 1);
  std::vector<float> row(64 * 50 + 17);
  uint32_t state = 1;
  for (size_t i = 0; i < row.size(); ++i) {
    state = state * 1664525 + 1013904223;
    row[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(state) >> 8),
                        -24 - static_cast<int>(i / 64 % 12));
  }
  const auto hash = [&](DType type) {
    std::string bytes(static_cast<size_t>(row_bytes(type, static_cast<int64_t>(row.size()))), '\0');
    EXPECT_TRUE(quantise_row(type, row.data(), static_cast<int64_t>(row.size()), bytes.data()));
    return hash_hex(bytes);
  };
  EXPECT_EQ(hash(DType::kP4), "3e260b9074628617ba3efa9a897efd1a");
  EXPECT_EQ(hash(DType::kP8), "40a665ca2ad1c759923913dc20cb5153");
}

}  // namespace
}  // namespace reckon::models
