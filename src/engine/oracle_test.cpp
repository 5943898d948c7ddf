#include "engine/oracle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/test_sessions.h"
#include "formats/safetensors.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;

OracleReport check(const std::string& path, const Assignments& assignments) {
  const auto model = open_model(path);
  if (model == nullptr) return {};
  const auto report = check_oracle(*model, {switches_of(assignments), {}, std::nullopt});
  if (!report.ok()) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return *report;
}

void expect_agreement(const std::string& name, const Assignments& assignments) {
  const OracleReport report = check(golden_path(name), assignments);
  EXPECT_TRUE(report.passed) << name << ": "
                             << (report.first_failure ? mismatch_text(*report.first_failure) : "");
  EXPECT_GT(report.prompts, 0);
  EXPECT_GT(report.logit_rows, 0);
  EXPECT_GT(report.hidden_rows, 0);
  EXPECT_GT(report.greedy_tokens, 0);
  fmt::print("{} {}: logits {:.1e} absolute, {:.1e} by row; hidden {:.1e}, {:.1e}; greedy {}/{}\n",
             name, fmt::join(assignments, " "), report.largest_logit_difference,
             report.largest_logit_row_ratio, report.largest_hidden_difference,
             report.largest_hidden_row_ratio, report.greedy_equal, report.greedy_tokens);
}

class Oracle : public ::testing::TestWithParam<std::string> {};

TEST_P(Oracle, AgreesInReferenceNumerics) {
  expect_agreement(GetParam(), {"numerics=reference"});
}

TEST_P(Oracle, AgreesInExactNumerics) {
  for (const char* isa : {"cpu.isa=scalar", "cpu.isa=auto"}) {
    expect_agreement(GetParam(), {"prefill.numerics=exact", isa});
  }
}

