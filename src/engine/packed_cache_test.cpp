// Packing once: the first load of a model writes the packed file, the second reads it, and both
// give the logits of a load without one, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/test_sessions.h"
#include "models/packed_cache.h"
#include "tensor/quantise.h"

namespace reckon::engine {
namespace {

namespace fs = std::filesystem;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kScheme =
    "- \"*.self_attn.*\": q8\n- lm_head.weight: q8\n- \"*.down_proj.*\": none\n- \"*\": q4\n";

// The CPU, and the GPU where there is one.
std::vector<kernels::Backend*> backends() {
  std::vector<kernels::Backend*> found{&kernels::cpu_backend()};
  if (const auto gpu = kernels::open_backend("cuda"); gpu.ok()) found.push_back(*gpu);
  return found;
}

// A copy of a golden model in a folder where files may be put, and a cache folder.
// The load that keeps packed weights says so.
std::vector<std::string> without_kept(std::vector<std::string> notes) {
  std::erase_if(notes, [](const std::string& note) { return note.starts_with("kept "); });
  return notes;
}

class PackedCacheTest : public ::testing::TestWithParam<std::string> {
 protected:
  PackedCacheTest() {
    const fs::path golden = golden_path(GetParam());
    model_ = folder_.path() + "/" + golden.filename().string();
    fs::copy(golden, model_, fs::copy_options::recursive);
    scheme_file_ = folder_.write("mixed.yaml", kScheme);
  }
  [[nodiscard]] std::string scheme(const std::string& name) const {
    return name == "mixed" ? scheme_file_ : name;
  }
  [[nodiscard]] ModelOptions options(const std::string& name, bool cache = true) const {
    ModelOptions options;
    options.quant = models::QuantScheme::parse(scheme(name)).value();
    options.packed_cache = {cache, 1, folder_.path() + "/cache"};
    return options;
  }
  struct Loaded {
    std::vector<float> logits;
    std::vector<std::string> notes;
    std::string format;
  };
  [[nodiscard]] Loaded load(const ModelOptions& options) const {
    const auto model = open_model(model_, options);
    if (model == nullptr) return {};
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 9; ++i) tokens.push_back(i * 7 % 30);
    return {decode_rows(*model, {}, tokens), model->notes(), model->weight_format()};
  }
  [[nodiscard]] std::vector<std::string> paths(const std::string& name) const {
    const auto checkpoint = Checkpoint::open(model_);
    const ModelOptions with = options(name);
    return models::PackedCache(*checkpoint, with.quant, with.packed_cache).paths();
  }

  TestFolder folder_;
  std::string model_;
  std::string scheme_file_;
};

TEST_P(PackedCacheTest, EveryLoadGivesTheSameBits) {
  for (const char* name : {"q4", "q8", "mixed"}) {
    for (kernels::Backend* backend : backends()) {
      const auto on = [&](ModelOptions options) {
        options.backend = backend;
        return options;
      };
      const Loaded plain = load(on(options(name, false)));
      ASSERT_FALSE(plain.logits.empty());
      const Loaded first = load(on(options(name)));  // written by the first backend
      ASSERT_TRUE(fs::exists(paths(name)[0])) << name;
      const auto written = fs::last_write_time(paths(name)[0]);
      const Loaded second = load(on(options(name)));
      EXPECT_TRUE(same_bits(first.logits, plain.logits)) << name;
      EXPECT_TRUE(same_bits(second.logits, plain.logits)) << name;
      ModelOptions one_session = on(options(name));  // which keeps panels of what it packs
      one_session.layouts.session = kernels::SwitchSet();
      EXPECT_TRUE(same_bits(load(one_session).logits, plain.logits)) << name;
      EXPECT_EQ(fs::last_write_time(paths(name)[0]), written) << name;
      EXPECT_EQ(without_kept(first.notes), plain.notes);
      EXPECT_EQ(second.notes, plain.notes);
    }
  }
  EXPECT_FALSE(fs::exists(folder_.path() + "/cache"));
}

TEST_P(PackedCacheTest, NothingIsWrittenWhereItIsOff) {
  (void)load(options("q4", false));
  EXPECT_FALSE(fs::exists(paths("q4")[0]));
}

// What is in the file is what is computed with: one code changed, its checksum with it, shows.
TEST_P(PackedCacheTest, TheSecondLoadReadsTheFile) {
  const Loaded first = load(options("q8"));
  const std::string path = paths("q8")[0];
  fs::copy(path, folder_.path() + "/kept");
  // The same model with other weights in the place of its own.
  const auto checkpoint = Checkpoint::open(model_);
  ASSERT_TRUE(checkpoint.ok());
  const auto model = open_model(model_, options("q8", false));
  std::vector<models::PackedSource> sources;
  std::vector<float> ones(1 << 20, 0.5F);
  std::vector<std::unique_ptr<const RowSource>> rows;
  for (const models::PlacedWeight& weight : model->weights()) {
    if (weight.role == models::WeightRole::kVector) continue;
    const Weight& placed = weight.placed;
    ASSERT_LE(placed.n * placed.k, static_cast<int64_t>(ones.size()));
    rows.push_back(
        std::make_unique<const StoredRows>(Weight{ones.data(), DType::kF32, placed.n, placed.k}));
    sources.push_back({weight.name, {nullptr, placed.type, placed.n, placed.k}, rows.back().get()});
  }
  ThreadPool pool(1);
  const models::PackedKey key{checkpoint->content_hash(), "q8", kPackingVersion};
  ASSERT_TRUE(models::write_packed_file(path, key, sources, pool, {}).ok());
  EXPECT_FALSE(same_bits(load(options("q8")).logits, first.logits));
}

TEST_P(PackedCacheTest, ADamagedOrStaleFileIsPackedAgainWithANote) {
  const Loaded plain = load(options("q4", false));
  (void)load(options("q4"));
  const std::string path = paths("q4")[0];
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1000, std::ios::end);
    const int old = file.peek();
    file.put(static_cast<char>(old ^ 1));
  }
  const Loaded repaired = load(options("q4"));
  EXPECT_TRUE(same_bits(repaired.logits, plain.logits));
  EXPECT_THAT(repaired.notes, Contains(HasSubstr("are damaged; packed again")));
  EXPECT_EQ(load(options("q4")).notes, plain.notes);
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_TRUE(same_bits(load(options("q4")).logits, plain.logits));

  // Another file with the name of this model's.
  (void)load(options("q8"));
  fs::copy(paths("q8")[0], path, fs::copy_options::overwrite_existing);
  const Loaded replaced = load(options("q4"));
  EXPECT_TRUE(same_bits(replaced.logits, plain.logits));
  EXPECT_THAT(replaced.notes, Contains(HasSubstr("another model or scheme; packed again")));
}

