#include "formats/safetensors_set.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/checkpoint.h"
#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::HasSubstr;

constexpr const char* kIndex = "model.safetensors.index.json";

// F32 scalars.
void write_file(const TestFolder& folder, const std::string& file,
                const std::vector<std::string>& tensors) {
  std::string header = "{";
  for (size_t i = 0; i < tensors.size(); ++i) {
    header += fmt::format(R"({}"{}":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", tensors[i], 4 * i, 4 * i + 4);
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string data(4 * tensors.size(), '\1');
  folder.write(file, ByteWriter().text(header).raw(data).bytes());
}

std::string error_of(const TestFolder& folder) {
  const auto set = SafetensorsSet::open(folder.path());
  if (set.ok()) return "it opened";
  EXPECT_EQ(set.error().message.find('\n'), std::string::npos);
  return set.error().message;
}

std::string index_error(std::string_view text) {
  const auto index = parse_safetensors_index("index.json", text);
  if (index.ok()) return "it was read";
  EXPECT_EQ(index.error().message.find('\n'), std::string::npos);
  return index.error().message;
}

TEST(SafetensorsSet, ReadsOneFileOrThoseOfTheIndex) {
  TestFolder folder;
  write_file(folder, "model.safetensors", {"a"});
  ASSERT_EQ(error_of(folder), "it opened");
  EXPECT_EQ(SafetensorsSet::open(folder.path())->index_path(), "");

  folder.write(kIndex, R"({"weight_map":{"a":"model.safetensors"}})");  // some have both
  EXPECT_EQ(error_of(folder), "it opened");

  TestFolder sharded;
  write_file(sharded, "model-00002-of-00002.safetensors", {"b", "c"});
  write_file(sharded, "model-00001-of-00002.safetensors", {"a", "unlisted"});
  sharded.write("config.json", R"({"model_type":"llama"})");
  sharded.write(kIndex, R"({"metadata":{"total_size":16},"weight_map":{
      "c":"model-00002-of-00002.safetensors","b":"model-00002-of-00002.safetensors",
      "a":"model-00001-of-00002.safetensors"}})");
  const auto checkpoint = Checkpoint::open(sharded.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->files().size(), 4U);  // config, index and two files
  EXPECT_EQ(checkpoint->tensors().size(), 4U);
  EXPECT_TRUE(checkpoint->tensor("a", 1, 1).ok());
  EXPECT_TRUE(checkpoint->tensor("c", 1, 1).ok());
}

TEST(SafetensorsSet, SaysWhatDoesNotFit) {
  TestFolder folder;
  EXPECT_THAT(error_of(folder),
              HasSubstr("has neither model.safetensors nor model.safetensors.index"));
  folder.write(kIndex, R"({"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})");
  write_file(folder, "x.safetensors", {"a"});
  EXPECT_THAT(error_of(folder), HasSubstr("y.safetensors: is missing: model.safetensors.index.json "
                                          "lists it, with 1 other files"));
  write_file(folder, "y.safetensors", {"c"});
  EXPECT_THAT(error_of(folder), HasSubstr("index.json: lists tensor 'b' in y.safetensors, which "
                                          "does not have it"));
  write_file(folder, "y.safetensors", {"a", "b"});
  EXPECT_THAT(error_of(folder), HasSubstr("y.safetensors: has tensor 'a', and so has "));
  folder.write("y.safetensors", "short");
  EXPECT_THAT(error_of(folder), HasSubstr("y.safetensors: not a safetensors file"));
  write_file(folder, "y.safetensors", {"b"});
  write_file(folder, "model.safetensors", {"a"});
  EXPECT_THAT(error_of(folder), HasSubstr("model.safetensors: is there, but"));
}

TEST(SafetensorsSet, AnIndexIsCheckedBeforeAnyFileIsOpened) {
  EXPECT_THAT(index_error("{"), HasSubstr("not JSON"));
  EXPECT_THAT(index_error("{}"), HasSubstr("'weight_map' is missing or empty"));
  EXPECT_THAT(index_error(R"({"weight_map":{}})"), HasSubstr("missing or empty"));
  EXPECT_THAT(index_error(R"({"weight_map":["a"]})"), HasSubstr("missing or empty"));
  EXPECT_THAT(index_error(R"({"weight_map":{"a":7}})"), HasSubstr("tensor 'a' is in 7: expected"));
  for (const char* name : {"../x.safetensors", "/etc/x.safetensors", "d/x.safetensors", "", "..",
                           "d\\\\x.safetensors", "x.bin", "x.safetensors\\u0000.safetensors"}) {
    EXPECT_THAT(index_error(fmt::format(R"({{"weight_map":{{"a":"{}"}}}})", name)),
                HasSubstr("expected the name of a .safetensors file in the same folder"))
        << name;
  }
  EXPECT_THAT(index_error(R"({"weight_map":{"a":"x.safetensors","a":"y.safetensors"}})"),
              HasSubstr("the file has 'a' twice"));
  // Equal names in different objects are not the same name.
  EXPECT_EQ(index_error(R"({"metadata":{"a":1},"a":1,"weight_map":{"a":"x.safetensors"}})"),
            "it was read");
}

}  // namespace
}  // namespace reckon
