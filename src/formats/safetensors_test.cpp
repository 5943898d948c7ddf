#include "formats/safetensors.h"

#include <fmt/format.h>
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

class Safetensors : public ::testing::Test {
 protected:
  Result<SafetensorsFile> open(std::string_view bytes) {
    return SafetensorsFile::parse(MappedFile::copy_of(path_, bytes));
  }
  Result<SafetensorsFile> open(std::string_view header, std::string_view data) {
    return open(ByteWriter().text(header).raw(data).bytes());
  }
  std::string error_of(std::string_view header, std::string_view data = "") {
    const auto file = open(header, data);
    if (file.ok()) return "opened without an error";
    EXPECT_THAT(file.error().message, StartsWith(path_ + ": "));
    EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
    return file.error().message;
  }
  // One tensor "w" with this entry, and eight data bytes.
  std::string entry_error(std::string_view entry) {
    return error_of("{\"w\":" + std::string(entry) + "}", "12345678");
  }

  const std::string path_ = "model.safetensors";
};

TEST_F(Safetensors, ReadsTensorsByName) {
  const float floats[2] = {1.5F, -2.0F};
  const int32_t integers[1] = {7};
  ByteWriter data;
  data.put(floats[0]).put(floats[1]).put(integers[0]).raw("u").raw("12");
  const auto file = open(
      R"({"__metadata__":{"format":"pt"},
          "f":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},
          "i":{"dtype":"I32","shape":[],"data_offsets":[8,12]},
          "u":{"dtype":"U8","shape":[1],"data_offsets":[12,13]},
          "x":{"dtype":"F6_E9","shape":[3],"data_offsets":[13,15]},
          "e":{"dtype":"BF16","shape":[0,4],"data_offsets":[15,15]}})",
      data.bytes());
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 5U);
  EXPECT_EQ(file->tensors()[0].name, "e");  // sorted
  EXPECT_THAT(file->floats("f").value(), ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(file->integers("i").value(), ElementsAre(7));
  EXPECT_EQ(file->raw_bytes("u").value(), "u");
  EXPECT_THAT(file->find("f")->shape, ElementsAre(2, 1));
  EXPECT_EQ(file->find("f")->type, DType::kF32);
  EXPECT_FALSE(file->find("x")->type.has_value());
  EXPECT_EQ(file->find("none"), nullptr);

  EXPECT_THAT(file->floats("x").error().message,
              HasSubstr("tensor 'x' has the element type F6_E9: expected F32"));
  EXPECT_THAT(file->floats("none").error().message, HasSubstr("tensor 'none' is missing"));
  EXPECT_THAT(file->integers("f").error().message, HasSubstr("expected I32"));
}

