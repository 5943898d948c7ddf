#include "formats/gguf_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::HasSubstr;

struct Shard {
  int number = 0;  // from 0
  int count = 3;
  int tensors = 3;                      // of all shards
  std::vector<std::string> names = {};  // of its own; "t<number>" where empty
  std::string file = {};                // by the convention where empty
  std::string architecture = {};        // beside that of the first
  int layers = 0;                       // likewise, where not 0
};

std::string file_name(int number, int count) {
  return fmt::format("m-{:05}-of-{:05}.gguf", number + 1, count);
}

// Each tensor is F32 [2], filled with the shard's number.
std::string write_shard(const TestFolder& folder, const Shard& shard) {
  GgufWriter writer;
  if (shard.number == 0) {
    writer.string("general.architecture", "llama").string("general.name", "whole");
    writer.scalar<uint32_t>("llama.block_count", GgufType::kUint32, 3);
  } else {
    writer.string("general.name", "part");
  }
  if (!shard.architecture.empty()) writer.string("general.architecture", shard.architecture);
  if (shard.layers > 0) {
    writer.scalar<uint32_t>("llama.block_count", GgufType::kUint32,
                            static_cast<uint32_t>(shard.layers));
  }
  writer.scalar<uint16_t>("split.no", GgufType::kUint16, static_cast<uint16_t>(shard.number));
  writer.scalar<uint16_t>("split.count", GgufType::kUint16, static_cast<uint16_t>(shard.count));
  writer.scalar<int32_t>("split.tensors.count", GgufType::kInt32, shard.tensors);
  const std::string value = ByteWriter().put(static_cast<float>(shard.number)).bytes();
  const std::vector<std::string> own{fmt::format("t{}", shard.number)};
  for (const std::string& name : shard.names.empty() ? own : shard.names) {
    writer.tensor(name, {2}, 0, value + value);
  }
  const std::string& name = shard.file.empty() ? file_name(shard.number, shard.count) : shard.file;
  return folder.write(name, writer.bytes());
}

std::string error_of(const std::string& path) {
  const auto shards = open_gguf_shards(path);
  if (shards.ok()) return "it opened";
  EXPECT_EQ(shards.error().message.find('\n'), std::string::npos);
  return shards.error().message;
}

TEST(GgufShards, AnyShardOpensAll) {
  TestFolder folder;
  for (int i = 0; i < 3; ++i) write_shard(folder, {i});
  std::string hash;
  for (int i = 0; i < 3; ++i) {
    const auto checkpoint = Checkpoint::open(folder.path() + "/" + file_name(i, 3));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->architecture(), "llama");  // the first one's metadata
    EXPECT_EQ(checkpoint->files().size(), 3U);
    ASSERT_EQ(checkpoint->tensors().size(), 3U);
    for (int t = 0; t < 3; ++t) {
      const auto weight = checkpoint->tensor(fmt::format("t{}", t), 1, 2);
      ASSERT_TRUE(weight.ok()) << weight.error().message;
      EXPECT_EQ(static_cast<const float*>(weight->data)[1], static_cast<float>(t));
    }
    if (hash.empty()) hash = checkpoint->content_hash();
    EXPECT_EQ(checkpoint->content_hash(), hash);
  }
  write_shard(folder, {2, 3, 3, {"u"}});
  const auto changed = Checkpoint::open(folder.path() + "/" + file_name(0, 3));
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_NE(changed->content_hash(), hash);
}

TEST(GgufShards, OneShardOfOneIsAFile) {
  TestFolder folder;
  const std::string path = write_shard(folder, {0, 1, 1, {}, "any name.gguf"});
  ASSERT_TRUE(open_gguf_shards(path).ok());
  EXPECT_EQ(open_gguf_shards(path)->size(), 1U);
}

TEST(GgufShards, SaysWhatIsMissingOrContradicts) {
  TestFolder folder;
  const std::string first = write_shard(folder, {0});
  write_shard(folder, {2});
  EXPECT_THAT(error_of(first), HasSubstr("m-00002-of-00003.gguf: shard 2 of 3 of this model is "
                                         "missing"));
  EXPECT_THAT(error_of(folder.path() + "/" + file_name(2, 3)), HasSubstr("shard 2 of 3"));

  write_shard(folder, {1, 3, 4});
  EXPECT_THAT(error_of(first), HasSubstr("is shard 2 of 3 with 4 tensors in all by its metadata: "
                                         "expected shard 2 of 3 with 3"));
  write_shard(folder, {2, 3, 3, {}, file_name(1, 3)});
  EXPECT_THAT(error_of(first), HasSubstr("is shard 3 of 3 with 3 tensors in all by its metadata: "
                                         "expected shard 2"));
  folder.write(file_name(1, 3), GgufWriter().bytes());
  EXPECT_THAT(error_of(first), HasSubstr("metadata key 'split.count' is missing"));
  folder.write(file_name(1, 3), "GGUF");
  EXPECT_THAT(error_of(first), HasSubstr("00002-of-00003.gguf: the file ends"));

  write_shard(folder, {1, 3, 3, {"t0"}});
  EXPECT_THAT(error_of(first), HasSubstr("m-00002-of-00003.gguf: has tensor 't0', and so has "));
  write_shard(folder, {1, 3, 3, {"a", "b"}});
  EXPECT_THAT(error_of(first), HasSubstr("'split.tensors.count' is 3, but the 3 shards have 4"));
}

TEST(GgufShards, MayRepeatTheFirstOnesKeysButNotContradictThem) {
  TestFolder folder;
  const std::string first = write_shard(folder, {0});
  write_shard(folder, {2});
  const auto with = [&](const std::string& architecture, int layers) {
    write_shard(folder, {1, 3, 3, {}, {}, architecture, layers});
    const auto shards = open_gguf_shards(first);
    return shards.ok() ? "opened" : shards.error().message;
  };
  EXPECT_EQ(with("llama", 3), "opened");
  EXPECT_THAT(with("qwen2", 0),
              HasSubstr("m-00002-of-00003.gguf: metadata key 'general.architecture' is another "
                        "than in " +
                        first));
  EXPECT_THAT(with("", 4), HasSubstr("metadata key 'llama.block_count' is another than in"));
}

TEST(GgufShards, HoldsKeysToTheNameAndToReason) {
  TestFolder folder;
  EXPECT_THAT(error_of(write_shard(folder, {0, 3, 3, {}, "renamed.gguf"})),
              HasSubstr("is shard 1 of 3 by its metadata: expected a name that ends in "
                        "-00001-of-00003.gguf"));
  EXPECT_THAT(error_of(write_shard(folder, {3, 3, 3, {}, "x.gguf"})),
              HasSubstr("'split.no' is 3: expected 0 to 2"));
  EXPECT_THAT(error_of(write_shard(folder, {0, 0, 3, {}, "y.gguf"})),
              HasSubstr("'split.count' is 0: expected 1 to 99999"));
}

}  // namespace
}  // namespace reckon
