// GGUF files in every type in common use, end to end: what has no kernels is converted at load.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/test_sessions.h"
#include "kernels/native_types.h"
#include "models/test_checkpoints.h"
#include "tensor/test_blocks.h"

namespace reckon::engine {
namespace {

struct Case {
  uint32_t number;  // in GGUF files
  DType type;
  bool same_weights;  // after the conversion, if there is one
};

constexpr Case kCases[] = {
    {2, DType::kQ4_0, true},   {3, DType::kQ4_1, true},    {6, DType::kQ5_0, true},
    {7, DType::kQ5_1, false},  {8, DType::kQ8_0, true},    {10, DType::kQ2_K, false},
    {11, DType::kQ3_K, true},  {12, DType::kQ4_K, false},  {13, DType::kQ5_K, false},
    {14, DType::kQ6_K, false}, {20, DType::kIQ4_NL, true}, {23, DType::kIQ4_XS, false},
    {39, DType::kMXFP4, true},
};

const std::vector<int32_t> kTokens = {3, 17, 39, 0, 5, 5, 21, 30, 8, 12, 1, 26, 33};

std::string text_of(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

// A model in the type, and the same weights in float32.
struct Twins {
  TestFolder folder;
  std::string blocks;
  std::string floats;

  explicit Twins(const Case& kind) {
    RandomBlocks random(100 + kind.number);
    blocks =
        folder.write("blocks.gguf", models::wide_gguf_llama(kind.number, [&](int64_t n, int64_t k) {
                                      const auto bytes = random.rows(kind.type, n, k);
                                      return text_of(bytes.data(), bytes.size());
                                    }).bytes());
    RandomBlocks again(100 + kind.number);
    floats =
        folder.write("floats.gguf", models::wide_gguf_llama(0, [&](int64_t n, int64_t k) {
                                      const auto bytes = again.rows(kind.type, n, k);
                                      std::vector<float> values(static_cast<size_t>(n * k));
                                      dequantize_row(kind.type, bytes.data(), n * k, values.data());
                                      return text_of(values.data(), values.size() * 4);
                                    }).bytes());
  }
};

double ratio(const std::vector<float>& got, const std::vector<float>& expected) {
  double squares = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    squares += std::pow(static_cast<double>(got[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(squares / norm);
}

TEST(Converted, RunsAsTheWeightsOfTheFileDo) {
  for (const Case& kind : kCases) {
    const Twins twins(kind);
    const auto model = open_model(twins.blocks);
    const auto plain = open_model(twins.floats);
    ASSERT_TRUE(model != nullptr && plain != nullptr) << dtype_name(kind.type);
    const auto expected = prefill_rows(*plain, {"numerics=reference"}, kTokens);
    const auto reference = prefill_rows(*model, {"numerics=reference"}, kTokens);
    ASSERT_EQ(reference.size(), expected.size());
    if (kind.same_weights) {
      EXPECT_EQ(reference, expected) << dtype_name(kind.type);
    } else {
      EXPECT_LE(ratio(reference, expected), 2e-2) << dtype_name(kind.type);
    }
    const auto exact = prefill_rows(*model, {"prefill.numerics=exact"}, kTokens);
    ASSERT_EQ(exact.size(), reference.size());
    EXPECT_LE(ratio(exact, reference), 1e-3) << dtype_name(kind.type);
    EXPECT_TRUE(same_bits(decode_rows(*model, {}, kTokens), exact)) << dtype_name(kind.type);
    EXPECT_TRUE(same_bits(prefill_rows(*model,
                                       {"prefill.numerics=exact", "prefill.chunk=5",
                                        "cpu.threads=3", "cpu.isa=scalar"},
                                       kTokens),
                          decode_rows(*model, {"cpu.isa=scalar"}, kTokens)))
        << dtype_name(kind.type);
  }
}

TEST(Converted, SaysSoAndCountsTheMemory) {
  for (const Case& kind : kCases) {
    const Twins twins(kind);
    const auto model = open_model(twins.blocks);
    ASSERT_NE(model, nullptr);
    const std::vector<std::string>& notes = model->model().info().notes;
    const std::string name(dtype_name(kind.type));
    if (kernels::has_matmul(kernels::cpu_backend(), kind.type, 256, 256)) {
      EXPECT_TRUE(notes.empty()) << name;
      EXPECT_EQ(model->weight_format(), name);
      continue;
    }
    ASSERT_EQ(notes.size(), 1U) << name;
    EXPECT_THAT(notes[0], ::testing::StartsWith("converted 8 tensors from " + name + " to "));
    EXPECT_THAT(notes[0], ::testing::HasSubstr("to " + model->weight_format() + ","));
    EXPECT_NE(model->weight_format(), name);
    EXPECT_FALSE(model->is_packed());
    const auto session = make_session(*model, {}, {32, 8});
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes) << name;
    EXPECT_GT(model->allocated_bytes(), 0U);
  }
}

TEST(Converted, PackingIsOfTheWeightsOfTheFile) {
  const Twins twins({13, DType::kQ5_K, false});
  const ModelOptions options{models::QuantScheme::parse("q8").value()};
  const auto model = open_model(twins.blocks, options);
  const auto plain = open_model(twins.floats, options);
  ASSERT_TRUE(model != nullptr && plain != nullptr);
  EXPECT_TRUE(model->model().info().notes.empty());
  EXPECT_TRUE(same_bits(prefill_rows(*model, {}, kTokens), prefill_rows(*plain, {}, kTokens)));
}

}  // namespace
}  // namespace reckon::engine
