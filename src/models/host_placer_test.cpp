#include "models/host_placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/native_types.h"
#include "kernels/panels.h"
#include "models/model.h"
#include "models/test_checkpoints.h"
#include "tensor/quantise.h"
#include "tensor/random_rows.h"
#include "tensor/recode.h"
#include "tensor/test_blocks.h"

namespace reckon::models {
namespace {

using ::testing::HasSubstr;

QuantScheme scheme(const char* name) {
  return QuantScheme::parse(name).value();
}

// A float32 or bf16 matrix as a file would hold it.
struct Stored {
  std::vector<float> values;
  std::vector<uint16_t> brains;
  Weight weight;

  Stored(DType type, int64_t n, int64_t k, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal(0, 0.05F);
    for (int64_t i = 0; i < n * k; ++i) {
      brains.push_back(float_to_bf16(normal(random)));
      values.push_back(bf16_to_float(brains.back()));
    }
    const bool brain = type == DType::kBF16;
    weight = {brain ? static_cast<const void*>(brains.data()) : values.data(), type, n, k};
  }
};

std::vector<uint8_t> packed_rows(DType type, const Stored& stored) {
  const int64_t n = stored.weight.n, k = stored.weight.k;
  std::vector<uint8_t> bytes(static_cast<size_t>(n * row_bytes(type, k)));
  for (int64_t j = 0; j < n; ++j) {
    EXPECT_TRUE(
        quantise_row(type, stored.values.data() + j * k, k, bytes.data() + j * row_bytes(type, k)));
  }
  return bytes;
}

TEST(QuantScheme, KnowsItsNames) {
  EXPECT_FALSE(scheme("none").packs());
  EXPECT_EQ(scheme("none").type_of("x"), std::nullopt);
  EXPECT_EQ(scheme("q4").type_of("x"), DType::kP4);
  EXPECT_EQ(scheme("q8").type_of("x"), DType::kP8);
  const auto unknown = QuantScheme::parse("q5");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(unknown.error().message, HasSubstr("none, q4, q8"));
}

TEST(HostPlacer, ReadsInPlaceWhereNothingIsPacked) {
  const Stored matrix(DType::kBF16, 5, 48, 1), vector(DType::kF32, 1, 48, 2);
  HostPlacer placer;
  const WeightRef m = placer.plan("m", WeightRole::kMatrix, matrix.weight).value();
  const WeightRef v = placer.plan("v", WeightRole::kVector, vector.weight).value();
  const Weight& placed = m;
  EXPECT_EQ(placed.data, nullptr);
  EXPECT_EQ(placed.type, DType::kBF16);
  EXPECT_EQ(placer.planned_bytes(), 5U * 48 * 2 + 48 * 4);
  ASSERT_TRUE(placer.load({}).ok());
  EXPECT_EQ(placed.data, matrix.brains.data());
  EXPECT_EQ(static_cast<const Weight&>(v).data, vector.values.data());
  EXPECT_EQ(placer.allocated_bytes(), 0U);
}

TEST(HostPlacer, CopiesVectorsOfOtherPlainTypes) {
  const Stored vector(DType::kBF16, 1, 20, 3);
  HostPlacer placer;
  const Weight& placed = placer.plan("v", WeightRole::kVector, vector.weight).value();
  EXPECT_EQ(placed.type, DType::kF32);
  EXPECT_EQ(placer.planned_bytes(), 128U);  // 80, rounded
  ASSERT_TRUE(placer.load({}).ok());
  EXPECT_EQ(std::memcmp(placed.data, vector.values.data(), 20 * sizeof(float)), 0);
  EXPECT_EQ(placer.allocated_bytes(), 128U);
}

TEST(HostPlacer, PacksRowByRowOnAnyNumberOfThreads) {
  // The second is of several tasks.
  const Stored small(DType::kF32, 7, 48, 4), large(DType::kBF16, 700, 320, 5);
  for (const char* name : {"q4", "q8"}) {
    const DType type = *scheme(name).type_of("");
    for (const int threads : {1, 3}) {
      HostPlacer placer(scheme(name));
      const Weight& s = placer.plan("s", WeightRole::kMatrix, small.weight).value();
      const Weight& l = placer.plan("l", WeightRole::kEmbedding, large.weight).value();
      const std::vector<uint8_t> expected_s = packed_rows(type, small);
      const std::vector<uint8_t> expected_l = packed_rows(type, large);
      EXPECT_EQ(placer.planned_bytes(),
                arena_rounded(expected_s.size()) + arena_rounded(expected_l.size()));
      EXPECT_EQ(placer.allocated_bytes(), 0U);
      EXPECT_EQ(s.data, nullptr);
      ASSERT_TRUE(placer.load({threads, {}}).ok());
      EXPECT_EQ(placer.allocated_bytes(), placer.planned_bytes());
      EXPECT_EQ(s.type, type);
      EXPECT_EQ(static_cast<size_t>(s.bytes()), expected_s.size());
      EXPECT_EQ(std::memcmp(s.data, expected_s.data(), expected_s.size()), 0);
      EXPECT_EQ(std::memcmp(l.data, expected_l.data(), expected_l.size()), 0);
      for (const Weight* weight : {&s, &l}) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(weight->data) % kArenaAlignment, 0U);
      }
    }
  }
}

