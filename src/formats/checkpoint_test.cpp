#include "formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

#include "base/hash.h"
#include "formats/test_files.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Checkpoint must_open(const std::string& path) {
  auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  return std::move(checkpoint).value();
}

// A folder with this config and one BF16 tensor "w" [3, 1, 2].
class Folder {
 public:
  explicit Folder(std::string_view config, char fill = 'x') {
    folder_.write("config.json", config);
    const std::string_view header =
        R"({"w":{"dtype":"BF16","shape":[3,1,2],"data_offsets":[0,12]},)"
        R"("i":{"dtype":"I64","shape":[1],"data_offsets":[12,20]},)"
        R"("z":{"dtype":"BF16","shape":[0],"data_offsets":[20,20]},)"
        R"("x":{"dtype":"U8","shape":[2],"data_offsets":[20,22]},)"
        R"("f":{"dtype":"F32","shape":[1],"data_offsets":[22,26]}})";
    folder_.write("model.safetensors",
                  ByteWriter().text(header).raw(std::string(26, fill)).bytes());
  }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  [[nodiscard]] Checkpoint open() const { return must_open(path()); }

 private:
  TestFolder folder_;
};

TEST(Checkpoint, ReadsATinyGguf) {
  const std::string path = golden_path("gguf/tiny-llama-mixed.gguf");
  const Checkpoint checkpoint = must_open(path);
  EXPECT_EQ(checkpoint.kind(), CheckpointKind::kGguf);
  EXPECT_EQ(checkpoint_kind_name(checkpoint.kind()), "gguf");
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.integer("llama.embedding_length").value(), 64);
  EXPECT_EQ(checkpoint.integer_or("llama.no_such_key", 5).value(), 5);
  EXPECT_THAT(checkpoint.integer("llama.no_such_key").error().message,
              HasSubstr("metadata key 'llama.no_such_key' is missing: expected an integer"));
  const auto embedding = checkpoint.tensor("token_embd.weight");
  ASSERT_TRUE(embedding.ok()) << embedding.error().message;
  EXPECT_EQ(embedding->k, 64);
  EXPECT_EQ(embedding->type, DType::kQ8_0);
  EXPECT_TRUE(checkpoint.tensor("token_embd.weight", embedding->n, 64).ok());
  EXPECT_THAT(checkpoint.tensor("token_embd.weight", 3, 64).error().message,
              HasSubstr("tensor 'token_embd.weight' is"));
  EXPECT_EQ(checkpoint.tensor("output_norm.weight")->n, 1);
  EXPECT_FALSE(checkpoint.find("output.weight")->has_value());
  EXPECT_THAT(checkpoint.tensor("output.weight").error().message,
              HasSubstr(path + ": tensor 'output.weight' is missing"));
  EXPECT_THAT(checkpoint.files(), ElementsAre(path));
  EXPECT_EQ(checkpoint.total_bytes(), read_file(path).size());
  EXPECT_EQ(checkpoint.content_hash(), hash_hex(read_file(path)));
  EXPECT_NE(checkpoint.gguf(), nullptr);
}

TEST(Checkpoint, ReadsAHuggingFaceFolder) {
  const Checkpoint checkpoint = must_open(golden_path("oracle/llama-s0"));
  EXPECT_EQ(checkpoint.kind(), CheckpointKind::kHuggingFace);
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.integer("hidden_size").value(), 96);
  EXPECT_EQ(checkpoint.number("rms_norm_eps").value(), 1e-5);
  EXPECT_EQ(checkpoint.number("rope_theta").value(), 10000.0);  // inside rope_parameters
  EXPECT_EQ(checkpoint.string("rope_parameters.rope_type").value(), "default");
  EXPECT_FALSE(checkpoint.boolean("tie_word_embeddings").value());
  EXPECT_FALSE(checkpoint.has("pad_token_id"));  // null
  EXPECT_EQ(checkpoint.weight_format(), "bf16");
  const auto query = checkpoint.tensor("model.layers.0.self_attn.q_proj.weight", 96, 96);
  ASSERT_TRUE(query.ok()) << query.error().message;
  EXPECT_EQ(query->bytes(), 96 * 96 * 2);
  EXPECT_EQ(checkpoint.gguf(), nullptr);
  EXPECT_EQ(checkpoint.files().size(), 2U);
}

