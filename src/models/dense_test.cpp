#include "models/dense.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/recorder.h"
#include "models/families.h"
#include "models/host_placer.h"
#include "models/test_checkpoints.h"

namespace reckon::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(TinyFolder& folder) {
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  const auto model = build_model(checkpoint, placer);
  return model.ok() ? "" : model.error().message;
}

TEST(Families, NamesEveryFamilyOfTheTable) {
  EXPECT_THAT(family_names(), ElementsAre("gemma3", "llama", "qwen2", "qwen3", "qwen3_5",
                                          "qwen3_5_moe", "qwen3_next"));
  EXPECT_EQ(families().size(), 7U);
}

TEST(Families, NamesWhatItKnowsWhereAFamilyIsUnknown) {
  TinyFolder folder("mamba");
  const std::string error = error_of(folder);
  EXPECT_THAT(error, HasSubstr("'mamba'"));
  EXPECT_THAT(error, HasSubstr("gemma3, llama, qwen2, qwen3"));
}

TEST(Dense, BuildsAFolder) {
  for (const char* family : {"llama", "qwen2", "qwen3"}) {
    TinyFolder folder(family);
    const Checkpoint checkpoint = folder.open();
    HostPlacer placer;
    const auto model = build_model(checkpoint, placer);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const ModelInfo& info = (*model)->info();
    EXPECT_EQ(info.family, family);
    EXPECT_EQ(info.vocabulary, 10);
    EXPECT_EQ(info.layers, 1);
    uint64_t bytes = 0;
    for (const CheckpointTensor& tensor : checkpoint.tensors()) bytes += tensor.bytes;
    EXPECT_EQ(info.weight_bytes, bytes);
    EXPECT_TRUE(info.notes.empty());
  }
}

TEST(Dense, NamesAMissingTensor) {
  TinyFolder whole("qwen3");
  for (const auto& [name, shape] : whole.shapes) {
    TinyFolder folder("qwen3");
    folder.shapes.erase(name);
    EXPECT_THAT(error_of(folder), HasSubstr(name));
  }
}

TEST(Dense, NamesATensorOfAnotherShape) {
  TinyFolder whole("qwen3");
  for (const auto& [name, shape] : whole.shapes) {
    TinyFolder folder("qwen3");
    folder.shapes[name].back() += 2;
    EXPECT_THAT(error_of(folder), HasSubstr(name));
  }
}

TEST(Dense, NamesATensorOfAnUnusableType) {
  for (const char* name : {"model.norm.weight", "model.layers.0.mlp.up_proj.weight"}) {
    TinyFolder folder;
    folder.types[name] = "I32";
    EXPECT_THAT(error_of(folder), HasSubstr(name));
  }
}

TEST(Dense, NamesALeftOverTensor) {
  for (const char* name :
       {"model.layers.0.self_attn.q_proj.bias", "model.layers.1.extra.weight", "something.else"}) {
    TinyFolder folder;
    folder.shapes[name] = {8};
    EXPECT_THAT(error_of(folder), HasSubstr(name));
  }
  // A llama folder must not hold qwen3's head norms.
  TinyFolder folder;
  folder.shapes["model.layers.0.self_attn.q_norm.weight"] = {4};
  EXPECT_THAT(error_of(folder), HasSubstr("q_norm"));
  // Whatever its name, the message is one line.
  TinyFolder named;
  named.shapes["two\nlines"] = {4};
  EXPECT_THAT(error_of(named), HasSubstr("tensor 'two\\x0alines' is not part of a"));
}

TEST(Dense, SkipsWhatCarriesNothingForText) {
  TinyFolder folder;
  folder.shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = {2};
  folder.shapes["model.visual.blocks.0.weight"] = {3, 3};
  folder.shapes["model.visual.blocks.1.weight"] = {3, 3};
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  const auto model = build_model(checkpoint, placer);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_THAT((*model)->info().notes, ElementsAre(HasSubstr("2 tensors")));
}

TEST(Dense, ATiedHeadMayBeStoredAsACopyOnly) {
  TinyFolder copy;
  copy.config["tie_word_embeddings"] = true;
  EXPECT_EQ(error_of(copy), "");
  copy.fill = "lm_head.weight";
  EXPECT_THAT(error_of(copy), HasSubstr("lm_head.weight"));
  TinyFolder absent;
  absent.config["tie_word_embeddings"] = true;
  absent.shapes.erase("lm_head.weight");
  EXPECT_EQ(error_of(absent), "");
}