// A checkpoint without data in memory: bytes are those of its rows, on any number of threads, in
// the place's type or in the checkpoint's own.
TEST(HostPlacer, MakesWhatIsNotInMemory) {
  constexpr int64_t kN = 700, kK = 330;
  const auto rows = std::make_shared<const RandomRows>(1, "m", RandomKind::kMatrix, kN, kK);
  const Weight stored{nullptr, DType::kBF16, kN, kK};
  for (const char* name : {"none", "q4", "q8"}) {
    const DType type = scheme(name).type_of("").value_or(DType::kBF16);
    std::vector<uint8_t> expected(static_cast<size_t>(kN * row_bytes(type, kK)));
    ASSERT_TRUE(rows->rows(0, kN, type, expected.data()).ok());
    for (const int threads : {1, 3}) {
      HostPlacer placer(scheme(name));
      const Weight& placed = placer.plan("m", WeightRole::kMatrix, stored, rows).value();
      EXPECT_EQ(placer.planned_bytes(), arena_rounded(expected.size()));
      EXPECT_EQ(placer.allocated_bytes(), 0U);
      ASSERT_TRUE(placer.load({threads, {}}).ok());
      EXPECT_EQ(placer.allocated_bytes(), placer.planned_bytes());
      EXPECT_EQ(placed.type, type);
      EXPECT_EQ(std::memcmp(placed.data, expected.data(), expected.size()), 0);
    }
  }
}

// What is packed stands in the layouts that the session reads, and nowhere else.
TEST(HostPlacer, KeepsOfPackedMatricesWhatTheSessionReads) {
  constexpr int64_t kN = 700, kK = 320;
  if (!kernels::reads_panels(kernels::cpu_backend(), DType::kP4, kN, kK)) {
    GTEST_SKIP() << "no kernel on this machine reads panels";
  }
  const Stored stored(DType::kBF16, kN, kK, 6), padded(DType::kBF16, kN, kK - 20, 7);
  const std::vector<uint8_t> rows = packed_rows(DType::kP4, stored);
  const uint64_t panel_bytes = kernels::panel_bytes(DType::kP4, kN, kK);
  std::vector<char> panels(panel_bytes);
  kernels::lay_out_panels(DType::kP4, rows.data(), kN, kK, panels.data());
  kernels::SwitchSet reference;
  ASSERT_TRUE(reference.set("numerics", "reference").ok());
  struct Case {
    HostLayouts layouts;
    bool rows, panels;
  };
  for (const Case& wanted : {Case{{.session = kernels::SwitchSet()}, false, true},
                             Case{{.session = reference}, true, false}, Case{{}, true, false},
                             Case{{.session = reference, .both = true}, true, true}}) {
    for (const int threads : {1, 3}) {
      HostPlacer placer(scheme("q4"), kernels::cpu_backend(), wanted.layouts);
      const Weight& placed = placer.plan("m", WeightRole::kMatrix, stored.weight).value();
      const Weight& tail = placer.plan("t", WeightRole::kMatrix, padded.weight).value();
      EXPECT_EQ(placed.panels_alone, wanted.panels && !wanted.rows);
      EXPECT_FALSE(tail.in_panels) << "rows that end in a padded group have no panels";
      EXPECT_EQ(placer.planned_panel_bytes(), wanted.panels ? arena_rounded(panel_bytes) : 0);
      ASSERT_TRUE(placer.load({threads, {}}).ok());
      EXPECT_EQ(placer.allocated_bytes(), placer.planned_bytes());
      ASSERT_EQ(placed.data != nullptr, wanted.rows);
      ASSERT_EQ(placed.panels != nullptr, wanted.panels);
      EXPECT_TRUE(!wanted.rows || std::memcmp(placed.data, rows.data(), rows.size()) == 0);
      EXPECT_TRUE(!wanted.panels || std::memcmp(placed.panels, panels.data(), panel_bytes) == 0);
    }
  }
}

TEST(HostPlacer, NamesTheTensorThatDoesNotPackIntoPanels) {
  Stored bad(DType::kF32, 40, 128, 8);
  bad.values[128 * 33 + 5] = std::numeric_limits<float>::infinity();
  HostPlacer placer(scheme("q4"), kernels::cpu_backend(), {.session = kernels::SwitchSet()});
  ASSERT_TRUE(placer.plan("blk.0", WeightRole::kMatrix, bad.weight).ok());
  const Status loaded = placer.load({2, {}});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("tensor 'blk.0', row 33"));
  EXPECT_EQ(placer.allocated_bytes(), 0U);
}

