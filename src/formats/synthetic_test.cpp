#include "formats/synthetic.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "formats/checkpoint.h"

namespace reckon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Checkpoint must_open(const std::string& name) {
  auto checkpoint = Checkpoint::open(name);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  return std::move(checkpoint).value();
}

TEST(Synthetic, NamesAreReadAndWritten) {
  const SyntheticName name = parse_synthetic("synth:llama-8b,seed=7,layers=4").value();
  EXPECT_EQ(name.shape, "llama-8b");
  EXPECT_EQ(name.layers, 4);
  EXPECT_EQ(name.shape_layers, 32);
  EXPECT_EQ(name.seed, 7U);
  EXPECT_EQ(name.text(), "synth:llama-8b,layers=4,seed=7");
  EXPECT_EQ(name.display(), "synth:llama-8b (4 of 32 layers)");
  EXPECT_EQ(parse_synthetic("synth:llama-8b").value().display(), "synth:llama-8b");
}

TEST(Synthetic, RouterSkewIsPartOfTheName) {
  const SyntheticName name =
      parse_synthetic("synth:qwen3.6-35b-a3b,router_skew=1.0,layers=4").value();
  EXPECT_EQ(name.router_skew, 1);
  EXPECT_EQ(name.text(), "synth:qwen3.6-35b-a3b,layers=4,router_skew=1");
  EXPECT_EQ(name.display(), "synth:qwen3.6-35b-a3b (4 of 40 layers, router skew 1)");
  EXPECT_EQ(with_router_skew("synth:tiny-qwen3.5-moe", 0.5).value(),
            "synth:tiny-qwen3.5-moe,router_skew=0.5");
  EXPECT_EQ(with_router_skew("synth:tiny-qwen3.5-moe,router_skew=1", 1).value(),
            "synth:tiny-qwen3.5-moe,router_skew=1");
  EXPECT_THAT(with_router_skew("synth:tiny-qwen3.5-moe,router_skew=1", 2).error().message,
              HasSubstr("named already"));
  EXPECT_THAT(with_router_skew("model.gguf", 1).error().message, HasSubstr("synthetic"));
  EXPECT_THAT(with_router_skew("synth:llama-8b", 1).error().message,
              HasSubstr("it has no routed experts"));
  for (const char* value : {"5", "-1", "x", "", "nan"}) {
    const auto bad = parse_synthetic(fmt::format("synth:tiny-qwen3.5-moe,router_skew={}", value));
    ASSERT_FALSE(bad.ok()) << value;
    EXPECT_EQ(bad.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(bad.error().message, HasSubstr("a number from 0 to 4"));
  }
}

TEST(Synthetic, RouterSkewChangesRoutersAlone) {
  const Checkpoint plain = must_open("synth:tiny-qwen3.5-moe");
  const Checkpoint skewed = must_open("synth:tiny-qwen3.5-moe,router_skew=1");
  EXPECT_EQ(plain.shape_hash(), skewed.shape_hash());
  EXPECT_NE(plain.content_hash(), skewed.content_hash());
  int routers = 0;
  for (const CheckpointTensor& tensor : plain.tensors()) {
    const auto bytes_of = [&](const Checkpoint& checkpoint) {
      std::vector<uint8_t> bytes(static_cast<size_t>(tensor.weight->bytes()));
      const auto rows = checkpoint.rows(tensor.name);
      EXPECT_TRUE((*rows)->rows(0, tensor.weight->n, DType::kBF16, bytes.data()).ok());
      return bytes;
    };
    const bool router = tensor.name.ends_with("mlp.gate.weight");
    EXPECT_EQ(bytes_of(plain) != bytes_of(skewed), router) << tensor.name;
    routers += router ? 1 : 0;
  }
  EXPECT_GT(routers, 1);
}

TEST(Synthetic, WrongNamesAreUsageErrors) {
  for (const char* model : {"synth:", "synth:llama-9b", "synth:llama-8b,", "synth:llama-8b,layers",
                            "synth:llama-8b,x=1", "synth:llama-8b,layers=0",
                            "synth:llama-8b,layers=33", "synth:llama-8b,layers=4x",
                            "synth:llama-8b,seed=-1", "synth:llama-8b,seed=99999999999999999999"}) {
    const auto name = parse_synthetic(model);
    ASSERT_FALSE(name.ok()) << model;
    EXPECT_EQ(name.error().kind, ErrorKind::kUsage) << model;
  }
  EXPECT_THAT(parse_synthetic("synth:llama-9b").error().message,
              HasSubstr("did you mean 'synth:llama-8b'?"));
  EXPECT_THAT(parse_synthetic("synth:llama-8b,layers=33").error().message,
              HasSubstr("from 1 to 32"));
}

TEST(Synthetic, LayersAreCutOnce) {
  EXPECT_EQ(with_layers("synth:llama-8b,seed=3", 4).value(), "synth:llama-8b,layers=4,seed=3");
  EXPECT_EQ(with_layers("synth:llama-8b,layers=4", 4).value(), "synth:llama-8b,layers=4");
  EXPECT_EQ(with_layers("synth:llama-8b,layers=4", 5).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(with_layers("synth:llama-8b", 33).error().kind, ErrorKind::kUsage);
  EXPECT_THAT(with_layers("model.gguf", 4).error().message, HasSubstr("synthetic"));
}

TEST(Synthetic, EveryShapeOpens) {
  EXPECT_THAT(synthetic_shapes(), Contains("llama-8b"));
  for (const std::string& shape : synthetic_shapes()) {
    const Checkpoint checkpoint = must_open("synth:" + shape);
    EXPECT_EQ(checkpoint.kind(), CheckpointKind::kSynthetic);
    EXPECT_EQ(checkpoint_kind_name(checkpoint.kind()), "synthetic");
    EXPECT_EQ(checkpoint.weight_format(), "bf16");
    EXPECT_EQ(checkpoint.gguf(), nullptr);
    EXPECT_TRUE(checkpoint.files().empty());
    EXPECT_FALSE(checkpoint.tensors().empty());
  }
}

// https://huggingface.co/meta-llama/Llama-3.1-8B: 291 tensors, 8,030,261,248 weights.
TEST(Synthetic, Llama8bHasThePublishedSize) {
  const Checkpoint checkpoint = must_open("synth:llama-8b");
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.integer("max_position_embeddings").value(), 131072);
  EXPECT_EQ(checkpoint.number("rope_theta").value(), 500000);
  EXPECT_EQ(checkpoint.tensors().size(), 291U);
  uint64_t bytes = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) bytes += tensor.bytes;
  EXPECT_EQ(bytes, 2 * 8'030'261'248U);
}

// What their names say, head that drafts included: 27 and 35 billion weights.
TEST(Synthetic, HybridsHaveThePublishedSizes) {
  const auto weights_of = [](const char* name) {
    const Checkpoint checkpoint = must_open(name);
    uint64_t bytes = 0;
    for (const CheckpointTensor& tensor : checkpoint.tensors()) bytes += tensor.bytes;
    return bytes / 2;
  };
  EXPECT_NEAR(static_cast<double>(weights_of("synth:qwen3.8-27b")), 27.3e9, 0.3e9);
  EXPECT_NEAR(static_cast<double>(weights_of("synth:qwen3.6-35b-a3b")), 35.5e9, 0.5e9);
  EXPECT_TRUE(must_open("synth:qwen3.8-27b,layers=4").has_tensor("mtp.fc.weight"));
}

TEST(Synthetic, HashesSayWhatDiffers) {
  const Checkpoint whole = must_open("synth:llama-8b");
  const Checkpoint seeded = must_open("synth:llama-8b,seed=1");
  const Checkpoint cut = must_open("synth:llama-8b,layers=4");
  EXPECT_EQ(whole.shape_hash(), seeded.shape_hash());
  EXPECT_NE(whole.content_hash(), seeded.content_hash());
  EXPECT_NE(whole.shape_hash(), cut.shape_hash());
  EXPECT_NE(whole.content_hash(), cut.content_hash());
  EXPECT_EQ(whole.content_hash(), must_open("synth:llama-8b").content_hash());
  EXPECT_EQ(cut.integer("num_hidden_layers").value(), 4);
  EXPECT_EQ(cut.display_name(), "synth:llama-8b (4 of 32 layers)");
}

TEST(Synthetic, RowsComeWithoutDataInMemory) {
  const Checkpoint checkpoint = must_open("synth:tiny-llama,seed=5");
  const std::string name = "model.layers.0.mlp.gate_proj.weight";
  const Weight weight = checkpoint.tensor(name, 112, 48).value();
  EXPECT_EQ(weight.data, nullptr);
  EXPECT_EQ(weight.type, DType::kBF16);
  const auto rows = checkpoint.rows(name);
  ASSERT_TRUE(rows.ok());
  std::vector<uint8_t> got(static_cast<size_t>(weight.bytes())), expected(got.size());
  ASSERT_TRUE((*rows)->rows(0, 112, DType::kBF16, got.data()).ok());
  const RandomRows made(5, name, RandomKind::kMatrix, 112, 48);
  ASSERT_TRUE(made.rows(0, 112, DType::kBF16, expected.data()).ok());
  EXPECT_EQ(got, expected);
  EXPECT_THAT(checkpoint.rows("no.such").error().message,
              HasSubstr("synth:tiny-llama,seed=5: tensor 'no.such' is missing"));
}

}  // namespace
}  // namespace reckon