TEST_P(Oracle, AgreesWithTheDefaults) {
  for (const char* isa : {"cpu.isa=scalar", "cpu.isa=auto"}) {
    expect_agreement(GetParam(), {isa});
    expect_agreement(GetParam(), {isa, "prefill.chunk=7"});
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Oracle, ::testing::ValuesIn(oracle_models()), test_name);

TEST(OracleReports, PackedWeightsAreComparedWithTheirOwnReference) {
  for (const char* path : {"oracle/llama-h48-untied", "gguf/tiny-qwen3.gguf"}) {
    for (const char* scheme : {"q4", "q8"}) {
      ModelOptions options;
      options.quant = *models::QuantScheme::parse(scheme);
      const auto model = open_model(golden_path(path), options);
      ASSERT_NE(model, nullptr);
      for (const Assignments& assignments :
           {Assignments{"prefill.numerics=exact"}, Assignments{}}) {
        const auto report =
            check_oracle(*model, {switches_of(assignments), {}, std::nullopt}, model.get());
        ASSERT_TRUE(report.ok()) << report.error().message;
        EXPECT_TRUE(report->passed)
            << path << " " << scheme << ": "
            << (report->first_failure ? mismatch_text(*report->first_failure) : "");
        EXPECT_GT(report->logit_rows, 0);
        EXPECT_GT(report->greedy_tokens, 0);
        EXPECT_GT(report->largest_logit_row_ratio, 0);  // not compared with themselves
      }
    }
  }
}

// Folders of families with routed experts.
const std::vector<std::string> kRouted = {"oracle/qwen3_5_moe-s0", "oracle/qwen3_5_moe-h36",
                                          "oracle/qwen3_next-s0", "oracle/qwen3_next-h32"};

TEST(OracleSelections, AreCountedWhereTheyAreNotTheReferences) {
  for (const std::string& name : kRouted) {
    EXPECT_EQ(check(golden_path(name), {"numerics=reference"}).selections, 0);
    const OracleReport exact = check(golden_path(name), {"prefill.numerics=exact"});
    EXPECT_TRUE(exact.passed) << name;
    EXPECT_GT(exact.selections, 0) << name;
    EXPECT_EQ(exact.selection_flips, 0) << name;
  }
  EXPECT_EQ(check(golden_path("oracle/qwen3-h80"), {}).selections, 0);  // there are none
}

// Experts of packed weights by their fast kernels, where there is AMX, and by the exact ones: rows
// keep the bound of bfloat16 once no near-tie of a router is in the way.
TEST(OracleSelections, FastExpertsKeepTheirToleranceWithThemForced) {
  const bool amx = kernels::detect_cpu().best_isa >= kernels::Isa::kAmx;
  const char* experts = amx ? "prefill.expert_matmul=fast_rows_amx" : "prefill.expert_matmul=auto";
  for (const std::string& name : kRouted) {
    for (const char* scheme : {"q4", "q8"}) {
      ModelOptions options;
      options.quant = *models::QuantScheme::parse(scheme);
      options.build.draft_head = true;
      const auto model = open_model(golden_path(name), options);
      ASSERT_NE(model, nullptr);
      for (const Assignments& assignments :
           {Assignments{experts}, Assignments{experts, "prefill.chunk=7"},
            Assignments{"prefill.numerics=exact"}}) {
        const auto report =
            check_oracle(*model, {switches_of(assignments), {}, std::nullopt}, model.get());
        ASSERT_TRUE(report.ok()) << report.error().message;
        EXPECT_TRUE(report->passed)
            << name << " " << scheme << " " << assignments[0] << ": "
            << (report->first_failure ? mismatch_text(*report->first_failure) : "");
        EXPECT_EQ(report->tolerance.limit, 2e-2);
        EXPECT_GT(report->selections, 0);
        fmt::print("{} {} {}: logits {:.1e} by row, hidden {:.1e}; {} of {} selections flip\n",
                   name, scheme, fmt::join(assignments, " "), report->largest_logit_row_ratio,
                   report->largest_hidden_row_ratio, report->selection_flips, report->selections);
      }
    }
  }
}

TEST(OracleReports, EveryRecordedNumberIsCompared) {
  const OracleReport report = check(golden_path("oracle/llama-s0"), {"numerics=reference"});
  EXPECT_EQ(report.prompts, 6);
  EXPECT_EQ(report.logit_rows, 1 + 2 + 17 + 48 + 64 + 64);
  EXPECT_EQ(report.hidden_rows, 4 * 48);
  EXPECT_EQ(report.greedy_tokens, 6 * 24);
  EXPECT_EQ(report.greedy_equal, 6 * 24);
}

// A copy of a case whose oracle a test damages.
class CopiedCase {
 public:
  CopiedCase() {
    for (const char* name :
         {"config.json", "model.safetensors", "oracle.safetensors", "oracle.json"}) {
      folder_.write(name, read_file(golden_path(std::string("oracle/qwen3-h80/") + name)));
    }
  }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }

  // Overwrites one value of a tensor of the oracle.
  template <typename T>
  void change(const std::string& tensor, size_t index, T value) {
    std::string bytes = read_file(path() + "/oracle.safetensors");
    auto file = SafetensorsFile::open(path() + "/oracle.safetensors");
    ASSERT_TRUE(file.ok());
    const auto offset =
        static_cast<size_t>(file->find(tensor)->bytes.data() - file->bytes().data());
    std::memcpy(bytes.data() + offset + index * sizeof(T), &value, sizeof(T));
    folder_.write("oracle.safetensors", bytes);
  }
  void write(const std::string& name, const std::string& text) { folder_.write(name, text); }

  [[nodiscard]] std::string error() const {
    const auto model = open_model(path());
    const auto report = check_oracle(*model, {switches_of({}), {}, std::nullopt});
    return report.ok() ? "" : report.error().message;
  }

 private:
  TestFolder folder_;
};

constexpr int64_t kVocabulary = 203;  // of qwen3-h80
constexpr int64_t kHidden = 80;

TEST(OracleReports, ACorruptedLogitIsNamed) {
  for (const float value : {1000.0F, std::numeric_limits<float>::quiet_NaN()}) {
    CopiedCase copy;
    // Prompt 4 has 131 tokens; its recorded rows are the last 64.
    copy.change("p4.logits", 5 * kVocabulary + 17, value);
    const OracleReport report = check(copy.path(), {"numerics=reference"});
    EXPECT_FALSE(report.passed);
    ASSERT_TRUE(report.first_failure.has_value());
    EXPECT_EQ(report.first_failure->what, "logits");
    EXPECT_EQ(report.first_failure->prompt, 4);
    EXPECT_EQ(report.first_failure->row, 131 - 64 + 5);
    EXPECT_EQ(report.first_failure->column, 17);
    EXPECT_THAT(mismatch_text(*report.first_failure),
                HasSubstr("prompt 4, logits, row 72, column 17: got"));
    EXPECT_EQ(report.prompts, 6);  // the rest is checked all the same
  }
}