TEST(HostPlacer, ConvertsWhatHasNoKernels) {
  constexpr int64_t kRows = 300, kColumns = 512;
  RandomBlocks random(10);
  const std::vector<uint8_t> fives = random.rows(DType::kQ5_0, kRows, kColumns);
  const std::vector<uint8_t> twos = random.rows(DType::kQ2_K, kRows, kColumns);
  const auto stored = [](const std::vector<uint8_t>& bytes, DType type) {
    return Weight{bytes.data(), type, kRows, kColumns};
  };
  for (const int threads : {1, 3}) {
    HostPlacer placer;
    const Weight& recoded =
        placer.plan("a", WeightRole::kMatrix, stored(fives, DType::kQ5_0)).value();
    const Weight& packed =
        placer.plan("b", WeightRole::kEmbedding, stored(twos, DType::kQ2_K)).value();
    ASSERT_EQ(recoded.type, DType::kQ8_0);
    ASSERT_EQ(packed.type, DType::kP8);
    const std::vector<std::string> notes = {
        "converted 1 tensor from q5_0 to q8_0, which has kernels here: +56.2 KiB",
        "converted 1 tensor from q2_k to p8, which has kernels here: +105.5 KiB"};
    EXPECT_EQ(placer.notes(), notes);
    ASSERT_TRUE(placer.load({threads, {}}).ok());
    std::vector<float> row(kColumns);
    std::vector<uint8_t> expected(static_cast<size_t>(row_bytes(DType::kQ8_0, kColumns)));
    for (int64_t j = 0; j < kRows; ++j) {
      const uint8_t* from = fives.data() + j * row_bytes(DType::kQ5_0, kColumns);
      const int64_t stride = row_bytes(DType::kQ8_0, kColumns);
      ASSERT_TRUE(recode_row(DType::kQ5_0, from, kColumns, DType::kQ8_0, expected.data()));
      ASSERT_EQ(std::memcmp(static_cast<const char*>(recoded.data) + j * stride, expected.data(),
                            static_cast<size_t>(stride)),
                0);
      const int64_t packed_stride = row_bytes(DType::kP8, kColumns);
      dequantize_row(DType::kQ2_K, twos.data() + j * row_bytes(DType::kQ2_K, kColumns), kColumns,
                     row.data());
      ASSERT_TRUE(quantise_row(DType::kP8, row.data(), kColumns, expected.data()));
      ASSERT_EQ(std::memcmp(static_cast<const char*>(packed.data) + j * packed_stride,
                            expected.data(), static_cast<size_t>(packed_stride)),
                0);
    }
  }
}

TEST(HostPlacer, SaysNothingOfPackingThatWasAskedFor) {
  RandomBlocks random(11);
  const std::vector<uint8_t> bytes = random.rows(DType::kQ5_0, 4, 64);
  HostPlacer placer(scheme("q4"));
  const Weight& placed =
      placer.plan("a", WeightRole::kMatrix, {bytes.data(), DType::kQ5_0, 4, 64}).value();
  EXPECT_EQ(placed.type, DType::kP4);
  EXPECT_TRUE(placer.notes().empty());
}

TEST(HostPlacer, NamesAConvertedWeightThatDoesNotFitItsType) {
  RandomBlocks random(12);
  std::vector<uint8_t> bytes = random.rows(DType::kQ5_0, 40, 64);
  bytes[39 * 44 + 23] = 0x7c;  // the upper byte of the last block's scale
  HostPlacer placer;
  ASSERT_TRUE(placer.plan("w", WeightRole::kMatrix, {bytes.data(), DType::kQ5_0, 40, 64}).ok());
  const Status status = placer.load({2, {}});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("tensor 'w', row 39"));
  EXPECT_THAT(status.error().message, HasSubstr("q8_0"));
}

TEST(HostPlacer, TellsHowFarItIs) {
  const Stored one(DType::kF32, 8, 64, 6), two(DType::kF32, 16, 64, 7),
      vector(DType::kF32, 1, 8, 8);
  HostPlacer placer(scheme("q4"));
  ASSERT_TRUE(placer.plan("one", WeightRole::kMatrix, one.weight).ok());
  ASSERT_TRUE(placer.plan("vector", WeightRole::kVector, vector.weight).ok());
  ASSERT_TRUE(placer.plan("two", WeightRole::kMatrix, two.weight).ok());
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  ASSERT_TRUE(
      placer.load({1, [&](uint64_t done, uint64_t total) { seen.emplace_back(done, total); }})
          .ok());
  const std::vector<std::pair<uint64_t, uint64_t>> expected{{8 * 64 * 4, 24 * 64 * 4},
                                                            {24 * 64 * 4, 24 * 64 * 4}};
  EXPECT_EQ(seen, expected);
}

