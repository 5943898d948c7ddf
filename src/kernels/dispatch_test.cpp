#include "kernels/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "kernels/call.h"
#include "kernels/fake_table.h"
#include "kernels/recorder.h"
#include "tensor/arena.h"

namespace reckon::kernels {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A layer of a llama-like model, as a family would write it; all buffers are large enough.
class TinyModel {
 public:
  Status forward(Ops& ops, int64_t rows, int64_t first_position) {
    const auto view = [&](int buffer, int64_t columns) {
      return Activation{buffers_[buffer].data(), rows, columns};
    };
    const std::vector<int32_t> tokens(static_cast<size_t>(rows), 7);
    const Activation x = view(0, kWidth), normed = view(1, kWidth), q = view(2, kWidth),
                     k = view(3, kKv), v = view(4, kKv), gate = view(5, kInner),
                     up = view(6, kInner);
    TRY(ops.embedding(weight(DType::kQ8_0, 100, kWidth), tokens, x));
    TRY(ops.rms_norm(x, weight(DType::kF32, 1, kWidth), 1e-5F, normed));
    TRY(ops.matmul(normed, weight(DType::kQ4_1, kWidth, kWidth), q));
    TRY(ops.matmul(normed, weight(DType::kQ4_1, kKv, kWidth), k));
    TRY(ops.matmul(normed, weight(DType::kQ4_1, kKv, kWidth), v));
    TRY(ops.rms_norm(q, weight(DType::kF32, 1, kHead), 1e-5F, q));
    TRY(ops.rope(q, {kWidth / kHead, kHead, kHead, 10000.0, RopePairing::kHalf}, first_position));
    TRY(ops.rope(k, {kKv / kHead, kHead, kHead, 10000.0, RopePairing::kHalf}, first_position));
    TRY(ops.attention(q, k, v,
                      {keys_.data(), values_.data(), DType::kF32, kKv / kHead, kCapacity, kHead},
                      first_position, 0.125F, normed));
    TRY(ops.add(x, normed, x));
    TRY(ops.matmul(normed, weight(DType::kQ8_0, kInner, kWidth), gate));
    TRY(ops.matmul(normed, weight(DType::kQ8_0, kInner, kWidth), up));
    TRY(ops.swiglu(gate, up, gate));
    return {};
  }

 private:
  static constexpr int64_t kWidth = 1280, kHead = 64, kKv = 128, kInner = 256, kCapacity = 32;

  Weight weight(DType type, int64_t n, int64_t k) { return {weights_.data(), type, n, k}; }

  std::vector<std::vector<float>> buffers_ =
      std::vector<std::vector<float>>(7, std::vector<float>(16 * kWidth));
  std::vector<float> keys_ = std::vector<float>(kKv * kCapacity);
  std::vector<float> values_ = std::vector<float>(kKv * kCapacity);
  std::vector<float> weights_ = std::vector<float>(kWidth * kWidth);  // enough for every weight
};

class Dispatch : public ::testing::Test {
 protected:
  std::vector<DispatchRow> observed() const {
    std::vector<DispatchRow> rows;
    for (const TraceCount& counted : trace_.rows()) rows.push_back(counted.row);
    return rows;
  }