// transformers 5 writes a default at the top beside what counts.
TEST(Checkpoint, AShareOfRopeInItsObjectComesFirst) {
  const Folder folder(R"({"model_type":"qwen3_next","partial_rotary_factor":0.25,
      "rope_parameters":{"rope_theta":1e4,"partial_rotary_factor":0.5}})");
  EXPECT_EQ(folder.open().number("partial_rotary_factor").value(), 0.5);
  const Folder flat(R"({"model_type":"qwen3_next","partial_rotary_factor":0.75,
      "rope_parameters":{"rope_theta":1e4}})");
  EXPECT_EQ(flat.open().number("partial_rotary_factor").value(), 0.75);
}

TEST(Checkpoint, NestedTextConfigComesFirst) {
  const Folder folder(R"({"model_type":"big","tie_word_embeddings":true,"hidden_size":1,
      "text_config":{"model_type":"glm5_next_text","hidden_size":64,"head_dim":null,
                     "layer_types":["a","b"],"sections":[2,1,1],
                     "rope_scaling":{"rope_theta":5e6,"partial_rotary_factor":0.25}}})");
  const Checkpoint checkpoint = folder.open();
  EXPECT_EQ(checkpoint.architecture(), "glm5_next");
  EXPECT_EQ(checkpoint.integer("hidden_size").value(), 64);
  EXPECT_TRUE(checkpoint.boolean("tie_word_embeddings").value());
  EXPECT_EQ(checkpoint.number("rope_theta").value(), 5e6);
  EXPECT_EQ(checkpoint.number("partial_rotary_factor").value(), 0.25);
  EXPECT_EQ(checkpoint.integer_or("head_dim", 16).value(), 16);
  EXPECT_EQ(checkpoint.number_or("none", 0.5).value(), 0.5);
  EXPECT_TRUE(checkpoint.boolean_or("none", true).value());
  EXPECT_EQ(checkpoint.string_or("none", "x").value(), "x");
  EXPECT_THAT(checkpoint.strings("layer_types").value(), ElementsAre("a", "b"));
  EXPECT_THAT(checkpoint.integers("sections").value(), ElementsAre(2, 1, 1));

  EXPECT_THAT(checkpoint.integer("layer_types").error().message,
              HasSubstr(R"(config.json: key 'layer_types' is ["a","b"]: expected an integer)"));
  EXPECT_THAT(checkpoint.integer_or("rope_theta", 1).error().message,
              HasSubstr("expected an integer"));
  EXPECT_THAT(checkpoint.boolean("hidden_size").error().message, HasSubstr("true or false"));
  EXPECT_THAT(checkpoint.string("none").error().message,
              HasSubstr("key 'none' is missing: expected a string"));
}

TEST(Checkpoint, WeightsAreViewedByTheirInnermostDimension) {
  const Checkpoint checkpoint = Folder(R"({"model_type":"llama"})").open();
  const auto weight = checkpoint.tensor("w");
  ASSERT_TRUE(weight.ok()) << weight.error().message;
  EXPECT_EQ(weight->n, 3);
  EXPECT_EQ(weight->k, 2);
  EXPECT_THAT(checkpoint.tensors()[2].shape, ElementsAre(3, 1, 2));
  EXPECT_THAT(checkpoint.tensor("i").error().message,
              HasSubstr("tensor 'i' has the element type I64: expected F32, F16, BF16 or I32"));
  EXPECT_THAT(checkpoint.find("i").error().message, HasSubstr("element type I64"));
  EXPECT_THAT(checkpoint.tensor("z").error().message, HasSubstr("tensor 'z' is empty"));
  EXPECT_TRUE(checkpoint.has_tensor("i"));
}

