#include "formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_1 = 3;
constexpr uint32_t kQ4_K = 12;
constexpr uint32_t kIQ2_XXS = 16;

class Gguf : public ::testing::Test {
 protected:
  Result<GgufFile> open(std::string_view bytes) {
    return GgufFile::parse(MappedFile::copy_of(path_, bytes));
  }

  // The error of opening these bytes: one line that starts with the path.
  std::string error_of(std::string_view bytes) {
    const auto file = open(bytes);
    if (file.ok()) return "opened without an error";
    EXPECT_THAT(file.error().message, StartsWith(path_ + ": "));
    EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
    return file.error().message.substr(path_.size() + 2);
  }

  const std::string path_ = "model.gguf";
};

TEST_F(Gguf, ReadsMetadataOfEveryType) {
  GgufWriter writer;
  writer.scalar<uint8_t>("u8", GgufType::kUint8, 200);
  writer.scalar<int8_t>("i8", GgufType::kInt8, -3);
  writer.scalar<uint16_t>("u16", GgufType::kUint16, 65535);
  writer.scalar<int16_t>("i16", GgufType::kInt16, -300);
  writer.scalar<uint32_t>("u32", GgufType::kUint32, 4'000'000'000U);
  writer.scalar<int32_t>("i32", GgufType::kInt32, -70000);
  writer.scalar<uint64_t>("u64", GgufType::kUint64, uint64_t{1} << 40);
  writer.scalar<uint64_t>("huge", GgufType::kUint64, ~uint64_t{0});
  writer.scalar<int64_t>("i64", GgufType::kInt64, -5);
  writer.scalar<float>("f32", GgufType::kFloat32, 0.5F);
  writer.scalar<double>("f64", GgufType::kFloat64, 1e300);
  writer.scalar<float>("nan", GgufType::kFloat32, std::numeric_limits<float>::quiet_NaN());
  writer.scalar<uint8_t>("yes", GgufType::kBool, 1);
  writer.scalar<uint8_t>("maybe", GgufType::kBool, 2);
  writer.string("text", "hello").strings("list", {"a", "", "c"});
  writer.key(
      "numbers", GgufType::kArray,
      ByteWriter().put(GgufType::kInt16).put<uint64_t>(2).put<int16_t>(-1).put<int16_t>(9).bytes());
  const auto file = open(writer.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;

  EXPECT_EQ(file->integer("u8").value(), 200);
  EXPECT_EQ(file->integer("i8").value(), -3);
  EXPECT_EQ(file->integer("u16").value(), 65535);
  EXPECT_EQ(file->integer("i16").value(), -300);
  EXPECT_EQ(file->integer("u32").value(), 4'000'000'000);
  EXPECT_EQ(file->integer("i32").value(), -70000);
  EXPECT_EQ(file->integer("u64").value(), int64_t{1} << 40);
  EXPECT_EQ(file->integer("i64").value(), -5);
  EXPECT_EQ(file->number("f32").value(), 0.5);
  EXPECT_EQ(file->number("f64").value(), 1e300);
  EXPECT_EQ(file->number("i8").value(), -3.0);
  EXPECT_TRUE(file->boolean("yes").value());
  EXPECT_EQ(file->string("text").value(), "hello");
  EXPECT_THAT(file->strings("list").value(), ElementsAre("a", "", "c"));
  EXPECT_THAT(file->integers("numbers").value(), ElementsAre(-1, 9));
  EXPECT_TRUE(file->has("text"));
  EXPECT_FALSE(file->has("other"));
  EXPECT_EQ(file->metadata().size(), 17U);

  EXPECT_THAT(file->integer("other").error().message,
              HasSubstr("metadata key 'other' is missing: expected an integer"));
  EXPECT_THAT(file->integer("text").error().message,
              HasSubstr("metadata key 'text' holds string: expected an integer"));
  EXPECT_THAT(file->integer("huge").error().message,
              HasSubstr("metadata key 'huge' is 18446744073709551615: expected an integer below"));
  EXPECT_THAT(file->number("nan").error().message, HasSubstr("expected a finite number"));
  EXPECT_THAT(file->boolean("maybe").error().message, HasSubstr("is 2: expected 0 or 1"));
  EXPECT_THAT(file->boolean("u8").error().message, HasSubstr("expected a boolean"));
  EXPECT_THAT(file->strings("numbers").error().message,
              HasSubstr("holds an array of 2 int16: expected an array of strings"));
  EXPECT_THAT(file->integers("list").error().message, HasSubstr("an array of 3 string"));
}

TEST_F(Gguf, ReadsTensorsOfBothVersions) {
  for (const uint32_t version : {2U, 3U}) {
    GgufWriter writer;
    writer.version = version;
    writer.tensor("matrix", {64, 3}, kQ4_1, std::string(3 * 40, 'q'));
    writer.tensor("vector", {5}, kF32, std::string(20, 'v'));
    const auto file = open(writer.bytes());
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file->version(), version);
    ASSERT_EQ(file->tensors().size(), 2U);
    const GgufTensor* matrix = file->find("matrix");
    ASSERT_NE(matrix, nullptr);
    EXPECT_EQ(matrix->type, DType::kQ4_1);
    EXPECT_THAT(matrix->shape, ElementsAre(3, 64));
    EXPECT_EQ(matrix->bytes, 120U);
    EXPECT_EQ(static_cast<const char*>(matrix->data)[119], 'q');
    EXPECT_EQ(static_cast<const char*>(file->find("vector")->data)[19], 'v');
    EXPECT_EQ(file->find("other"), nullptr);
  }
}

TEST_F(Gguf, ReadsEveryTypeInCommonUse) {
  const std::vector<std::pair<uint32_t, std::string>> types = {
      {0, "f32"},   {1, "f16"},     {2, "q4_0"},    {3, "q4_1"},  {6, "q5_0"},  {7, "q5_1"},
      {8, "q8_0"},  {10, "q2_k"},   {11, "q3_k"},   {12, "q4_k"}, {13, "q5_k"}, {14, "q6_k"},
      {30, "bf16"}, {20, "iq4_nl"}, {23, "iq4_xs"}, {39, "mxfp4"}};
  GgufWriter writer;
  for (const auto& [number, name] : types) {
    const auto bytes = static_cast<size_t>(2 * row_bytes(*dtype_from_name(name), 512));
    writer.tensor(name, {512, 2}, number, std::string(bytes, name.back()));
  }
  const auto file = open(writer.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors().size(), types.size());
  for (const GgufTensor& tensor : file->tensors()) {
    EXPECT_EQ(dtype_name(tensor.type), tensor.name);
    EXPECT_EQ(static_cast<const char*>(tensor.data)[tensor.bytes - 1], tensor.name.back());
  }
}

TEST_F(Gguf, ViewsSurviveAMove) {
  GgufWriter writer;
  writer.string("text", "hello").tensor("vector", {5}, kF32, std::string(20, 'v'));
  auto opened = open(writer.bytes());
  ASSERT_TRUE(opened.ok());
  const std::string_view text = opened->string("text").value();
  const GgufFile moved = std::move(opened).value();
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(moved.string("text").value(), "hello");
  EXPECT_NE(moved.find("vector"), nullptr);
}

TEST_F(Gguf, NamesWhatIsWrongWithTheHeader) {
  EXPECT_THAT(error_of(""), HasSubstr("not a GGUF file"));
  EXPECT_THAT(error_of("PK\x03\x04 something else"), HasSubstr("not a GGUF file"));
  EXPECT_THAT(error_of("GGUF"), HasSubstr("ends inside the header"));
  GgufWriter old;
  old.version = 1;
  EXPECT_THAT(error_of(old.bytes()), HasSubstr("GGUF version 1: expected 2 or 3"));
  GgufWriter swapped;
  swapped.version = 0x03000000;
  EXPECT_THAT(error_of(swapped.bytes()), HasSubstr("big-endian"));
  GgufWriter keys;
  keys.extra_keys = ~uint64_t{0} / 2;
  EXPECT_THAT(error_of(keys.bytes()), HasSubstr("metadata keys, more than"));
  GgufWriter tensors;
  tensors.extra_tensors = uint64_t{1} << 60;
  EXPECT_THAT(error_of(tensors.bytes()), HasSubstr("tensors, more than"));
}

TEST_F(Gguf, NamesWhatIsWrongWithMetadata) {
  const auto array = [](GgufType element, uint64_t count, std::string_view rest) {
    return GgufWriter()
        .key("list", GgufType::kArray, ByteWriter().put(element).put(count).raw(rest).bytes())
        .bytes();
  };
  EXPECT_THAT(error_of(array(GgufType::kUint32, uint64_t{1} << 61, "abcd")),
              HasSubstr("'list' claims 2305843009213693952 elements"));
  EXPECT_THAT(error_of(array(GgufType::kString, uint64_t{1} << 61, "abcd")),
              HasSubstr("'list' claims"));
  EXPECT_THAT(error_of(array(static_cast<GgufType>(77), 1, "abcd")),
              HasSubstr("'list' is an array of the unknown type 77"));
  EXPECT_THAT(error_of(GgufWriter()
                           .key("text", GgufType::kString, ByteWriter().put(~uint64_t{0}).bytes())
                           .bytes()),
              HasSubstr("ends inside metadata key 'text'"));
  EXPECT_THAT(error_of(GgufWriter().key("odd", static_cast<GgufType>(13), "12345678").bytes()),
              HasSubstr("'odd' has the unknown type 13"));
  EXPECT_THAT(error_of(GgufWriter().string("a", "1").string("a", "2").bytes()),
              HasSubstr("metadata key 'a' occurs twice"));
  EXPECT_THAT(error_of(GgufWriter().string("", "1").bytes()), HasSubstr("key 1 has no name"));
  EXPECT_THAT(error_of(GgufWriter().key("bad\n\x01", static_cast<GgufType>(99), "1234").bytes()),
              HasSubstr("'bad\\x0a\\x01' has the unknown type"));
  for (const uint32_t alignment : {0U, 4U, 24U, 1U << 20}) {
    EXPECT_THAT(
        error_of(GgufWriter().scalar("general.alignment", GgufType::kUint32, alignment).bytes()),
        HasSubstr("'general.alignment' is " + std::to_string(alignment)));
  }
}

TEST_F(Gguf, ArraysNestOnlySoDeep) {
  const auto nested = [](int depth) {
    ByteWriter value;
    for (int i = 1; i < depth; ++i) value.put(GgufType::kArray).put<uint64_t>(1);
    value.put(GgufType::kUint8).put<uint64_t>(1).put<uint8_t>(7);
    return GgufWriter().key("deep", GgufType::kArray, value.bytes()).bytes();
  };
  EXPECT_TRUE(open(nested(4)).ok());
  EXPECT_THAT(error_of(nested(5)), HasSubstr("'deep' nests arrays deeper than 4"));
  EXPECT_THAT(error_of(nested(100000)), HasSubstr("'deep' nests arrays deeper than 4"));
}

TEST_F(Gguf, NoByteBelongsToTwoTensors) {
  const std::string data(64, 'x');
  EXPECT_TRUE(open(GgufWriter()
                       .tensor_at("a", {8}, kF32, 64, data)
                       .tensor_at("b", {8}, kF32, 0, data)
                       .bytes())
                  .ok());
  EXPECT_THAT(error_of(GgufWriter()
                           .tensor_at("a", {9}, kF32, 0, data)
                           .tensor_at("b", {8}, kF32, 32, data)
                           .bytes()),
              HasSubstr("tensors 'a' and 'b' overlap"));
  EXPECT_THAT(error_of(GgufWriter()
                           .tensor_at("a", {8}, kF32, 0, data)
                           .tensor_at("b", {8}, kF32, 0, data)
                           .bytes()),
              HasSubstr("overlap: expected each byte in one tensor"));
}

TEST_F(Gguf, NamesWhatIsWrongWithATensor) {
  const auto tensor = [](const std::vector<uint64_t>& shape, uint32_t type, uint64_t offset) {
    return GgufWriter().tensor_at("w", shape, type, offset, std::string(64, 'x')).bytes();
  };
  EXPECT_THAT(error_of(tensor({256}, kIQ2_XXS, 0)),
              HasSubstr("tensor 'w' has the element type IQ2_XXS, which is not supported: expected "
                        "one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K"));
  EXPECT_THAT(error_of(tensor({32}, 999, 0)), HasSubstr("element type type 999"));
  EXPECT_THAT(error_of(tensor({33}, kQ4_1, 0)), HasSubstr("rows of 33 elements: Q4_1 needs"));
  EXPECT_THAT(error_of(tensor({128}, kQ4_K, 0)),
              HasSubstr("rows of 128 elements: Q4_K needs a multiple of 256"));
  EXPECT_THAT(error_of(tensor({}, kF32, 0)), HasSubstr("has 0 dimensions: expected 1 to 4"));
  EXPECT_THAT(error_of(tensor({1, 1, 1, 1, 1}, kF32, 0)), HasSubstr("has 5 dimensions"));
  EXPECT_THAT(error_of(tensor({4, 0}, kF32, 0)), HasSubstr("impossible dimension 0"));
  EXPECT_THAT(error_of(tensor({uint64_t{1} << 63}, kF32, 0)), HasSubstr("impossible dimension"));
  EXPECT_THAT(error_of(tensor({uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0)),
              HasSubstr("impossible dimension 4294967296 (number 2 of 2)"));
  EXPECT_THAT(error_of(tensor({16}, kF32, 8)), HasSubstr("data offset 8: expected a multiple"));
  EXPECT_THAT(error_of(tensor({17}, kF32, 0)), HasSubstr("tensor 'w' (68 bytes at data offset 0) "
                                                         "ends behind the file's"));
  EXPECT_THAT(error_of(tensor({16}, kF32, ~uint64_t{31})), HasSubstr("ends behind the file's"));
  GgufWriter twice;
  twice.tensor("w", {1}, kF32, "abcd").tensor("w", {1}, kF32, "abcd");
  EXPECT_THAT(error_of(twice.bytes()), HasSubstr("tensor 'w' occurs twice"));
  EXPECT_THAT(error_of(GgufWriter().tensor("", {1}, kF32, "abcd").bytes()),
              HasSubstr("tensor 1 has no name"));
}

TEST_F(Gguf, AWiderAlignmentIsHonoured) {
  GgufWriter writer;
  writer.alignment = 4096;
  writer.scalar<uint32_t>("general.alignment", GgufType::kUint32, 4096);
  writer.tensor("a", {1}, kF32, "aaaa").tensor("b", {1}, kF32, "bbbb");
  const auto file = open(writer.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(static_cast<const char*>(file->find("b")->data)[0], 'b');
}

// Cut anywhere, the file is an error; cut behind the tensor table, it names a tensor.
TEST_F(Gguf, ATruncatedFileIsAnErrorAtEveryKilobyte) {
  const std::string whole = read_file(golden_path("gguf/tiny-llama-mixed.gguf"));
  ASSERT_GT(whole.size(), 100000U);
  ASSERT_TRUE(open(whole).ok());
  const std::string_view view = whole;
  for (size_t size = 0; size < whole.size(); size += 1024) {
    EXPECT_THAT(error_of(view.substr(0, size)),
                ::testing::AnyOf(HasSubstr("truncated"), HasSubstr("not a GGUF file"),
                                 HasSubstr("more than")))
        << size;
  }
  EXPECT_THAT(error_of(view.substr(0, whole.size() - 1024)), HasSubstr("tensor '"));
}

// Damage in the header either goes unnoticed (a value changed) or is a clean error.
TEST_F(Gguf, ADamagedHeaderNeverCrashes) {
  const std::string whole = read_file(golden_path("gguf/tiny-llama-mixed.gguf"));
  const auto sound = open(whole);
  ASSERT_TRUE(sound.ok());
  const auto* first = static_cast<const char*>(sound->tensors()[0].data);
  const auto header = static_cast<size_t>(first - sound->bytes().data());
  ASSERT_GT(header, 1000U);
  std::mt19937 random(11);
  int opened = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    std::string damaged = whole;
    const auto flips = 1 + random() % 4;
    for (unsigned i = 0; i < flips; ++i) {
      // Half of the damage goes into the first bytes, where the counts are.
      const size_t range = random() % 2 == 0 ? 64 : header;
      damaged[random() % range] = static_cast<char>(random());
    }
    const auto file = open(damaged);
    if (!file.ok()) {
      EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
      continue;
    }
    ++opened;
    for (const GgufTensor& tensor : file->tensors()) {
      const auto* end = static_cast<const char*>(tensor.data) + tensor.bytes;
      ASSERT_LE(end, file->bytes().data() + file->bytes().size());
    }
    for (const auto& [key, value] : file->metadata()) {
      (void)file->strings(key);
      (void)file->integers(key);
      (void)file->number(key);
      (void)file->boolean(key);
    }
  }
  EXPECT_LT(opened, kRounds);
}

TEST_F(Gguf, MissingFilesAndFoldersAreErrors) {
  const TestFolder folder;
  EXPECT_THAT(GgufFile::open(folder.path() + "/none.gguf").error().message,
              HasSubstr("none.gguf: cannot open: No such file"));
  EXPECT_THAT(GgufFile::open(folder.path()).error().message, HasSubstr("expected a regular file"));
}

// A key of any bytes, asked for by whoever lists the keys, stays one line of ASCII.
TEST(GgufErrors, ShowKeysAsText) {
  GgufWriter writer;
  writer.string("a\n\x84", "text");
  const auto gguf = GgufFile::parse(MappedFile::copy_of("memory", writer.bytes()));
  ASSERT_TRUE(gguf.ok()) << gguf.error().message;
  EXPECT_EQ(gguf->integer("a\n\x84").error().message,
            "memory: metadata key 'a\\x0a\\x84' holds string: expected an integer");
}

}  // namespace
}  // namespace reckon