  static std::vector<DispatchRow> predicted(Planner& planner, const Recorder& recorder) {
    std::vector<DispatchRow> rows;
    for (const Recorder::Counted& counted : recorder.calls()) {
      rows.push_back(predicted_row(counted.call, **planner.choose(counted.call)));
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  static SwitchSet banded() {
    SwitchSet switches;
    EXPECT_TRUE(switches.set("prefill.tile_order", "band8").ok());
    return switches;
  }

  DispatchResources resources(ThreadPool& threads) {
    return {.threads = &threads,
            .trace = &trace_,
            .scratch = scratch_,
            .scratch_bytes = sizeof scratch_,
            .queue = nullptr,
            .audit = nullptr};
  }

  std::array<Variant, 25> table_ = fake::table();
  Planner planner_{banded(), fake::device(Isa::kAvx2), table_};
  ThreadPool threads_{1};
  Trace trace_;
  alignas(64) unsigned char scratch_[1024];
  Dispatcher dispatcher_{planner_, resources(threads_)};
  TinyModel model_;
};

TEST_F(Dispatch, ObservedIsWhatWasPredictedFromADryRun) {
  Recorder recorder(planner_);
  ASSERT_TRUE(model_.forward(recorder, 5, 0).ok());
  ASSERT_TRUE(model_.forward(dispatcher_, 5, 0).ok());
  for (const Phase phase : {Phase::kDecode, Phase::kVerify}) {
    recorder.set_phase(phase);
    dispatcher_.set_phase(phase);
    const int64_t rows = phase == Phase::kDecode ? 1 : 3;
    ASSERT_TRUE(model_.forward(recorder, rows, 5).ok());
    ASSERT_TRUE(model_.forward(dispatcher_, rows, 5).ok());
  }
  const std::vector<DispatchRow> expected = predicted(planner_, recorder);
  EXPECT_EQ(expected, observed());
  EXPECT_EQ(fingerprint(expected), fingerprint(observed()));
  // Prefill walks bands where the matmul is wide enough for more than one.
  const auto banded_rows =
      std::count_if(expected.begin(), expected.end(),
                    [](const DispatchRow& row) { return row.params == "tile_order=band8"; });
  EXPECT_EQ(banded_rows, 1);
  uint64_t calls = 0, stamps = 0;
  for (const Recorder::Counted& counted : recorder.calls()) calls += counted.count;
  for (const TraceCount& counted : trace_.rows()) stamps += counted.count;
  EXPECT_EQ(calls, 3u * 13);
  EXPECT_EQ(stamps, calls);
}

TEST_F(Dispatch, StampsCarryThePhase) {
  dispatcher_.set_phase(Phase::kVerify);
  EXPECT_EQ(trace_.phase(), Phase::kVerify);
  ASSERT_TRUE(model_.forward(dispatcher_, 2, 0).ok());
  for (const DispatchRow& row : observed()) EXPECT_EQ(row.phase, "verify");
}

TEST_F(Dispatch, GroupsOfColumnsAreNormalisedAsRows) {
  Recorder recorder(planner_);
  ASSERT_TRUE(model_.forward(recorder, 5, 0).ok());
  const OpCall heads{Op::kRmsNorm, Phase::kPrefill, DType::kF32, 5 * 20, 0, 64, 0};
  const auto& calls = recorder.calls();
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [&](const Recorder::Counted& counted) {
    return counted.call == heads && counted.count == 1;
  }));
}

// What the stamps inside the variants are for: a table row, or a dispatcher, whose function is not
// the one that the plan named is found out.
TEST_F(Dispatch, ALyingTableContradictsThePlan) {
  table_.back().function = fake::matmul_with_scratch<fake::kExactAvx2>;  // calls itself fast_avx2
  Recorder recorder(planner_);
  ASSERT_TRUE(model_.forward(recorder, 5, 0).ok());
  ASSERT_TRUE(model_.forward(dispatcher_, 5, 0).ok());
  const std::vector<DispatchRow> expected = predicted(planner_, recorder), seen = observed();
  EXPECT_FALSE(std::includes(expected.begin(), expected.end(), seen.begin(), seen.end()));
  EXPECT_FALSE(std::includes(seen.begin(), seen.end(), expected.begin(), expected.end()));
  EXPECT_NE(fingerprint(expected), fingerprint(seen));
}

TEST_F(Dispatch, ADispatcherThatIgnoresThePlanContradictsIt) {
  const OpCall call = fake::matmul_call(Phase::kPrefill, 5);
  const DispatchRow expected = predicted_row(call, **planner_.choose(call));
  KernelContext context;
  context.threads = &threads_;
  context.trace = &trace_;
  MatmulArgs args;
  args.weight_type = call.weight_type;
  args.rows = call.rows;
  args.n = call.n;
  args.k = call.k;
  std::get<MatmulFn>(table_[2].function)(args, context);
  ASSERT_EQ(observed().size(), 1u);
  EXPECT_NE(observed()[0], expected);
  EXPECT_EQ(observed()[0].variant, "reference");
  EXPECT_EQ(observed()[0].shape, expected.shape);
}

TEST_F(Dispatch, ACallThatNeedsMoreScratchIsRefusedWithBothFigures) {
  const Status status = model_.forward(dispatcher_, 17, 0);  // 17 * 64 bytes by fast_avx2
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kRefused);
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("matmul 17x1280x1280 q4_1"), HasSubstr("fast_avx2"),
                    HasSubstr(format_bytes(17 * 64)), HasSubstr(format_bytes(1024))));
}

