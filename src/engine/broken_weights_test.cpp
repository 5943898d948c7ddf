#include "engine/broken_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "engine/generate.h"
#include "engine/test_sessions.h"
#include "models/test_edited_folder.h"

namespace reckon::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A copy of a golden model with a NaN in one of its vectors.
std::string broken_model(const TestFolder& folder, const std::string& tensor) {
  const std::string golden = golden_path("gguf/tiny-llama-mixed.gguf");
  std::string bytes = read_file(golden);
  const auto checkpoint = Checkpoint::open(golden);
  const auto* data = static_cast<const char*>(checkpoint->tensor(tensor)->data);
  const auto at = static_cast<size_t>(data - checkpoint->gguf()->bytes().data());
  const float bad = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + at, &bad, sizeof bad);
  return folder.write("broken.gguf", bytes);
}

TEST(BrokenWeights, AreNamedWhereTheLogitsAreNoNumbers) {
  const TestFolder folder;
  const auto model = open_model(broken_model(folder, "output_norm.weight"));
  ASSERT_NE(model, nullptr);
  const auto session = make_session(*model, {}, {16});
  ASSERT_NE(session, nullptr);
  const std::vector<int32_t> prompt{1, 2, 3};
  GenerateOptions greedy;
  greedy.max_tokens = 1;
  GenerateOptions filtered = greedy;  // picked on the host
  filtered.sampler.temperature = 1;
  filtered.sampler.filters.top_k = 3;
  for (const GenerateOptions& options : {greedy, filtered}) {
    ASSERT_TRUE(session->truncate(0).ok());
    const auto generation = generate(*session, prompt, options, nullptr, {});
    ASSERT_FALSE(generation.ok());
    EXPECT_EQ(generation.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(generation.error().message,
                AllOf(HasSubstr("broken.gguf: tensor 'output_norm.weight', row 0: holds a weight "
                                "that is not finite")));
  }
}

// Rows that the file has in another order, or in tensors of their own, are named, too.
TEST(BrokenWeights, AreNamedWhereRowsWereRearranged) {
  struct Case {
    const char* folder;
    const char* tensor;
    const char* named;
  };
  for (const auto& [folder_name, tensor, named] :
       {Case{"oracle/qwen3_next-s0", "model.layers.1.linear_attn.in_proj_qkvz.weight",
             "model.layers.1.linear_attn.in_proj_"},
        Case{"oracle/qwen3_next-s0", "model.layers.2.mlp.experts.1.down_proj.weight",
             "model.layers.2.mlp.experts.down_proj.weight"},
        Case{"oracle/qwen3_5-s0", "model.layers.0.linear_attn.conv1d.weight",
             "model.layers.0.linear_attn.conv1d.weight"}}) {
    models::EditedFolder folder(folder_name);
    const auto found = folder.tensors.find(tensor);
    ASSERT_NE(found, folder.tensors.end()) << tensor;
    std::string& bytes = found->second.bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(0xff);  // NaN
    const auto model = open_model(folder.write());
    ASSERT_NE(model, nullptr);
    const auto session = make_session(*model, {"decode.drafter=none"}, {16});
    ASSERT_NE(session, nullptr);
    const std::vector<int32_t> prompt{1, 2, 3, 4, 5, 6, 7};
    GenerateOptions greedy;
    greedy.max_tokens = 1;
    const auto generation = generate(*session, prompt, greedy, nullptr, {});
    ASSERT_FALSE(generation.ok()) << tensor;
    EXPECT_THAT(generation.error().message, HasSubstr("holds a weight that is not finite"));
    EXPECT_THAT(generation.error().message, HasSubstr(named));
  }
}

TEST(BrokenWeights, NameTheFileWhereNoWeightIsToBlame) {
  const std::string path = golden_path("gguf/tiny-llama-mixed.gguf");
  const auto model = open_model(path);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(explain_not_finite(*model, failed("it overflowed")).message, path + ": it overflowed");
}

TEST(Session, ATokenThatTheModelDoesNotHaveIsTheFilesFault) {
  const auto model = open_model(golden_path("gguf/tiny-llama-mixed.gguf"));
  ASSERT_NE(model, nullptr);
  const auto session = make_session(*model, {}, {16});
  const int64_t vocabulary = model->model().info().vocabulary;
  const std::vector<int32_t> tokens{1, static_cast<int32_t>(vocabulary)};
  const Status status = session->append(tokens);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("tiny-llama-mixed.gguf: token "));
}

}  // namespace
}  // namespace reckon::engine