TEST_P(PackedCacheTest, WhereTheModelsFolderWillNotDoTheUsersDoes) {
  const Loaded plain = load(options("q4", false));
  const std::vector<std::string> both = paths("q4");
  ASSERT_EQ(both.size(), 2U);
  fs::create_directory(both[0]);  // nothing can be renamed to it
  EXPECT_TRUE(same_bits(load(options("q4")).logits, plain.logits));
  EXPECT_TRUE(fs::is_regular_file(both[1]));
  const Loaded second = load(options("q4"));
  EXPECT_TRUE(same_bits(second.logits, plain.logits));
  EXPECT_EQ(second.notes, plain.notes);
  fs::remove(both[1]);
  fs::create_directory(both[1]);
  const Loaded neither = load(options("q4"));
  EXPECT_TRUE(same_bits(neither.logits, plain.logits));
  EXPECT_THAT(neither.notes.back(), HasSubstr("packed weights are not kept for the next load: "));
}

// The largest file, which has the weights.
std::string weights_of(const Checkpoint& checkpoint) {
  return std::ranges::max(checkpoint.files(), {},
                          [](const std::string& path) { return fs::file_size(path); });
}

TEST_P(PackedCacheTest, AFileThatIsWrittenToUnderTheLoadIsRefused) {
  const auto model = open_model(model_, options("q8"));
  const std::string file = weights_of(model->checkpoint());
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-1, std::ios::end);
  const int last = stream.peek();
  stream.put(static_cast<char>(last ^ 1));
  stream.close();
  const Status loaded = model->load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(loaded.error().message, HasSubstr(file));
  EXPECT_THAT(loaded.error().message, HasSubstr("was written to while it was loaded"));
  EXPECT_THAT(model->notes().back(), HasSubstr("are not kept for the next load: " + file));
  EXPECT_FALSE(fs::exists(paths("q8")[0]));
  EXPECT_FALSE(fs::exists(paths("q8")[1]));
}

TEST_P(PackedCacheTest, AFileThatIsReplacedUnderTheLoadIsNotPackedForGood) {
  const auto model = open_model(model_, options("q8"));
  const std::string file = weights_of(model->checkpoint());
  fs::copy(file, folder_.path() + "/other");
  fs::rename(folder_.path() + "/other", file);
  ASSERT_TRUE(model->load().ok());
  EXPECT_THAT(model->notes().back(), HasSubstr("are not kept for the next load: " + file));
  EXPECT_FALSE(fs::exists(paths("q8")[0]));
}

INSTANTIATE_TEST_SUITE_P(Golden, PackedCacheTest,
                         ::testing::Values("oracle/llama-h48-untied", "oracle/llama-fp8",
                                           "gguf/tiny-llama-mixed.gguf"),
                         test_name);

TEST(PackedCache, SmallAndSyntheticModelsAreNotKept) {
  TestFolder folder;
  ModelOptions options;
  options.quant = models::QuantScheme::parse("q4").value();
  options.packed_cache = {true, 1, folder.path()};
  const auto model = open_model("synth:tiny-llama", options);
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(model->load().ok());
  EXPECT_THAT(model->notes(), IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder.path()));

  const fs::path golden = golden_path("oracle/llama-h48-tied");
  fs::copy(golden, folder.path() + "/model");
  options.packed_cache.least_bytes = 1 << 20;
  const auto small = open_model(folder.path() + "/model", options);
  ASSERT_NE(small, nullptr);
  ASSERT_TRUE(small->load().ok());
  EXPECT_FALSE(fs::exists(folder.path() + "/model/model.q4.reckon-packed"));
}

TEST(BlockFp8Model, SaysWhatItBecame) {
  const auto plain = open_model(golden_path("oracle/llama-fp8"));
  ASSERT_NE(plain, nullptr);
  EXPECT_EQ(plain->weight_format(), "f32+bf16");
  EXPECT_THAT(plain->notes(),
              ElementsAre(HasSubstr("dequantised 14 tensors from block FP8 to f32: +")));
  const auto packed =
      open_model(golden_path("oracle/llama-fp8"), {models::QuantScheme::parse("q8").value()});
  ASSERT_NE(packed, nullptr);
  EXPECT_EQ(packed->weight_format(), "p8");
  EXPECT_THAT(packed->notes(), IsEmpty());
}

}  // namespace
}  // namespace reckon::engine