TEST_F(Dispatch, TheErrorOfThePlanIsPassedOn) {
  for (Variant& row : table_) row.supports = fake::only_q4_1;
  const Status status = model_.forward(dispatcher_, 1, 0);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("no kernel runs embedding 1x100x1280 q8_0"));
}

// A layer of a hybrid model with experts: every op that TinyModel does not call.
class TinyHybrid {
 public:
  Status forward(Ops& ops, int64_t rows, int64_t first_position) {
    const auto view = [&](int buffer, int64_t columns, int64_t each = 1) {
      return Activation{buffers_[buffer].data(), rows * each, columns};
    };
    const ConvState inputs{ring_.data(), kRing, kQkv};
    const DeltaState states{states_.data(), kRing, kKeyHeads, kValueHeads, kHead, kHead};
    const Weight gates{weights_.data(), DType::kF32, 1, kValueHeads};
    const Weight norm{weights_.data(), DType::kF32, 1, kHead};
    const Activation qkv = view(1, kQkv), out = view(2, kValueHeads * kHead),
                     selection = view(3, 2 * kTopK), inner = view(4, kInner, kTopK);
    TRY(ops.causal_conv(view(0, kQkv), {weights_.data(), DType::kF32, kQkv, 4}, inputs,
                        first_position, qkv));
    TRY(ops.gated_delta_rule(qkv, view(5, kValueHeads), view(6, kValueHeads), {&gates, &gates},
                             states, first_position, out));
    TRY(ops.gated_rms_norm(out, view(7, kValueHeads * kHead), norm, 1e-6F, out));
    TRY(ops.split_gate(view(0, 4 * kHead), 2, view(1, 2 * kHead), view(7, 2 * kHead)));
    TRY(ops.sigmoid_gate(view(1, 2 * kHead), view(7, 2 * kHead)));
    TRY(ops.concat(view(1, kHead), view(7, kHead), view(0, 2 * kHead)));
    TRY(ops.route(view(0, kExperts), RouteWeights::kOfSelected, selection));
    const Weight up{weights_.data(), DType::kQ8_0, kExperts * kInner, kHead};
    const Weight down{weights_.data(), DType::kQ8_0, kExperts * kHead, kInner};
    TRY(ops.expert_matmul_swiglu(view(0, kHead), selection, up, up, kExperts, inner));
    TRY(ops.expert_matmul_combine(inner, selection, down, kExperts, view(2, kHead)));
    return ops.gated_add(view(2, kHead), view(5, 1), view(0, kHead));
  }

 private:
  static constexpr int64_t kKeyHeads = 1, kValueHeads = 2, kHead = 32, kRing = 9, kExperts = 6,
                           kTopK = 2, kInner = 64;
  static constexpr int64_t kQkv = (2 * kKeyHeads + kValueHeads) * kHead;

  std::vector<std::vector<float>> buffers_ =
      std::vector<std::vector<float>>(8, std::vector<float>(8 * 2 * kQkv));
  std::vector<float> ring_ = std::vector<float>(kRing * kQkv);
  std::vector<float> states_ = std::vector<float>(kRing * kValueHeads * kHead * kHead);
  std::vector<float> weights_ = std::vector<float>(kExperts * kInner * kHead);
};

TEST_F(Dispatch, AHybridLayerRunsAsPredicted) {
  TinyHybrid model;
  for (const char* setting : {"numerics=auto", "numerics=reference", "cpu.isa=scalar"}) {
    SwitchSet switches;
    ASSERT_TRUE(switches.set_assignment(setting).ok());
    Planner planner(switches, detect_cpu(), all_variants());
    Recorder recorder(planner);
    uint64_t bytes = 0;
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
      recorder.set_phase(phase);
      ASSERT_TRUE(model.forward(recorder, phase == Phase::kDecode ? 1 : 5, 0).ok());
    }
    for (const Recorder::Counted& counted : recorder.calls()) {
      bytes = std::max(bytes, (*planner.choose(counted.call))->scratch_bytes);
    }
    ArenaSet arenas;
    ThreadPool threads(planner.threads());
    trace_.reset();
    DispatchResources own = resources(threads);
    own.scratch = *arenas.allocate(MemoryTag::kScratch, "scratch", bytes);
    own.scratch_bytes = bytes;
    Dispatcher dispatcher(planner, own);
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
      dispatcher.set_phase(phase);
      ASSERT_TRUE(model.forward(dispatcher, phase == Phase::kDecode ? 1 : 5, 0).ok());
    }
    EXPECT_EQ(predicted(planner, recorder), observed()) << setting;
    EXPECT_EQ(recorder.calls().size(), 20U);
  }
}

