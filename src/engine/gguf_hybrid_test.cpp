// The GGUF form of a hybrid computes what its folder does, the head that drafts too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/oracle.h"
#include "engine/test_sessions.h"
#include "models/test_hybrid_gguf.h"

namespace reckon::engine {
namespace {

using models::HybridGguf;

// Written with the recorded results of its folder beside it.
std::string write_case(const HybridGguf& gguf, const std::string& name, const TestFolder& folder) {
  for (const char* file : {"oracle.json", "oracle.safetensors"}) {
    folder.write(std::string("form.") + file, read_file(golden_path(name + "/" + file)));
  }
  return folder.write("form.gguf", gguf.bytes());
}

// Of those that a file without a list of layers may be of: every fourth attends.
bool attends_by_default(const std::string& name) {
  return name.find("-s") != std::string::npos;
}

// Those of which a GGUF file says all: none says that experts' weights are not divided by their
// sum.
std::vector<std::string> gguf_folders() {
  std::vector<std::string> folders = hybrid_folders();
  std::erase(folders, "oracle/qwen3_next-h32");
  return folders;
}

ModelOptions with_head() {
  ModelOptions options;
  options.build.draft_head = true;
  return options;
}

void expect_agreement(const LoadedModel& model, const Assignments& assignments) {
  const auto report = check_oracle(model, {switches_of(assignments), {}, std::nullopt});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->passed) << (report->first_failure ? mismatch_text(*report->first_failure)
                                                        : "");
  EXPECT_EQ(report->greedy_equal, report->greedy_tokens);
  EXPECT_EQ(report->draft_rows, 47 + 3);
  EXPECT_EQ(report->drafts_equal, 3);
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

class GgufHybrid : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufHybrid, ComputesWhatTheFolderDoes) {
  const TestFolder folder;
  const auto gguf = open_model(write_case(HybridGguf(GetParam()), GetParam(), folder), with_head());
  const auto model = open_model(golden_path(GetParam()), with_head());
  ASSERT_TRUE(gguf != nullptr && model != nullptr);
  EXPECT_TRUE(gguf->model().info().has_draft_head);
  EXPECT_EQ(gguf->model().info().family, model->model().info().family);
  for (const char* numerics : {"numerics=reference", "prefill.numerics=exact"}) {
    expect_agreement(*gguf, {numerics});
  }
  const std::vector<int32_t> tokens = longest_prompt(*model);
  const Assignments reference = {"numerics=reference"};
  EXPECT_LT(largest_difference(prefill_rows(*gguf, reference, tokens),
                               prefill_rows(*model, reference, tokens)),
            1e-3F);
}

// Its key heads lie in another order (kernels::KeyHeadOrder).
TEST_P(GgufHybrid, ComputesTheSameOnAGpu) {
  const auto gpu = kernels::open_backend("cuda");
  if (!gpu.ok()) GTEST_SKIP() << gpu.error().message;
  ModelOptions options = with_head();
  options.backend = *gpu;
  const TestFolder folder;
  const auto gguf = open_model(write_case(HybridGguf(GetParam()), GetParam(), folder), options);
  ASSERT_NE(gguf, nullptr);
  for (const char* numerics : {"numerics=reference", "prefill.numerics=exact"}) {
    expect_agreement(*gguf, {numerics});
  }
}

// Each expert's gate and up in one tensor.
void fuse_experts(HybridGguf& form) {
  for (const auto& [name, gate] : std::map(form.tensors)) {
    if (!name.ends_with("ffn_gate_exps.weight")) continue;
    const std::string at = name.substr(0, name.find("ffn_"));
    const HybridGguf::Tensor up = form.tensors.at(at + "ffn_up_exps.weight");
    HybridGguf::Tensor& both = form.tensors[at + "ffn_gate_up_exps.weight"];
    both.shape = {gate.shape[0], 2 * gate.shape[1], gate.shape[2]};
    const int64_t each = gate.shape[1] * gate.shape[2];
    for (int64_t e = 0; e < gate.shape[0]; ++e) {
      for (const HybridGguf::Tensor* half : {&gate, &up}) {
        const auto begin = half->values.begin() + e * each;
        both.values.insert(both.values.end(), begin, begin + each);
      }
    }
    form.tensors.erase(name);
    form.tensors.erase(at + "ffn_up_exps.weight");
  }
}

// q, k, v and z key head by key head, as the folder has them.
void join_delta_inputs(HybridGguf& form, const Checkpoint& folder) {
  for (const CheckpointTensor& tensor : folder.tensors()) {
    const size_t end = tensor.name.find(".linear_attn.in_proj_qkvz");
    if (end == std::string::npos) continue;
    const std::string block = "blk." + tensor.name.substr(13, end - 13) + ".";
    HybridGguf::Tensor& joined = form.tensors[block + "ssm_in.weight"];
    joined.shape = tensor.shape;
    joined.values.resize(static_cast<size_t>(tensor.weight->n * tensor.weight->k));
    const auto rows = folder.rows(tensor.name);
    ASSERT_TRUE((*rows)->rows(0, tensor.weight->n, DType::kF32, joined.values.data()).ok());
    form.tensors.erase(block + "attn_qkv.weight");
    form.tensors.erase(block + "attn_gate.weight");
  }
}

TEST_P(GgufHybrid, ReadsTheOtherFormsOfAFile) {
  HybridGguf form(GetParam());
  if (attends_by_default(GetParam())) {
    form.keys.erase(form.architecture + ".attention.recurrent_layers");
  }
  fuse_experts(form);
  const auto checkpoint = Checkpoint::open(golden_path(GetParam()));
  ASSERT_TRUE(checkpoint.ok());
  join_delta_inputs(form, *checkpoint);
  const TestFolder folder;
  const auto model = open_model(write_case(form, GetParam(), folder), with_head());
  ASSERT_NE(model, nullptr);
  expect_agreement(*model, {});
}

// A file without the head, as the converter's --no-mtp leaves it.
TEST_P(GgufHybrid, DoesWithoutAHeadThatDrafts) {
  HybridGguf form(GetParam());
  const auto blocks = static_cast<uint32_t>(form.keys[form.architecture + ".block_count"].bytes[0]);
  std::erase_if(form.tensors, [&](const auto& tensor) {
    return tensor.first.starts_with("blk." + std::to_string(blocks - 1) + ".");
  });
  form.keys.erase(form.architecture + ".nextn_predict_layers");
  form.number("block_count", blocks - 1);
  const std::string list = form.architecture + ".attention.recurrent_layers";
  std::string& bytes = form.keys[list].bytes;  // of an array: type, count, a byte each
  bytes[4] = static_cast<char>(blocks - 1);
  bytes.pop_back();
  const TestFolder folder;
  const auto model = open_model(write_case(form, GetParam(), folder), with_head());
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(model->model().info().has_draft_head);
  const auto report = check_oracle(*model, {switches_of({}), {}, std::nullopt});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->passed);
}

