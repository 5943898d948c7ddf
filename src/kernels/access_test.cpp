// What the contracts in kernel.h say that an op reads and writes, written down by hand.
#include "kernels/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

using ::testing::UnorderedElementsAre;

constexpr AccessKind kRead = AccessKind::kRead;
constexpr AccessKind kWrite = AccessKind::kWrite;
constexpr AccessKind kBoth = AccessKind::kReadWrite;

// Buffers are told apart by their addresses alone.
float a[1], b[1], c[1], d[1], e[1], f[1], g[1], h[1];

AttentionArgs attention() {
  return {.q = a,
          .k = b,
          .v = c,
          .cache_k = d,
          .cache_v = e,
          .kv_type = DType::kF16,
          .out = f,
          .rows = 3,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .capacity = 16,
          .first_position = 5,
          .scale = 1};
}

TEST(Access, OfTheSimpleOps) {
  const int32_t tokens[3] = {};
  Pick picks[3];
  EXPECT_THAT(accesses_of(EmbeddingArgs{.table = a,
                                        .weight_type = DType::kQ8_0,
                                        .tokens = tokens,
                                        .out = b,
                                        .rows = 3,
                                        .n = 10,
                                        .k = 64}),
              UnorderedElementsAre(Access{a, 10 * 2 * 34, kRead}, Access{tokens, 12, kRead},
                                   Access{b, 3 * 64 * 4, kWrite}));
  EXPECT_THAT(
      accesses_of(RmsNormArgs{.x = a, .weight = b, .out = c, .rows = 3, .k = 8, .epsilon = 0}),
      UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 32, kRead}, Access{c, 96, kWrite}));
  EXPECT_THAT(accesses_of(MatmulArgs{.x = a,
                                     .weight = b,
                                     .weight_type = DType::kF16,
                                     .out = c,
                                     .rows = 3,
                                     .n = 5,
                                     .k = 8,
                                     .params = {}}),
              UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 5 * 8 * 2, kRead},
                                   Access{c, 60, kWrite}));
  EXPECT_THAT(accesses_of(RopeArgs{.x = a, .rows = 3, .heads = 2, .head_dim = 8, .dims = 4}),
              UnorderedElementsAre(Access{a, 3 * 2 * 8 * 4, kBoth}));
  EXPECT_THAT(
      accesses_of(SwigluArgs{.gate = a, .up = b, .out = c, .rows = 3, .k = 8}),
      UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 96, kRead}, Access{c, 96, kWrite}));
  EXPECT_THAT(
      accesses_of(GegluArgs{.gate = a, .up = b, .out = c, .rows = 3, .k = 8}),
      UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 96, kRead}, Access{c, 96, kWrite}));
  EXPECT_THAT(accesses_of(AddBiasArgs{.x = c, .bias = b, .rows = 3, .k = 8}),
              UnorderedElementsAre(Access{c, 96, kBoth}, Access{b, 32, kRead}));
  EXPECT_THAT(accesses_of(ScaleArgs{.x = c, .rows = 3, .k = 8, .factor = 2}),
              UnorderedElementsAre(Access{c, 96, kBoth}));
  EXPECT_THAT(
      accesses_of(AddArgs{.x = a, .y = b, .out = c, .rows = 3, .k = 8}),
      UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 96, kRead}, Access{c, 96, kWrite}));
  EXPECT_THAT(accesses_of(SampleArgs{.logits = a, .picks = picks, .rows = 3, .n = 10}),
              UnorderedElementsAre(Access{a, 120, kRead}, Access{picks, sizeof picks, kWrite}));
}

TEST(Access, OfAttentionReadsAndWritesTheCache) {
  EXPECT_THAT(
      accesses_of(attention()),
      UnorderedElementsAre(Access{a, 3 * 4 * 8 * 4, kRead}, Access{b, 3 * 2 * 8 * 4, kRead},
                           Access{c, 3 * 2 * 8 * 4, kRead}, Access{d, 2 * 16 * 8 * 2, kBoth},
                           Access{e, 2 * 16 * 8 * 2, kBoth}, Access{f, 3 * 4 * 8 * 4, kWrite}));
}