TEST(HostPlacer, NamesAWeightThatDoesNotFitItsType) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e30F}) {
    Stored matrix(DType::kF32, 900, 96, 9);
    matrix.values[850 * 96 + 3] = matrix.values[700 * 96 + 95] = bad;
    HostPlacer placer(scheme("q8"));
    const Weight& placed = placer.plan("some.weight", WeightRole::kMatrix, matrix.weight).value();
    const Status status = placer.load({2, {}});
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("'some.weight'"));
    EXPECT_THAT(status.error().message, HasSubstr("p8"));
    EXPECT_EQ(placed.data, nullptr);
    EXPECT_EQ(placer.allocated_bytes(), 0U);
  }
}

// A matrix gets panels and leaves its rows in the file; a table that is multiplied as well counts
// both; one that is only looked up has no use for panels.
TEST(HostPlacer, LaysOutPanelsForKernelsThatReadThem) {
  constexpr int64_t kRows = 300, kColumns = 512;
  if (!kernels::reads_panels(kernels::cpu_backend(), DType::kQ4_K, kRows, kColumns)) {
    GTEST_SKIP() << "no kernel on this machine reads panels";
  }
  RandomBlocks random(11);
  const std::vector<uint8_t> bytes = random.rows(DType::kQ4_K, kRows, kColumns);
  const Weight stored{bytes.data(), DType::kQ4_K, kRows, kColumns};
  const uint64_t panel_bytes = kernels::panel_bytes(DType::kQ4_K, kRows, kColumns);
  std::vector<char> expected(panel_bytes);
  kernels::lay_out_panels(DType::kQ4_K, bytes.data(), kRows, kColumns, expected.data());
  for (const int threads : {1, 3}) {
    HostPlacer placer;
    const Weight& matrix = placer.plan("m", WeightRole::kMatrix, stored).value();
    const Weight& tied = placer.plan("t", WeightRole::kTiedEmbedding, stored).value();
    const Weight& table = placer.plan("e", WeightRole::kEmbedding, stored).value();
    EXPECT_TRUE(matrix.in_panels && tied.in_panels && !table.in_panels);
    const uint64_t rounded = arena_rounded(panel_bytes);
    EXPECT_EQ(placer.weights()[0].bytes, rounded);
    EXPECT_EQ(placer.weights()[1].bytes, rounded + bytes.size());
    EXPECT_EQ(placer.weights()[2].bytes, bytes.size());
    EXPECT_EQ(placer.planned_panel_bytes(), 2 * rounded);
    EXPECT_TRUE(placer.notes().empty());
    uint64_t done_last = 0, total_last = 0;
    ASSERT_TRUE(placer
                    .load({threads,
                           [&](uint64_t done, uint64_t total) {
                             done_last = done;
                             total_last = total;
                           }})
                    .ok());
    EXPECT_EQ(done_last, 2 * bytes.size());
    EXPECT_EQ(total_last, 2 * bytes.size());
    EXPECT_EQ(placer.allocated_bytes(), 2 * rounded);
    EXPECT_EQ(matrix.data, bytes.data());
    for (const Weight* weight : {&matrix, &tied}) {
      EXPECT_EQ(std::memcmp(weight->panels, expected.data(), panel_bytes), 0);
    }
    EXPECT_EQ(table.panels, nullptr);
  }
}

TEST(HostPlacer, PacksATiedEmbeddingOnce) {
  TinyFolder folder;
  folder.config["tie_word_embeddings"] = true;
  folder.shapes.erase("lm_head.weight");
  const Checkpoint checkpoint = folder.open();
  HostPlacer placer(scheme("q4"));
  const auto model = build_model(checkpoint, placer);
  ASSERT_TRUE(model.ok()) << model.error().message;
  int64_t embeddings = 0, vectors = 0;
  uint64_t bytes = 0;
  for (const PlacedWeight& weight : placer.weights()) {
    embeddings += weight.role == WeightRole::kTiedEmbedding ? 1 : 0;
    vectors += weight.role == WeightRole::kVector ? 1 : 0;
    EXPECT_EQ(weight.placed.type, weight.role == WeightRole::kVector ? DType::kF32 : DType::kP4);
    bytes += weight.bytes;
  }
  EXPECT_EQ(placer.weights().size(), folder.shapes.size());
  EXPECT_EQ(embeddings, 1);
  EXPECT_EQ(vectors, 3);
  EXPECT_EQ((*model)->info().weight_bytes, bytes);
}

}  // namespace
}  // namespace reckon::models
