#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cli/command_testing.h"

namespace reckon::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(CheckOracle, PassesOnEveryRecordedCase) {
  Sandbox sandbox;
  for (const char* name : {"oracle/llama-s0", "oracle/llama-s1", "oracle/qwen3-s0",
                           "oracle/llama-h48-tied", "oracle/llama-h48-untied", "oracle/qwen3-h80",
                           "oracle/qwen3_5-h40", "oracle/qwen3_5_moe-h36", "oracle/qwen3_next-h32",
                           "gguf/tiny-llama-mixed.gguf", "gguf/tiny-qwen35moe.gguf"}) {
    const Finished finished = sandbox.run({"check-oracle", golden_path(name)});
    EXPECT_EQ(finished.code, 0) << name << finished.err;
    ASSERT_FALSE(finished.out.empty()) << name;
    EXPECT_THAT(lines_of(finished.out).back(), StartsWith("pass: largest difference ")) << name;
  }
}

TEST(CheckOracle, PassesInExactNumerics) {
  Sandbox sandbox;
  const Finished finished =
      sandbox.run({"check-oracle", golden_path("oracle/llama-h48-tied"), "--numerics", "exact"});
  EXPECT_EQ(finished.code, 0) << finished.out << finished.err;
  EXPECT_THAT(lines_of(finished.out).back(), StartsWith("pass: largest row ratio "));
}

TEST(CheckOracle, PrintsJsonWithStableKeys) {
  Sandbox sandbox;
  const Finished finished =
      sandbox.run({"check-oracle", golden_path("oracle/llama-h48-tied"), "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json json = finished.json();
  EXPECT_EQ(json["passed"], true);
  EXPECT_EQ(json["numerics"], "reference");
  EXPECT_EQ(json["first_failure"], nullptr);
  EXPECT_EQ(json["tolerance"]["measure"], "absolute");
  for (const char* key :
       {"folder", "backend", "prompts", "logit_rows", "hidden_rows", "greedy_tokens",
        "greedy_equal", "largest_logit_difference", "largest_logit_row_ratio",
        "largest_hidden_difference", "largest_hidden_row_ratio"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

// Adds to one recorded logit: prompt 2, first row, column 5.
void spoil(const std::filesystem::path& path, Sandbox& sandbox) {
  std::string bytes = file_text(path);
  uint64_t header_length = 0;
  std::memcpy(&header_length, bytes.data(), sizeof header_length);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_length));
  const size_t offset =
      8 + header_length + header["p2.logits"]["data_offsets"][0].get<size_t>() + 5 * sizeof(float);
  float logit = 0;
  std::memcpy(&logit, bytes.data() + offset, sizeof logit);
  logit += 0.5F;
  std::memcpy(bytes.data() + offset, &logit, sizeof logit);
  sandbox.write(std::filesystem::relative(path, sandbox.path("")).string(), bytes);
}

TEST(CheckOracle, NamesTheFirstDifferenceAndExitsWith4) {
  Sandbox sandbox;
  std::filesystem::copy(golden_path("oracle/llama-h48-tied"), sandbox.path("case"));
  spoil(sandbox.path("case/oracle.safetensors"), sandbox);
  const Finished text = sandbox.run({"check-oracle", "case"});
  EXPECT_EQ(text.code, 4) << text.err;
  EXPECT_EQ(text.err, "");
  const std::string last = lines_of(text.out).back();
  EXPECT_THAT(last, StartsWith("fail: prompt 2, logits, row "));
  EXPECT_THAT(last, HasSubstr("column 5: got "));

  const Finished json = sandbox.run({"check-oracle", "case", "--json"});
  EXPECT_EQ(json.code, 4);
  const nlohmann::json failure = json.json()["first_failure"];
  EXPECT_EQ(failure["prompt"], 2);
  EXPECT_EQ(failure["column"], 5);
  for (const char* key : {"what", "row", "got", "expected", "text"}) {
    EXPECT_TRUE(failure.contains(key)) << key;
  }
}

TEST(CheckOracle, FailsWhereThereIsNothingToCompareWith) {
  Sandbox sandbox;
  std::filesystem::copy(golden_path("oracle/llama-h48-tied"), sandbox.path("case"));
  std::filesystem::remove(sandbox.path("case/oracle.safetensors"));
  const Finished finished = sandbox.run({"check-oracle", "case"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_EQ(finished.out, "");
  EXPECT_TRUE(finished.one_error_line()) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("oracle.safetensors"));
}

}  // namespace
}  // namespace reckon::cli