TEST(Access, OfRecurrentLayersAndGates) {
  EXPECT_THAT(accesses_of(CausalConvArgs{.x = a,
                                         .weight = b,
                                         .inputs = c,
                                         .out = d,
                                         .rows = 3,
                                         .channels = 8,
                                         .width = 4,
                                         .ring = 5}),
              UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 128, kRead},
                                   Access{c, 160, kBoth}, Access{d, 96, kWrite}));
  EXPECT_THAT(accesses_of(GatedDeltaRuleArgs{.qkv = a,
                                             .a = b,
                                             .b = c,
                                             .a_log = d,
                                             .dt_bias = e,
                                             .states = f,
                                             .out = g,
                                             .rows = 3,
                                             .key_heads = 2,
                                             .value_heads = 4,
                                             .key_dim = 8,
                                             .value_dim = 16,
                                             .slots = 5}),
              UnorderedElementsAre(Access{a, 3 * (2 * 2 * 8 + 4 * 16) * 4, kRead},
                                   Access{b, 48, kRead}, Access{c, 48, kRead}, Access{d, 16, kRead},
                                   Access{e, 16, kRead}, Access{f, 5 * 4 * 8 * 16 * 4, kBoth},
                                   Access{g, 3 * 4 * 16 * 4, kWrite}));
  EXPECT_THAT(
      accesses_of(GatedRmsNormArgs{.x = a, .z = b, .weight = c, .out = d, .rows = 3, .k = 8}),
      UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 96, kRead}, Access{c, 32, kRead},
                           Access{d, 96, kWrite}));
  EXPECT_THAT(
      accesses_of(SplitGateArgs{.x = a, .q = b, .gate = c, .rows = 3, .heads = 2, .dim = 8}),
      UnorderedElementsAre(Access{a, 384, kRead}, Access{b, 192, kWrite}, Access{c, 192, kWrite}));
  EXPECT_THAT(accesses_of(SigmoidGateArgs{.x = a, .gate = b, .rows = 3, .k = 8}),
              UnorderedElementsAre(Access{a, 96, kBoth}, Access{b, 96, kRead}));
  EXPECT_THAT(
      accesses_of(GatedAddArgs{.y = a, .gate = b, .out = c, .rows = 3, .k = 8}),
      UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 12, kRead}, Access{c, 96, kBoth}));
  EXPECT_THAT(
      accesses_of(ConcatArgs{.a = a, .b = b, .out = c, .rows = 3, .a_columns = 2, .b_columns = 5}),
      UnorderedElementsAre(Access{a, 24, kRead}, Access{b, 60, kRead}, Access{c, 84, kWrite}));
}

TEST(Access, OfExperts) {
  EXPECT_THAT(
      accesses_of(RouteArgs{.logits = a, .selection = b, .rows = 3, .experts = 6, .top_k = 2}),
      UnorderedElementsAre(Access{a, 72, kRead}, Access{b, 48, kWrite}));
  ExpertMatmulSwigluArgs swiglu{.x = a,
                                .selection = b,
                                .gate = c,
                                .up = d,
                                .weight_type = DType::kQ8_0,
                                .out = e,
                                .rows = 3,
                                .experts = 6,
                                .top_k = 2,
                                .n = 5,
                                .k = 64};
  const uint64_t weights = 6 * 5 * 2 * 34;
  EXPECT_THAT(
      accesses_of(swiglu),
      UnorderedElementsAre(Access{a, 768, kRead}, Access{b, 48, kRead}, Access{c, weights, kRead},
                           Access{d, weights, kRead}, Access{e, 3 * 2 * 5 * 4, kWrite}));
  swiglu.gate_panels = f;
  swiglu.up_panels = g;
  EXPECT_EQ(accesses_of(swiglu)[2].data, f);
  EXPECT_EQ(accesses_of(swiglu)[3].data, g);
  ExpertMatmulCombineArgs combine{.x = a,
                                  .selection = b,
                                  .down = c,
                                  .weight_type = DType::kQ8_0,
                                  .out = e,
                                  .rows = 3,
                                  .experts = 6,
                                  .top_k = 2,
                                  .n = 5,
                                  .k = 64};
  EXPECT_THAT(accesses_of(combine),
              UnorderedElementsAre(Access{a, 2 * 768, kRead}, Access{b, 48, kRead},
                                   Access{c, weights, kRead}, Access{e, 3 * 5 * 4, kWrite}));
  combine.down_panels = f;
  EXPECT_EQ(accesses_of(combine)[2].data, f);
}

TEST(Access, OfTheCompositions) {
  EXPECT_THAT(accesses_of(AddRmsNormArgs{
                  .x = a, .residual = b, .weight = c, .out = d, .rows = 3, .k = 8, .epsilon = 0}),
              UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 96, kBoth}, Access{c, 32, kRead},
                                   Access{d, 96, kWrite}));
  EXPECT_THAT(accesses_of(MatmulGroupArgs{.x = a,
                                          .parts = {{b, c, 5}, {d, e, 6}, {f, g, 7}},
                                          .count = 2,
                                          .weight_type = DType::kF32,
                                          .rows = 3,
                                          .k = 8,
                                          .params = {}}),
              UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 5 * 8 * 4, kRead},
                                   Access{c, 3 * 5 * 4, kWrite}, Access{d, 6 * 8 * 4, kRead},
                                   Access{e, 3 * 6 * 4, kWrite}));
  EXPECT_THAT(accesses_of(MatmulSwigluArgs{.x = a,
                                           .gate = b,
                                           .up = c,
                                           .weight_type = DType::kF32,
                                           .out = d,
                                           .rows = 3,
                                           .n = 5,
                                           .k = 8,
                                           .params = {}}),
              UnorderedElementsAre(Access{a, 96, kRead}, Access{b, 160, kRead},
                                   Access{c, 160, kRead}, Access{d, 60, kWrite}));
  RopeAttentionArgs rope{.attention = attention(), .q_norm = g, .k_norm = h};
  EXPECT_THAT(
      accesses_of(rope),
      UnorderedElementsAre(Access{a, 3 * 4 * 8 * 4, kBoth}, Access{b, 3 * 2 * 8 * 4, kBoth},
                           Access{c, 3 * 2 * 8 * 4, kRead}, Access{d, 2 * 16 * 8 * 2, kBoth},
                           Access{e, 2 * 16 * 8 * 2, kBoth}, Access{f, 3 * 4 * 8 * 4, kWrite},
                           Access{g, 32, kRead}, Access{h, 32, kRead}));
  rope.q_norm = rope.k_norm = nullptr;
  EXPECT_EQ(accesses_of(rope).size(), 6U);
}

}  // namespace
}  // namespace reckon::kernels
