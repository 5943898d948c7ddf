// Speculative generation end to end: what comes out is what plain decode gives, bit by bit.
#include "engine/speculate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/generate.h"
#include "engine/stop_text.h"
#include "engine/test_sessions.h"
#include "kernels/variants.h"

namespace reckon::engine {
namespace {

// A generation and all that must not depend on drafts.
struct Outcome {
  Generation generation;
  std::string text;
  int64_t position = 0;
};

struct Request {
  std::vector<int32_t> prompt;
  GenerateOptions options;
  int64_t capacity = 0;
  std::span<const kernels::Variant> variants = {};
};

Request request_of(std::vector<int32_t> prompt, int64_t tokens) {
  Request request{.prompt = std::move(prompt), .options = {}, .capacity = 0};
  request.options.max_tokens = tokens;
  request.capacity = static_cast<int64_t>(request.prompt.size()) + tokens;
  return request;
}

Outcome outcome(const LoadedModel& model, const Assignments& assignments, const Request& request) {
  SessionOptions options;
  options.switches = switches_of(assignments);
  options.shape.capacity = std::min(request.capacity, model.model().info().context_limit);
  options.variants = request.variants;
  const auto session = Session::create(model, options);
  if (!session.ok()) {
    ADD_FAILURE() << session.error().message;
    return {};
  }
  const auto tokenizer = model.tokenizer();
  Outcome outcome;
  const auto generation =
      generate(**session, request.prompt, request.options, tokenizer.ok() ? *tokenizer : nullptr,
               [&](std::string_view piece) {
                 outcome.text += piece;
                 return Flow::kContinue;
               });
  if (!generation.ok()) {
    ADD_FAILURE() << generation.error().message;
    return {};
  }
  outcome.generation = *generation;
  outcome.position = (*session)->position();
  return outcome;
}

bool same(const Outcome& a, const Outcome& b) {
  return a.generation.tokens == b.generation.tokens &&
         a.generation.margins == b.generation.margins && a.generation.stop == b.generation.stop &&
         a.text == b.text && a.position == b.position;
}

Assignments drafting(const std::string& drafter, const std::string& depth) {
  return {"decode.drafter=" + drafter, "decode.mtp_depth=" + depth};
}

class Speculation : public ::testing::TestWithParam<std::string> {};

TEST_P(Speculation, GivesTheTokensOfPlainDecodeAtEveryDepth) {
  const auto model = open_model(golden_path(GetParam()));
  ASSERT_NE(model, nullptr);
  const Request request = request_of(longest_prompt(*model), 512);
  const Outcome plain = outcome(*model, {}, request);
  EXPECT_FALSE(plain.generation.speculation.has_value());
  for (const char* depth : {"1", "2", "3", "4", "5", "8", "auto"}) {
    for (const char* drafter : {"lookup", "replay:0.9"}) {
      const Outcome drafted = outcome(*model, drafting(drafter, depth), request);
      EXPECT_TRUE(same(drafted, plain)) << drafter << " " << depth;
      ASSERT_TRUE(drafted.generation.speculation.has_value());
      EXPECT_EQ(drafted.generation.speculation->drafter(), drafter);
      EXPECT_EQ(drafted.generation.decode_tokens, plain.generation.decode_tokens);
    }
  }
}

TEST_P(Speculation, GivesTheTokensOfPlainDecodeBehindEveryGate) {
  const auto model = open_model(golden_path(GetParam()));
  ASSERT_NE(model, nullptr);
  const Request request = request_of(longest_prompt(*model), 256);
  const Outcome plain = outcome(*model, {}, request);
  for (const char* gate : {"off", "prob:0.4", "prob:0.95", "margin:0.05", "margin:4"}) {
    for (const char* drafter : {"lookup", "replay:0.9"}) {
      Assignments assignments = drafting(drafter, "4");
      assignments.push_back(fmt::format("decode.confidence={}", gate));
      EXPECT_TRUE(same(outcome(*model, assignments, request), plain)) << drafter << " " << gate;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Speculation, ::testing::ValuesIn(oracle_models()), test_name);

// The heads of these cases have random weights, which hardly ever draft right.
class MtpSpeculation : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<LoadedModel> model_ = [] {
    ModelOptions options;
    options.build.draft_head = true;
    return open_model(golden_path(GetParam()), options);
  }();
};

TEST_P(MtpSpeculation, GivesTheTokensOfPlainDecode) {
  const Request request = request_of(longest_prompt(*model_), 512);
  const Outcome plain = outcome(*model_, {"decode.drafter=none"}, request);
  EXPECT_FALSE(plain.generation.speculation.has_value());
  for (const char* drafter : {"mtp", "replay:0.9", "replay:1", "lookup"}) {
    for (const char* depth : {"1", "2", "3", "4", "5", "auto"}) {
      const Outcome drafted = outcome(*model_, drafting(drafter, depth), request);
      EXPECT_TRUE(same(drafted, plain)) << drafter << " " << depth;
      ASSERT_TRUE(drafted.generation.speculation.has_value());
      EXPECT_EQ(drafted.generation.speculation->drafter(), drafter);
    }
  }
}

TEST_P(MtpSpeculation, GivesTheTokensOfPlainDecodeBehindEveryGate) {
  const Request request = request_of(longest_prompt(*model_), 128);
  const Outcome plain = outcome(*model_, {"decode.drafter=none"}, request);
  for (const char* gate : {"off", "prob:0.9", "margin:0.01", "margin:4"}) {
    Assignments assignments = drafting("mtp", "4");
    assignments.push_back(fmt::format("decode.confidence={}", gate));
    EXPECT_TRUE(same(outcome(*model_, assignments, request), plain)) << gate;
  }
}

TEST_P(MtpSpeculation, IsHeldBackWhereTheHeadIsUnsure) {
  const Request request = request_of(longest_prompt(*model_), 32);
  const auto drafts = [&](const char* gate) {
    Assignments assignments = drafting("mtp", "3");
    assignments.push_back(fmt::format("decode.confidence={}", gate));
    return outcome(*model_, assignments, request).generation.speculation->drafting_passes();
  };
  const int64_t all = drafts("off");
  EXPECT_GT(all, 0);
  EXPECT_EQ(drafts("prob:0.0001"), all);
  EXPECT_LT(drafts("prob:0.99"), all);
  EXPECT_EQ(drafts("margin:1000"), 0);
}

// The probabilities that the head gives to all tokens add up to one.
TEST_P(MtpSpeculation, ProbabilitiesAreThoseOfASoftmax) {
  SessionShape shape{64, 16};
  shape.drafts = true;
  const auto session = make_session(*model_, {"decode.drafter=none"}, shape);
  const std::vector<int32_t> prompt = longest_prompt(*model_);
  ASSERT_TRUE(session->append(std::span(prompt).first(20)).ok());
  const auto pick = session->draft(prompt[20]);
  ASSERT_TRUE(pick.ok()) << pick.error().message;
  double sum = 0;
  double highest = 0;
  for (int32_t token = 0; token < model_->model().info().vocabulary; ++token) {
    const double probability = session->draft_probability(token).value();
    sum += probability;
    highest = std::max(highest, probability);
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(session->draft_probability(pick->token).value(), highest);
}

TEST_P(MtpSpeculation, DraftsByDefaultWhereThereIsAHead) {
  EXPECT_EQ(make_session(*model_, {}, {256})->plan().shape.verify_rows, 2);
  const auto without = open_model(golden_path(GetParam()));
  EXPECT_EQ(make_session(*without, {}, {256})->plan().shape.verify_rows, 0);
}

INSTANTIATE_TEST_SUITE_P(Golden, MtpSpeculation, ::testing::ValuesIn(hybrid_folders()), test_name);

class SpeculateTest : public ::testing::Test {
 protected:
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path("gguf/tiny-llama-mixed.gguf"));
  std::vector<int32_t> prompt_ = longest_prompt(*model_);

  void expect_same(const Request& request, const Assignments& assignments,
                   const std::string& what) {
    EXPECT_TRUE(same(outcome(*model_, assignments, request), outcome(*model_, {}, request)))
        << what << ", " << fmt::format("{}", fmt::join(assignments, " "));
  }
};

TEST_F(SpeculateTest, WhatIsAlwaysRightTakesAsFewPassesAsThereCanBe) {
  const Request request = request_of(prompt_, 400);
  for (const int depth : {1, 4, 8}) {
    const Outcome drafted = outcome(*model_, drafting("replay:1", std::to_string(depth)), request);
    EXPECT_TRUE(same(drafted, outcome(*model_, {}, request)));
    EXPECT_EQ(drafted.generation.decode_passes, (399 + depth) / (depth + 1));  // rounded up
    const SpeculationStats& stats = *drafted.generation.speculation;
    EXPECT_EQ(stats.tokens(), 399);
    ASSERT_EQ(stats.depths().size(), static_cast<size_t>(depth));
    for (const auto& at : stats.depths()) {
      EXPECT_EQ(at.accepted, at.drafted);
      EXPECT_EQ(at.acceptance(), 1.0);
    }
  }
}

TEST_F(SpeculateTest, WhatIsNeverRightCostsNothingButTime) {
  const Request request = request_of(prompt_, 128);
  const Outcome drafted = outcome(*model_, drafting("replay:0", "3"), request);
  EXPECT_TRUE(same(drafted, outcome(*model_, {}, request)));
  EXPECT_EQ(drafted.generation.decode_passes, 127);
  EXPECT_EQ(drafted.generation.speculation->depths()[0].acceptance(), 0.0);
}

TEST_F(SpeculateTest, DepthZeroOrNoDrafterIsPlainDecode) {
  const Request request = request_of(prompt_, 16);
  for (const Assignments& assignments :
       {drafting("lookup", "0"), drafting("none", "4"), drafting("mtp", "4")}) {
    const Outcome plain = outcome(*model_, assignments, request);
    EXPECT_FALSE(plain.generation.speculation.has_value());
    const auto session = make_session(*model_, assignments, {256});
    EXPECT_EQ(session->plan().shape.verify_rows, 0);
  }
  EXPECT_EQ(make_session(*model_, drafting("lookup", "4"), {256})->plan().shape.verify_rows, 5);
  EXPECT_EQ(make_session(*model_, drafting("lookup", "auto"), {256})->plan().shape.verify_rows, 9);
}

TEST_F(SpeculateTest, GatesHoldBackWhatIsUnsure) {
  const Request request = request_of(prompt_, 128);
  const auto drafted = [&](const std::string& gate) {
    Assignments assignments = drafting("replay:0.9", "4");
    assignments.push_back(fmt::format("decode.confidence={}", gate));
    int64_t count = 0;
    const Outcome made = outcome(*model_, assignments, request);
    for (const auto& at : made.generation.speculation->depths()) {
      count += at.drafted;
    }
    return count;
  };
  EXPECT_EQ(drafted("prob:0.91"), 0);
  EXPECT_EQ(drafted("prob:0.9"), drafted("off"));
  std::vector<float> margins = outcome(*model_, {}, request).generation.margins;
  std::ranges::sort(margins);
  const int64_t median = std::lround(margins[margins.size() / 2]);
  EXPECT_LT(drafted(fmt::format("margin:{}", median)), drafted("off"));
  EXPECT_GT(drafted(fmt::format("margin:{}", median)), 0);
}

TEST_F(SpeculateTest, StopsWherePlainDecodeStopsInsideAcceptedDrafts) {
  const Outcome whole = outcome(*model_, {}, request_of(prompt_, 40));
  for (size_t at = 0; at < 30; ++at) {
    Request request = request_of(prompt_, 40);
    request.options.stop_tokens = {whole.generation.tokens[at]};
    expect_same(request, drafting("replay:1", "8"), fmt::format("stop token {}", at));
  }
  for (size_t at = 2; at + 6 < whole.text.size(); at += 7) {
    const std::string stop = whole.text.substr(at, 3);
    Request request = request_of(prompt_, 40);
    request.options.stop_texts = {stop};
    if (!StopText::create({stop}).ok()) continue;  // not whole characters
    expect_same(request, drafting("replay:1", "8"), fmt::format("stop text at {}", at));
  }
}

TEST_F(SpeculateTest, EndsAtItsLimitsToTheToken) {
  for (int64_t tokens = 0; tokens <= 21; ++tokens) {
    expect_same(request_of(prompt_, tokens), drafting("replay:1", "8"),
                fmt::format("{} tokens", tokens));
    Request short_context = request_of(prompt_, 50);
    short_context.capacity = static_cast<int64_t>(prompt_.size()) + tokens;
    expect_same(short_context, drafting("replay:1", "8"), fmt::format("context +{}", tokens));
    expect_same(short_context, drafting("replay:0.5", "3"), fmt::format("context +{}", tokens));
  }
}

TEST_F(SpeculateTest, StopsWhereTheSinkSaysSo) {
  const auto stopped = [&](const Assignments& assignments) {
    const auto session = make_session(*model_, assignments, {256});
    GenerateOptions options;
    options.max_tokens = 40;
    int pieces = 0;
    const auto generation =
        generate(*session, prompt_, options, *model_->tokenizer(),
                 [&](std::string_view) { return ++pieces == 5 ? Flow::kStop : Flow::kContinue; });
    EXPECT_EQ(generation->stop, StopReason::kCancelled);
    return std::pair(generation->tokens, session->position());
  };
  EXPECT_EQ(stopped(drafting("replay:1", "8")), stopped({}));
}

// One random number a token, so that a seed gives the same text with drafts and without.
TEST_F(SpeculateTest, DrawsWhatPlainDecodeDraws) {
  for (const SamplerOptions& sampler :
       {SamplerOptions{.temperature = 1.0, .seed = 3},
        SamplerOptions{.temperature = 0.3, .seed = 4},
        SamplerOptions{.temperature = 1.2, .seed = 5, .filters = {.top_k = 20, .top_p = 0.9}},
        SamplerOptions{.temperature = 0.8, .seed = 6, .filters = {}, .repeat_penalty = 1.3},
        SamplerOptions{.temperature = 0, .seed = 7, .filters = {}, .repeat_penalty = 1.3}}) {
    Request request = request_of(prompt_, 160);
    request.options.sampler = sampler;
    for (const char* drafter : {"lookup", "replay:0.9", "replay:1"}) {
      expect_same(request, drafting(drafter, "4"), fmt::format("seed {}", sampler.seed));
    }
  }
}

TEST_F(SpeculateTest, ASecondRunIsTheFirst) {
  Request request = request_of(prompt_, 160);
  request.options.sampler = {.temperature = 0.9, .seed = 11};
  for (const char* depth : {"5", "auto"}) {
    const Assignments assignments = drafting("replay:0.7", depth);
    EXPECT_TRUE(
        same(outcome(*model_, assignments, request), outcome(*model_, assignments, request)));
  }
}

// The sampler goes on where it would without drafts, and a drafter is told of the turns before.
TEST_F(SpeculateTest, FollowingGenerationsAreThoseOfPlainDecode) {
  const auto two = [&](const Assignments& assignments) {
    const auto session = make_session(*model_, assignments, {512});
    GenerateOptions options;
    options.max_tokens = 60;
    options.sampler = {.temperature = 0.5, .seed = 2};
    auto sampler = Sampler::create(options.sampler);
    std::vector<int32_t> all = prompt_;
    for (int i = 0; i < 2; ++i) {
      const std::vector<int32_t> more = i == 0 ? prompt_ : std::vector<int32_t>{5, 6, 7};
      if (i > 0) {
        all.resize(static_cast<size_t>(session->position()));
        options.context = all;
      }
      const auto generation = generate(*session, more, options, *sampler, nullptr, {});
      EXPECT_TRUE(generation.ok());
      if (i > 0) all.insert(all.end(), more.begin(), more.end());
      all.insert(all.end(), generation->tokens.begin(), generation->tokens.end());
    }
    return all;
  };
  EXPECT_EQ(two(drafting("lookup", "4")), two({}));
  EXPECT_EQ(two(drafting("replay:0.8", "4")), two({}));
}

TEST_F(SpeculateTest, VerifiesNoMoreThanAChunkHolds) {
  Assignments assignments = drafting("replay:1", "8");
  assignments.emplace_back("prefill.chunk=4");
  const Request request = request_of(prompt_, 40);
  const Outcome plain = outcome(*model_, {"prefill.chunk=4"}, request);
  const Outcome drafted = outcome(*model_, assignments, request);
  EXPECT_TRUE(same(drafted, plain));
  EXPECT_EQ(drafted.generation.speculation->widest(), 4);
}

TEST_F(SpeculateTest, WhatRunsIsInThePlan) {
  const auto session = make_session(*model_, drafting("replay:0.9", "4"), {512});
  GenerateOptions options;
  options.max_tokens = 100;
  ASSERT_TRUE(generate(*session, prompt_, options, nullptr, {}).ok());
  std::vector<kernels::DispatchRow> planned;
  const PassKinds passes{
      chunk_rows(static_cast<int64_t>(prompt_.size()), session->plan().shape.chunk)};
  kernels::Planner planner = session->planner();
  const auto calls = plan_calls(model_->model(), planner, session->plan().shape, passes);
  ASSERT_TRUE(calls.ok());
  for (const PlannedCall& call : *calls) planned.push_back(predicted_row(call.call, *call.choice));
  for (const kernels::TraceCount& counted : session->trace().rows()) {
    EXPECT_THAT(planned, ::testing::Contains(counted.row))
        << counted.row.phase << " " << counted.row.op << " " << counted.row.shape;
  }
  EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes);
}

// Other tokens than plain decode's may come out, the same ones in each run, and the account of how
// they were made adds up.
TEST_F(SpeculateTest, OtherVerifyKernelsRepeatThemselvesAndAreCounted) {
  const Request request = request_of(prompt_, 300);
  for (const char* kernel : {"fast", "stream"}) {
    for (const char* drafter : {"replay:0.9", "lookup"}) {
      Assignments assignments = drafting(drafter, "5");
      assignments.push_back(fmt::format("decode.verify_kernel={}", kernel));
      assignments.emplace_back("decode.multi_max=1");
      const Outcome first = outcome(*model_, assignments, request);
      EXPECT_TRUE(same(outcome(*model_, assignments, request), first)) << kernel << " " << drafter;
      EXPECT_EQ(first.generation.tokens.size(), 300u);
      const SpeculationStats& stats = *first.generation.speculation;
      EXPECT_EQ(stats.tokens(), 299);
      EXPECT_EQ(stats.passes(), first.generation.decode_passes);
      for (const auto& at : stats.depths()) EXPECT_LE(at.accepted, at.drafted);
    }
  }
}

TEST_F(SpeculateTest, TimesPassesAndTakesThemBack) {
  const auto session = make_session(*model_, drafting("replay:1", "3"), {128});
  ASSERT_TRUE(session->append(prompt_).ok());
  SpeculationStats stats("replay:1", 3);
  for (const int64_t rows : {1, 4, 5}) ASSERT_TRUE(time_passes(*session, rows, 3, stats).ok());
  EXPECT_EQ(session->position(), static_cast<int64_t>(prompt_.size()));
  EXPECT_EQ(stats.passes_of(1), 3);
  EXPECT_EQ(stats.passes_of(4), 3);
  EXPECT_EQ(stats.passes_of(5), 0);  // the session verifies 4
  EXPECT_GT(*stats.cost(4), 0);
  EXPECT_EQ(stats.passes(), 0);
}

// ---- a kernel that breaks the promise ----

// Each row gets a little of the row before it: the same bits for one row alone only. No other add
// is left, and no kernel that adds on its own.
void leaking_add(const kernels::AddArgs& args, kernels::KernelContext& context) {
  kernels::stamp(context, "reference", "leaking", args);
  for (int64_t i = args.rows * args.k - 1; i >= 0; --i) {
    const float above = i >= args.k ? args.y[i - args.k] : 0;
    args.out[i] = args.x[i] + args.y[i] + above / 16;
  }
}

std::vector<kernels::Variant> with_leaking_add() {
  std::vector<kernels::Variant> variants(kernels::all_variants().begin(),
                                         kernels::all_variants().end());
  std::erase_if(variants, [](const kernels::Variant& variant) {
    return variant.op == kernels::Op::kAddRmsNorm ||
           (variant.op == kernels::Op::kAdd &&
            variant.numerics != kernels::NumericsClass::kReference);
  });
  for (kernels::Variant& variant : variants) {
    if (variant.op != kernels::Op::kAdd) continue;
    variant.function = kernels::KernelFn(leaking_add);
    variant.source_hash = "leaking";
  }
  return variants;
}

TEST_F(SpeculateTest, AKernelWhoseRowsDependOnEachOtherIsSeen) {
  const auto variants = with_leaking_add();
  Request request = request_of(prompt_, 400);
  request.variants = variants;
  const Outcome plain = outcome(*model_, {}, request);
  EXPECT_FALSE(same(outcome(*model_, drafting("replay:0.9", "4"), request), plain));
  EXPECT_NE(outcome(*model_, drafting("lookup", "4"), request).generation.tokens,
            plain.generation.tokens);
}

// ---- real models ----

class SpeculationOfRealModels : public ::testing::TestWithParam<std::string> {};

TEST_P(SpeculationOfRealModels, GivesTheTokensOfPlainDecode) {
  RECKON_REQUIRE_MODEL(GetParam());
  const auto model = open_model(real_model(GetParam()));
  ASSERT_NE(model, nullptr);
  const Request request = request_of(prose_tokens(*model, 100), 512);
  const Outcome plain = outcome(*model, {}, request);
  for (const char* depth : {"1", "2", "3", "4", "5", "8"}) {
    const Outcome drafted = outcome(*model, drafting("lookup", depth), request);
    EXPECT_TRUE(same(drafted, plain)) << depth;
    EXPECT_GT(drafted.generation.speculation->tokens_per_pass(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Text, SpeculationOfRealModels, ::testing::ValuesIn(real_models()),
                         test_name);

// Its head has learnt to draft: a pass gives more than a token at every depth.
TEST(SpeculationOfTiny, DraftsOfItsHeadGiveTheTokensOfPlainDecode) {
  RECKON_REQUIRE_TINY();
  ModelOptions options;
  options.build.draft_head = true;
  const auto model = open_model(tiny_path(), options);
  ASSERT_NE(model, nullptr);
  const Request request = request_of(prose_tokens(*model, 100), 256);
  const Outcome plain = outcome(*model, {"decode.mtp_depth=0"}, request);
  for (const char* depth : {"1", "2", "3"}) {
    const Outcome drafted = outcome(*model, drafting("mtp", depth), request);
    EXPECT_TRUE(same(drafted, plain)) << depth;
    EXPECT_GT(drafted.generation.speculation->tokens_per_pass(), 1) << depth;
  }
}

}  // namespace
}  // namespace reckon::engine
