// GGUF files of hybrids that are not as they should be: one line that names the key or the tensor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "models/host_placer.h"
#include "models/model.h"
#include "models/test_hybrid_gguf.h"

namespace reckon::models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class HybridGgufFile : public ::testing::TestWithParam<const char*> {
 protected:
  // What is said of the form; "" where it loads.
  [[nodiscard]] std::string error() const {
    const TestFolder folder;
    const auto checkpoint = Checkpoint::open(folder.write("form.gguf", form_.bytes()));
    if (!checkpoint.ok()) return checkpoint.error().message;
    HostPlacer placer;
    const auto model = build_model(*checkpoint, placer, {.draft_head = true});
    if (!model.ok()) return model.error().message;
    const Status loaded = placer.load({1, {}});
    return loaded.ok() ? "" : loaded.error().message;
  }
  [[nodiscard]] std::string key(const std::string& name) const {
    return form_.architecture + "." + name;
  }

  HybridGguf form_{GetParam()};
};

TEST_P(HybridGgufFile, Loads) {
  EXPECT_EQ(error(), "");
}

TEST_P(HybridGgufFile, NamesAMissingKey) {
  // What a file may leave out.
  std::vector<std::string> optional = {key("attention.recurrent_layers"),
                                       key("attention.value_length"), key("rope.freq_base")};
  if (form_.architecture != "qwen35") optional.push_back(key("feed_forward_length"));
  int missing = 0;
  for (const auto& [name, value] : std::map(form_.keys)) {
    if (std::ranges::find(optional, name) != optional.end()) continue;
    form_.keys.erase(name);
    if (name == key("nextn_predict_layers")) {
      EXPECT_THAT(error(), HasSubstr(".nextn.eh_proj.weight' is not part"));
    } else {
      EXPECT_THAT(error(), AllOf(HasSubstr("form.gguf: metadata key '" + name + "' is missing"),
                                 Not(HasSubstr("\n"))));
    }
    form_.keys[name] = value;
    ++missing;
  }
  EXPECT_GE(missing, 15);
}

TEST_P(HybridGgufFile, NamesAKeyThatIsWrong) {
  struct Wrong {
    const char* key;
    uint32_t value;
    const char* problem;
  };
  for (const Wrong& wrong :
       {Wrong{"block_count", 5000, "layers of 5000"},
        Wrong{"block_count", 8, "attention.recurrent_layers' has"},
        Wrong{"nextn_predict_layers", 2, "is 2; expected 0 or 1"},
        Wrong{"embedding_length", 0, "hidden size of 0"},
        Wrong{"vocab_size", 77, "is 77, but token_embd.weight has 256 rows"},
        Wrong{"attention.head_count_kv", 3, "4 attention heads are not a multiple of 3 KV heads"},
        Wrong{"attention.value_length", 8, "expected the head size"},
        Wrong{"rope.dimension_count", 7, "is 7; expected an even number of 2 to"},
        Wrong{"rope.dimension_count", 4096, "is 4096; expected an even number of 2 to"},
        Wrong{"ssm.group_count", 0, "key heads of 0"},
        Wrong{"ssm.time_step_rank", 0, "value heads of 0"},
        Wrong{"ssm.time_step_rank", 5, "5 linear attention value heads are not a multiple of 2"},
        Wrong{"ssm.inner_size", 129, "is 129; expected a multiple of"},
        Wrong{"ssm.conv_kernel", 1, "is 1; expected 2 to 64"},
        Wrong{"attention.sliding_window", 64, "is not a key that this version understands"},
        Wrong{"rope.scaling.factor", 4, "rope scaling is not supported"}}) {
    const std::map<std::string, HybridGguf::Key> keys = form_.keys;
    form_.number(wrong.key, wrong.value);
    EXPECT_THAT(error(), AllOf(HasSubstr("form.gguf: "), HasSubstr(wrong.problem))) << wrong.key;
    form_.keys = keys;
  }
}

TEST_P(HybridGgufFile, NamesLayersThatAreWrong) {
  const std::string list = "attention.recurrent_layers";
  const size_t blocks = static_cast<unsigned char>(form_.keys[key("block_count")].bytes[0]);
  form_.booleans(list, std::vector<bool>(blocks, true));
  EXPECT_THAT(error(), HasSubstr("the head that drafts is recurrent"));
  form_.number(list, 4);
  EXPECT_THAT(error(),
              HasSubstr("'" + key(list) + "' holds uint32: expected an array of booleans"));
  form_.keys[key(list)] = {GgufType::kArray,
                           ByteWriter().put(GgufType::kBool).put<uint64_t>(1).put('\7').bytes()};
  EXPECT_THAT(error(), HasSubstr("holds 7: expected 0 or 1"));
  form_.keys.erase(key(list));
  form_.number("full_attention_interval", 0);
  EXPECT_THAT(error(), HasSubstr("full_attention_interval' is 0; expected 1 or more"));
  form_.number("full_attention_interval", 3);  // other layers than the tensors'
  EXPECT_THAT(error(), HasSubstr("blk.2.attn_q.weight"));
}

TEST_P(HybridGgufFile, NamesATensorThatIsMissingOrHasAnotherShape) {
  int named = 0;
  for (const auto& [name, tensor] : std::map(form_.tensors)) {
    if (name.starts_with("blk.1.") || name.starts_with("blk.2.")) continue;
    if (name != "output.weight") {  // without it the head is tied
      form_.tensors.erase(name);
      // In place of a tensor of old files, or of one with both, the error names the usual one.
      const bool other = name.ends_with("attn_qkv.weight") || name.ends_with("gate_up_exps.weight");
      EXPECT_THAT(error(), HasSubstr(other ? name.substr(0, 6) : name)) << name;
    }
    HybridGguf::Tensor& changed = form_.tensors[name];
    changed = tensor;
    changed.shape = {static_cast<int64_t>(tensor.values.size()) / 2, 2};
    EXPECT_THAT(error(), HasSubstr(name));
    form_.tensors[name] = tensor;
    ++named;
  }
  EXPECT_GT(named, 30);
}

TEST_P(HybridGgufFile, NamesATensorThatNobodyReads) {
  for (const char* name : {"blk.0.attn_q.weight", "blk.3.ssm_a", "rope_freqs.weight"}) {
    form_.tensors[name] = {{2}, {1, 1}};
    EXPECT_THAT(error(), HasSubstr(name));
    form_.tensors.erase(name);
  }
}

TEST_P(HybridGgufFile, NamesADecayThatIsNone) {
  form_.tensors["blk.0.ssm_a"].values[1] = 0.5F;
  EXPECT_THAT(error(), HasSubstr("tensor 'blk.0.ssm_a', holds 0.5; expected -exp(A_log)"));
}

std::string family_name(const ::testing::TestParamInfo<const char*>& param) {
  const std::string folder = param.param;
  return folder.substr(folder.find('/') + 1, folder.find('-') - folder.find('/') - 1);
}

INSTANTIATE_TEST_SUITE_P(Golden, HybridGgufFile,
                         ::testing::Values("oracle/qwen3_5-s0", "oracle/qwen3_5_moe-s0",
                                           "oracle/qwen3_next-s0"),
                         family_name);

}  // namespace
}  // namespace reckon::models