// The kernels of this build, each under its own name and source hash.
TEST_F(Dispatch, TheKernelsOfThisBuildRunAsPredicted) {
  for (const char* setting : {"numerics=auto", "numerics=reference", "prefill.numerics=exact",
                              "prefill.tile_order=band8", "cpu.isa=scalar", "cpu.threads=2"}) {
    SwitchSet switches;
    ASSERT_TRUE(switches.set_assignment(setting).ok());
    Planner planner(switches, detect_cpu(), all_variants());
    Recorder recorder(planner);
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode, Phase::kVerify}) {
      recorder.set_phase(phase);
      ASSERT_TRUE(model_.forward(recorder, phase == Phase::kDecode ? 1 : 5, 0).ok());
    }
    uint64_t bytes = 0;
    for (const Recorder::Counted& counted : recorder.calls()) {
      bytes = std::max(bytes, (*planner.choose(counted.call))->scratch_bytes);
    }
    ArenaSet arenas;
    ThreadPool threads(planner.threads());
    trace_.reset();
    DispatchResources own = resources(threads);
    own.scratch = *arenas.allocate(MemoryTag::kScratch, "scratch", bytes);
    own.scratch_bytes = bytes;
    Dispatcher dispatcher(planner, own);
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode, Phase::kVerify}) {
      dispatcher.set_phase(phase);
      ASSERT_TRUE(model_.forward(dispatcher, phase == Phase::kDecode ? 1 : 5, 0).ok());
    }
    EXPECT_EQ(predicted(planner, recorder), observed()) << setting;
  }
}

using DispatchDeathTest = Dispatch;

TEST_F(DispatchDeathTest, TakingMoreScratchThanDeclaredIsABug) {
  table_.back().scratch_bytes = nullptr;
  EXPECT_DEATH(static_cast<void>(model_.forward(dispatcher_, 5, 0)), "declared_bytes");
}

TEST_F(DispatchDeathTest, ContradictoryShapesAndTokensAreBugs) {
  float data[64] = {};
  const int32_t token = 10;
  const Weight weight{data, DType::kF32, 4, 8};
  const auto drop = [](const Status&) {};
  EXPECT_DEATH(drop(dispatcher_.matmul({data, 1, 8}, weight, {data, 1, 5})), "weight.n");
  EXPECT_DEATH(drop(dispatcher_.matmul({data, 1, 7}, weight, {data, 1, 4})), "weight.k");
  EXPECT_DEATH(drop(dispatcher_.embedding(weight, {&token, 1}, {data, 1, 8})), "table.n");
  EXPECT_DEATH(drop(dispatcher_.add({data, 1, 8}, {data, 2, 4}, {data, 1, 8})), "same_shape");
  EXPECT_DEATH(
      drop(dispatcher_.attention({data, 1, 8}, {data, 1, 4}, {data, 1, 4},
                                 {data, data, DType::kF32, 1, 2, 4}, 2, 1.0F, {data, 1, 8})),
      "capacity");
  EXPECT_DEATH(drop(dispatcher_.causal_conv({data, 1, 4}, weight, {data, 7, 4}, 0, {data, 1, 4})),
               "out.data");
  EXPECT_DEATH(drop(dispatcher_.causal_conv({data, 1, 4}, {data, DType::kF32, 4, 4}, {data, 2, 4},
                                            0, {data + 4, 1, 4})),
               "state.ring");
  EXPECT_DEATH(drop(dispatcher_.route({data, 1, 4}, RouteWeights::kOfAll, {data, 1, 10})),
               "experts");
  EXPECT_DEATH(
      drop(dispatcher_.expert_matmul_combine({data, 2, 8}, {data, 1, 4}, weight, 3, {data, 1, 2})),
      "weight.n");
}

TEST_F(DispatchDeathTest, MoreThreadsThanThePlanKnowsIsABug) {
  EXPECT_DEATH(
      {
        ThreadPool wide(2);
        Dispatcher(planner_, resources(wide));
      },
      "threads");
}

}  // namespace
}  // namespace reckon::kernels