TEST(Dense, TakesNormsOfOtherPlainTypes) {
  TinyFolder folder;
  for (const auto& [name, shape] : folder.shapes) folder.types[name] = "BF16";
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  const auto model = build_model(checkpoint, placer);
  ASSERT_TRUE(model.ok()) << model.error().message;
  uint64_t bytes = 0;  // matrices as stored, vectors as float32 copies
  for (const auto& [name, shape] : folder.shapes) {
    bytes += shape.size() == 1 ? arena_rounded(4U * static_cast<uint64_t>(shape[0]))
                               : 2U * static_cast<uint64_t>(shape[0] * shape[1]);
  }
  EXPECT_EQ((*model)->info().weight_bytes, bytes);
}

// ---- the forward pass, dry ----

struct DryRun {
  std::vector<kernels::Recorder::Counted> calls;
  std::vector<std::pair<int64_t, int64_t>> observed;  // layer, rows
};

DryRun dry_run(const Model& model, int64_t rows, LogitRows logit_rows) {
  std::vector<StateBuffer> state;
  for (const BufferSpec& spec : model.state_specs({.capacity = 64})) {
    state.push_back({nullptr, spec.type, spec.rows, spec.columns});
  }
  std::vector<Activation> activations;
  for (const BufferSpec& spec : model.activation_specs(
           {.rows = rows, .logit_rows = logit_rows == LogitRows::kAll ? rows : 1})) {
    activations.push_back({nullptr, spec.rows, spec.columns});
  }
  const std::vector<int32_t> tokens(static_cast<size_t>(rows), 0);
  DryRun run;
  const kernels::Planner planner({}, kernels::detect_cpu(), kernels::all_variants());
  kernels::Recorder recorder(planner);
  const Pass pass{.tokens = tokens,
                  .first_position = 0,
                  .logit_rows = logit_rows,
                  .observe = [&](int64_t layer, Activation hidden) {
                    run.observed.emplace_back(layer, hidden.rows);
                  }};
  const Status status = model.forward(recorder, pass, state, activations);
  EXPECT_TRUE(status.ok());
  run.calls = recorder.calls();
  return run;
}

int64_t head_rows(const DryRun& run) {
  const auto& last = run.calls.back().call;
  EXPECT_EQ(last.op, kernels::Op::kMatmul);
  EXPECT_EQ(last.n, 10);
  return last.rows;
}

TEST(Dense, ComputesLogitsForTheWantedRowsOnly) {
  TinyFolder folder;
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer;
  const auto model = build_model(checkpoint, placer);
  ASSERT_TRUE(model.ok());
  const DryRun last = dry_run(**model, 5, LogitRows::kLast);
  EXPECT_EQ(head_rows(last), 1);
  EXPECT_THAT(last.observed, ElementsAre(std::pair(0, 5), std::pair(1, 1)));
  const DryRun all = dry_run(**model, 5, LogitRows::kAll);
  EXPECT_EQ(head_rows(all), 5);
  EXPECT_THAT(all.observed, ElementsAre(std::pair(0, 5), std::pair(1, 5)));
}

TEST(Dense, NormalisesHeadsWhereTheFamilyDoes) {
  const auto norms_of_width = [](const char* family, int64_t width) {
    TinyFolder folder(family);
    const Checkpoint checkpoint = folder.open();
    HostPlacer placer;
    const auto model = build_model(checkpoint, placer);
    EXPECT_TRUE(model.ok());
    const DryRun run = dry_run(**model, 3, LogitRows::kLast);
    return std::count_if(run.calls.begin(), run.calls.end(), [&](const auto& counted) {
      return counted.call.op == kernels::Op::kRmsNorm && counted.call.k == width;
    });
  };
  EXPECT_EQ(norms_of_width("llama", 4), 0);
  EXPECT_EQ(norms_of_width("qwen3", 4), 2);  // 2 heads of Q, 1 of K: two shapes
}

}  // namespace
}  // namespace reckon::models