TEST(Checkpoint, AMisalignedTensorIsAnErrorWhenItIsAskedFor) {
  const Checkpoint checkpoint = Folder(R"({"model_type":"llama"})").open();
  const auto* tensor = checkpoint.tensors().data();
  ASSERT_EQ(tensor->name, "f");
  const bool aligned = reinterpret_cast<uintptr_t>(tensor->weight->data) % 4 == 0;
  EXPECT_EQ(checkpoint.tensor("f").ok(), aligned);
  if (!aligned) {
    EXPECT_THAT(checkpoint.tensor("f").error().message, HasSubstr("multiple of its element size"));
  }
}

TEST(Checkpoint, HashesSeparateContentFromShape) {
  const std::string config = R"({"model_type":"llama","hidden_size":2})";
  const Checkpoint one = Folder(config).open();
  const Checkpoint other_weights = Folder(config, 'y').open();
  const Checkpoint cosmetic =
      Folder(R"({"transformers_version":"5","hidden_size":2,"model_type":"llama"})").open();
  const Checkpoint other_shape = Folder(R"({"model_type":"llama","hidden_size":4})").open();
  EXPECT_EQ(one.content_hash(), Folder(config).open().content_hash());
  EXPECT_EQ(one.content_hash().size(), 32U);
  EXPECT_NE(one.content_hash(), other_weights.content_hash());
  EXPECT_NE(one.content_hash(), cosmetic.content_hash());
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    const Folder with_tokenizer(config);
    std::ofstream(with_tokenizer.path() + "/" + name) << "{}";
    EXPECT_NE(with_tokenizer.open().content_hash(), one.content_hash()) << name;
  }
  EXPECT_EQ(one.shape_hash(), other_weights.shape_hash());
  EXPECT_EQ(one.shape_hash(), cosmetic.shape_hash());
  EXPECT_NE(one.shape_hash(), other_shape.shape_hash());
}

TEST(Checkpoint, NamesWhatIsMissing) {
  const TestFolder folder;
  EXPECT_THAT(Checkpoint::open(folder.path()).error().message,
              HasSubstr("expected a folder with config.json and model.safetensors"));
  folder.write("some.gguf", "");
  EXPECT_THAT(Checkpoint::open(folder.path()).error().message,
              HasSubstr("or the name of a GGUF file: there are some in this folder"));
  folder.write("config.json", "{\"model_type\":\"llama\"}");
  EXPECT_EQ(Checkpoint::open(folder.path()).error().message,
            folder.path() +
                ": has neither model.safetensors nor model.safetensors.index.json: expected one");
  folder.write("model.safetensors.index.json", "{}");
  EXPECT_THAT(Checkpoint::open(folder.path()).error().message,
              HasSubstr("index.json: key 'weight_map' is missing"));
  const std::string deep =
      R"({"model_type":"llama","a":)" + std::string(100000, '[') + std::string(100000, ']') + "}";
  for (const char* config :
       {deep.c_str(), "", "{", "[1]", "{}", R"({"model_type":3})",
        R"({"model_type":"a","text_config":[]})", R"({"model_type":"a","rope_parameters":7})",
        R"({"model_type":"a","rope_scaling":"linear"})", "\xff\xfe"}) {
    const Folder broken(config);
    const auto checkpoint = Checkpoint::open(broken.path());
    ASSERT_FALSE(checkpoint.ok()) << config;
    EXPECT_THAT(checkpoint.error().message, HasSubstr("config.json: ")) << config;
  }
  EXPECT_THAT(Checkpoint::open(folder.write("a.gguf", GgufWriter().bytes())).error().message,
              HasSubstr("'general.architecture' is missing"));
}

TEST(Checkpoint, Smollm2LoadsFast) {
  RECKON_REQUIRE_SMOLLM2();
  const std::clock_t start = std::clock();
  const Checkpoint checkpoint = must_open(smollm2_path());
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC);  // of the processor; a few milliseconds
  EXPECT_EQ(checkpoint.tensors().size(), 272U);
  EXPECT_EQ(checkpoint.weight_format(), "q4_1+q8_0");
  EXPECT_EQ(checkpoint.tensor("token_embd.weight", 49152, 576)->type, DType::kQ8_0);
}

}  // namespace
}  // namespace reckon