INSTANTIATE_TEST_SUITE_P(Golden, GgufHybrid, ::testing::ValuesIn(gguf_folders()), test_name);

// A file that llama.cpp's converter wrote, with its head and its tokenizer.
TEST(ConvertedGguf, ComputesWhatWasRecorded) {
  const auto model = open_model(golden_path("gguf/tiny-qwen35moe.gguf"), with_head());
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->model().info().family, "qwen3_5_moe");
  EXPECT_TRUE(model->model().info().notes.empty());
  for (const Assignments& assignments :
       {Assignments{"numerics=reference"}, Assignments{"prefill.numerics=exact"}, Assignments{}}) {
    const auto report = check_oracle(*model, {switches_of(assignments), {}, std::nullopt});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->passed) << (report->first_failure ? mismatch_text(*report->first_failure)
                                                          : "");
    EXPECT_EQ(report->greedy_equal, 4 * 24);
    EXPECT_EQ(report->draft_rows, 23 + 3);
    EXPECT_EQ(report->drafts_equal, 3);
  }
  const auto tokenizer = model->tokenizer();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const std::vector<int32_t> tokens = (*tokenizer)->encode("the hat", Special::kIgnore);
  EXPECT_EQ((*tokenizer)->decode(tokens), "the hat");
}

}  // namespace
}  // namespace reckon::engine