TEST(OracleReports, ASmallDifferenceFailsInEitherMeasure) {
  const auto model = open_model(golden_path("oracle/qwen3-h80"));
  const auto prompts = read_oracle_case(model->checkpoint(), model->model().info());
  ASSERT_TRUE(prompts.ok());
  const float recorded = (*prompts)[2].logits[3];
  CopiedCase copy;
  copy.change("p2.logits", 3, recorded + 0.01F);
  EXPECT_FALSE(check(copy.path(), {"numerics=reference"}).passed);
  EXPECT_FALSE(check(copy.path(), {"prefill.numerics=exact"}).passed);
}

TEST(OracleReports, ACorruptedHiddenStateIsNamed) {
  CopiedCase copy;
  copy.change("p3.hidden.1", 9 * kHidden + 2, 50.0F);
  const OracleReport report = check(copy.path(), {"prefill.numerics=exact"});
  ASSERT_TRUE(report.first_failure.has_value());
  EXPECT_EQ(mismatch_text(*report.first_failure).substr(0, 36),
            "prompt 3, hidden 1, row 9, column 2:");
  EXPECT_EQ(report.first_failure->expected, 50.0);
}

TEST(OracleReports, AWrongGreedyTokenIsNamed) {
  CopiedCase copy;
  copy.change("p5.greedy", 4, int32_t{202});
  const OracleReport report = check(copy.path(), {"numerics=reference"});
  ASSERT_TRUE(report.first_failure.has_value());
  EXPECT_EQ(report.first_failure->what, "greedy token");
  EXPECT_EQ(report.first_failure->prompt, 5);
  EXPECT_EQ(report.first_failure->row, 4);
  EXPECT_EQ(report.first_failure->expected, 202);
}

TEST(OracleReports, ANarrowMarginExcusesADifferentToken) {
  CopiedCase copy;
  copy.change("p0.greedy", 3, int32_t{202});
  nlohmann::json document =
      nlohmann::json::parse(read_file(copy.path() + "/oracle.json"), nullptr, false);
  document["prompts"][0]["min_top2_margin"] = 5e-4;
  copy.write("oracle.json", document.dump());
  const OracleReport report = check(copy.path(), {"numerics=reference"});
  EXPECT_TRUE(report.passed);
  EXPECT_EQ(report.greedy_tokens, 6 * 24 - 20);
  EXPECT_EQ(report.greedy_equal, 6 * 24 - 21);
}

TEST(OracleReports, FilesThatDoNotMatchAreErrors) {
  {
    CopiedCase copy;
    std::filesystem::remove(copy.path() + "/oracle.safetensors");
    EXPECT_THAT(copy.error(), HasSubstr("oracle.safetensors"));
  }
  {
    CopiedCase copy;
    std::filesystem::remove(copy.path() + "/oracle.json");
    EXPECT_THAT(copy.error(), HasSubstr("oracle.json"));
  }
  {
    CopiedCase copy;
    copy.write("oracle.json", "{\"prompts\": [{}]}");
    EXPECT_THAT(copy.error(), HasSubstr("min_top2_margin"));
  }
  {
    CopiedCase copy;
    copy.write("oracle.json", "[1, 2");
    EXPECT_THAT(copy.error(), HasSubstr("oracle.json: the file is not JSON (at byte 6)"));
    copy.write("oracle.json", "{}");
    EXPECT_THAT(copy.error(), HasSubstr("oracle.json: expected an array 'prompts'"));
  }
  {
    CopiedCase copy;  // not waited for
    std::filesystem::remove(copy.path() + "/oracle.json");
    ASSERT_EQ(::mkfifo((copy.path() + "/oracle.json").c_str(), 0600), 0);
    EXPECT_THAT(copy.error(), HasSubstr("oracle.json: expected a regular file"));
  }
  {
    CopiedCase copy;  // the case of a model with another vocabulary
    copy.write("oracle.safetensors", read_file(golden_path("oracle/llama-s0/oracle.safetensors")));
    EXPECT_THAT(copy.error(), HasSubstr("p0.logits"));
  }
  {
    CopiedCase copy;
    copy.change("p1.tokens", 0, int32_t{203});
    EXPECT_THAT(copy.error(), HasSubstr("token 203"));
  }
}

}  // namespace
}  // namespace reckon::engine