TEST_F(Safetensors, NamesWhatIsWrongWithTheHeader) {
  EXPECT_THAT(open("1234567").error().message, HasSubstr("it has only 7 bytes"));
  EXPECT_THAT(open(ByteWriter().put(~uint64_t{0}).bytes()).error().message,
              HasSubstr("the header claims 18446744073709551615 bytes"));
  EXPECT_THAT(open(ByteWriter().put<uint64_t>(3).raw("{}").bytes()).error().message,
              HasSubstr("the header claims 3 bytes, but 2 follow"));
  EXPECT_THAT(error_of("{"), HasSubstr("the header is not JSON (at byte"));
  EXPECT_THAT(error_of("{\"a\xff\":1}"), HasSubstr("the header is not JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(std::string(100000, '[')), HasSubstr("nests deeper than 64"));
  EXPECT_THAT(error_of(std::string(60, '[')), HasSubstr("the header is not JSON (at byte 61)"));
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_THAT(error_of("{\"a\":" + deep + "}"), HasSubstr("the header nests deeper than 64"));
  EXPECT_THAT(error_of("{\"a\":{},\"a\":{}}"), HasSubstr("the header has 'a' twice"));
  EXPECT_THAT(error_of("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}"),
              HasSubstr("the header has 'dtype' twice"));
  EXPECT_THAT(error_of(std::string("{}\0{", 4)), HasSubstr("the header is not JSON (at byte 3)"));
  EXPECT_THAT(error_of("{\"a\":1e400}"), HasSubstr("the header is not usable JSON"));
}

// In time that grows with their number, not with its square, which would take minutes.
TEST_F(Safetensors, ReadsManyTensors) {
  constexpr int kTensors = 100'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i) {
    header += fmt::format("{}\"t{}\":{{\"dtype\":\"T{}\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                          i == 0 ? "" : ",", i, i);
  }
  const auto file = open(header + "}", "");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors().size(), static_cast<size_t>(kTensors));
}

TEST_F(Safetensors, NamesWhatIsWrongWithATensor) {
  EXPECT_THAT(entry_error("3"), HasSubstr("tensor 'w': expected a JSON object"));
  EXPECT_THAT(entry_error("{}"), HasSubstr("expected a string 'dtype'"));
  EXPECT_THAT(entry_error(R"({"dtype":"F32"})"), HasSubstr("expected an array 'shape'"));
  EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1]})"),
              HasSubstr("at most 8 dimensions"));
  for (const char* dimension : {"-1", "1.0", "\"1\"", "18446744073709551615", "1e30"}) {
    EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[)" + std::string(dimension) +
                            R"(],"data_offsets":[0,4]})"),
                HasSubstr("expected dimensions that are integers of 0 or more"));
  }
  EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[4294967296,4294967296],
                              "data_offsets":[0,8]})"),
              HasSubstr("its shape overflows"));
  EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[2]})"), HasSubstr("'data_offsets'"));
  EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"),
              HasSubstr("begin <= end"));
  EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})"),
              HasSubstr("ends at byte 12 of 8 data bytes: truncated?"));
  EXPECT_THAT(entry_error(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
              HasSubstr("has 8 data bytes: its shape and type F32 need 12"));
}

TEST_F(Safetensors, EachByteBelongsToOneTensor) {
  const auto two = [&](std::string_view a, std::string_view b) {
    return error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(a) +
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(b) +
                        "}}",
                    "12345678");
  };
  EXPECT_EQ(two("[4,8]", "[0,4]"), "opened without an error");
  EXPECT_THAT(two("[0,4]", "[0,4]"),
              HasSubstr("tensor 'b' has the data bytes [0, 4], of which tensor 'a' has some, too"));
  EXPECT_THAT(two("[3,7]", "[0,4]"),
              HasSubstr("tensor 'a' has the data bytes [3, 7], of which tensor 'b' has some, too"));
  const auto one = [&](std::string_view at) {
    return error_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(at) + "}}",
                    "12345678");
  };
  EXPECT_THAT(one("[0,4]"), HasSubstr("4 bytes behind tensor 'a' belong to no tensor"));
  EXPECT_THAT(one("[4,8]"),
              HasSubstr("4 data bytes between the header and tensor 'a' belong to no tensor"));
  EXPECT_THAT(error_of("{}", "1"), HasSubstr("1 bytes behind the header belong to no tensor"));
}

TEST_F(Safetensors, DamageNeverCrashes) {
  const std::string whole = read_file(golden_path("oracle/llama-s0/model.safetensors"));
  ASSERT_GT(whole.size(), 4096U);
  for (size_t size = 0; size < whole.size(); size += 4096) {
    EXPECT_FALSE(open(std::string_view(whole).substr(0, size)).ok()) << size;
  }
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = whole;
    const size_t range = random() % 4 == 0 ? 8 : 3100;  // the header
    damaged[random() % range] = static_cast<char>(random());
    const auto file = open(damaged);
    if (!file.ok()) {
      EXPECT_THAT(file.error().message, Not(HasSubstr("\n")));
    }
  }
}

}  // namespace
}  // namespace reckon
