// The engine on a GPU: oracle cases, exactness across widths, chunks and graphs, packed weights
// against the CPU's reference on the same weights, dispatch, memory. Skipped where the build has no
// CUDA backend or the machine no GPU.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "engine/generate.h"
#include "engine/oracle.h"
#include "engine/sampler.h"
#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;

kernels::Backend* cuda_or_null(std::string& why) {
  const auto backend = kernels::open_backend("cuda");
  if (backend.ok()) return *backend;
  why = backend.error().message;
  return nullptr;
}

// Makes `backend` the GPU, or skips the test.
#define RECKON_REQUIRE_CUDA(backend)                                 \
  std::string backend##_missing;                                     \
  kernels::Backend* const backend = cuda_or_null(backend##_missing); \
  if (backend == nullptr) GTEST_SKIP() << backend##_missing

ModelOptions on(kernels::Backend* backend, const std::string& quant = "none") {
  ModelOptions options;
  options.backend = backend;
  options.quant = *models::QuantScheme::parse(quant);
  return options;
}

// ||a - b|| / ||b|| of each row, in ascending order.
std::vector<double> row_ratios(const std::vector<float>& a, const std::vector<float>& b,
                               int64_t columns) {
  EXPECT_EQ(a.size(), b.size());
  std::vector<double> ratios;
  for (size_t row = 0; row + static_cast<size_t>(columns) <= b.size();
       row += static_cast<size_t>(columns)) {
    double difference = 0;
    double norm = 0;
    for (size_t i = row; i < row + static_cast<size_t>(columns); ++i) {
      const double delta = static_cast<double>(a[i]) - static_cast<double>(b[i]);
      difference += delta * delta;
      norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
    const double ratio = std::sqrt(difference / norm);
    ratios.push_back(std::isnan(ratio) ? INFINITY : ratio);
  }
  std::ranges::sort(ratios);
  return ratios;
}

class Cuda : public ::testing::TestWithParam<std::string> {
 protected:
  // Delta nets and routers amplify the rounding of 16-bit activations (docs/models.md): a few rows
  // leave the tolerance, so that fast bf16 is not held to it and halves by their median row.
  [[nodiscard]] static bool amplifies() {
    const std::vector<std::string> hybrids = hybrid_folders();
    return std::ranges::find(hybrids, GetParam()) != hybrids.end();
  }
};

TEST_P(Cuda, AgreesWithTheOracle) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path(GetParam()), on(gpu));
  ASSERT_NE(model, nullptr);
  std::vector<Assignments> runs{
      {"numerics=reference"},
      {"prefill.numerics=exact"},
      {"decode.graph=off", "kernel.matmul=exact_simt", "prefill.numerics=exact"}};
  if (!amplifies()) runs.push_back({});
  for (const Assignments& assignments : runs) {
    SessionOptions options;
    options.switches = switches_of(assignments);
    const auto report = check_oracle(*model, options);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->passed) << fmt::format("{}", fmt::join(assignments, " ")) << ": "
                                << (report->first_failure ? mismatch_text(*report->first_failure)
                                                          : "");
  }
}

TEST_P(Cuda, ExactBitsDependOnNothingElse) {
  RECKON_REQUIRE_CUDA(gpu);
  for (const char* quant : {"none", "q8", "q4"}) {
    const auto model = open_model(golden_path(GetParam()), on(gpu, quant));
    ASSERT_NE(model, nullptr);
    const std::vector<int32_t> tokens = longest_prompt(*model);
    const std::vector<float> expected = decode_rows(*model, {}, tokens);
    ASSERT_FALSE(expected.empty());
    EXPECT_TRUE(same_bits(decode_rows(*model, {}, tokens), expected)) << "twice, " << quant;
    EXPECT_TRUE(same_bits(decode_rows(*model, {"decode.graph=off"}, tokens), expected)) << quant;
    for (const int chunk : {1, 2, 3, 5, 8, 15, 16, 17, 33, 512}) {
      const Assignments assignments{"prefill.numerics=exact",
                                    fmt::format("prefill.chunk={}", chunk)};
      EXPECT_TRUE(same_bits(prefill_rows(*model, assignments, tokens), expected))
          << quant << ", chunk " << chunk;
    }
    const Assignments parts{"kernel.matmul_group=parts", "kernel.matmul_swiglu=parts",
                            "kernel.rope_attention=parts", "kernel.add_rms_norm=parts"};
    EXPECT_TRUE(same_bits(decode_rows(*model, parts, tokens), expected)) << "parts, " << quant;
  }
}

TEST_P(Cuda, FastPrefillGivesTheSameBitsInEverySession) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path(GetParam()), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*model);
  const std::vector<float> expected = prefill_rows(*model, {}, tokens);
  ASSERT_FALSE(expected.empty());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(prefill_rows(*model, {}, tokens), expected));
}

TEST_P(Cuda, VerifyGivesTheBitsOfDecodeAtEveryWidth) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path(GetParam()), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*model);
  const std::vector<float> expected = decode_rows(*model, {}, tokens);
  SessionShape shape{static_cast<int64_t>(tokens.size())};
  shape.chunk = std::min<int64_t>(16, shape.capacity);
  shape.verify_rows = shape.chunk;
  for (int64_t width = 1; width <= shape.verify_rows; ++width) {
    const auto session = make_session(*model, {}, shape);
    ASSERT_NE(session, nullptr);
    std::vector<float> rows;
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min(static_cast<size_t>(width), tokens.size() - at);
      const auto logits = session->verify(std::span(tokens).subspan(at, count));
      ASSERT_TRUE(logits.ok()) << logits.error().message;
      rows.insert(rows.end(), logits->data, logits->data + logits->rows * logits->columns);
      at += count;
    }
    EXPECT_TRUE(same_bits(rows, expected)) << "width " << width;
  }
}

TEST_P(Cuda, PackedWeightsGiveWhatTheReferenceGives) {
  RECKON_REQUIRE_CUDA(gpu);
  for (const char* quant : {"q4", "q8"}) {
    const auto here = open_model(golden_path(GetParam()), on(&kernels::cpu_backend(), quant));
    const auto there = open_model(golden_path(GetParam()), on(gpu, quant));
    ASSERT_TRUE(here != nullptr && there != nullptr);
    const std::vector<int32_t> tokens = longest_prompt(*here);
    const int64_t columns = here->model().info().vocabulary;
    const std::vector<float> expected = prefill_rows(*here, {"numerics=reference"}, tokens);
    const auto ratios = [&](const Assignments& assignments) {
      return row_ratios(prefill_rows(*there, assignments, tokens), expected, columns);
    };
    EXPECT_LE(ratios({"numerics=reference"}).back(), 1e-4) << quant;
    const Assignments floats{"prefill.numerics=exact", "kernel.matmul=exact_simt",
                             "kernel.expert_matmul_swiglu=exact_simt",
                             "kernel.expert_matmul_combine=exact_simt", "kv.type=f32"};
    EXPECT_LE(ratios(floats).back(), 1e-4) << quant;
    for (const char* numerics : {"exact", "fast"}) {
      const std::vector<double> halves = ratios({fmt::format("prefill.numerics={}", numerics)});
      EXPECT_LE(amplifies() ? halves[halves.size() / 2] : halves.back(), 5e-3)
          << quant << " " << numerics;
    }
  }
}

std::string text_of(const kernels::DispatchRow& row) {
  return fmt::format("{} {} {} {} [{}] {}", row.phase, row.op, row.shape, row.variant, row.params,
                     row.source_hash);
}

std::set<std::string> observed_rows(Session& session) {
  std::set<std::string> rows;
  for (const kernels::TraceCount& counted : session.trace().rows()) {
    rows.insert(text_of(counted.row));
    EXPECT_FALSE(counted.launches.empty()) << counted.row.op << " " << counted.row.variant;
  }
  return rows;
}

// The texts of `some` that `others` lack, a line each.
std::string missing_from(const std::set<std::string>& some, const std::set<std::string>& others) {
  std::vector<std::string> missing;
  std::ranges::set_difference(some, others, std::back_inserter(missing));
  return fmt::format("{}", fmt::join(missing, "\n"));
}

TEST_P(Cuda, DispatchIsWhatThePlanPredicts) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path(GetParam()), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*model);
  for (const Assignments& assignments :
       {Assignments{"prefill.chunk=16"}, Assignments{"prefill.chunk=16", "prefill.numerics=exact"},
        Assignments{"numerics=reference"}, Assignments{"decode.graph=off"}}) {
    const auto session = make_session(*model, assignments, {});
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->prefill(tokens).ok());
    for (const int32_t token : {1, 2, 3}) {
      ASSERT_TRUE(session->decode(token).ok());
      ASSERT_TRUE(session->pick({}).ok());
    }
    kernels::Planner planner(switches_of(assignments), gpu->device(), gpu->variants());
    const PassKinds passes{
        chunk_rows(static_cast<int64_t>(tokens.size()), session->plan().shape.chunk), true};
    const auto plan = plan_session(model->model(), planner, {}, passes, *gpu);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    std::set<std::string> predicted;
    for (const PlannedCall& call : plan->calls) {
      predicted.insert(text_of(kernels::predicted_row(call.call, *call.choice)));
    }
    const std::set<std::string> observed = observed_rows(*session);
    const std::string switches = fmt::format("{}", fmt::join(assignments, " "));
    EXPECT_EQ(missing_from(observed, predicted), "") << "observed, not predicted: " << switches;
    EXPECT_EQ(missing_from(predicted, observed), "") << "predicted, not observed: " << switches;
  }
}

// The same at the sizes of real models, a few layers deep.
class CudaShapes : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaShapes, ExactBitsDependOnNothingElse) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(GetParam(), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back(i * i * 37 % 5000);
  const Assignments exact{"prefill.numerics=exact", "decode.drafter=none"};
  const std::vector<float> expected = prefill_rows(*model, exact, tokens);
  EXPECT_TRUE(same_bits(decode_rows(*model, exact, tokens), expected));
  for (const int64_t width : {2, 5, 16}) {
    SessionShape shape{static_cast<int64_t>(tokens.size()), width};
    shape.verify_rows = width;
    const auto session = make_session(*model, exact, shape);
    ASSERT_NE(session, nullptr);
    std::vector<float> rows;
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min(static_cast<size_t>(width), tokens.size() - at);
      const auto logits = session->verify(std::span(tokens).subspan(at, count));
      ASSERT_TRUE(logits.ok()) << logits.error().message;
      const size_t kept = (count + 1) / 2;  // the others are taken back
      rows.insert(rows.end(), logits->data,
                  logits->data + static_cast<int64_t>(kept) * logits->columns);
      at += kept;
      ASSERT_TRUE(session->truncate(static_cast<int64_t>(at)).ok());
    }
    EXPECT_TRUE(same_bits(rows, expected)) << "width " << width;
  }
}

INSTANTIATE_TEST_SUITE_P(Synthetic, CudaShapes,
                         ::testing::Values("synth:llama-8b,layers=2", "synth:qwen3.8-27b,layers=4",
                                           "synth:qwen3.6-35b-a3b,layers=4"));

// Families with ops that no CUDA kernel runs.
std::vector<std::string> refused_models() {
  return {"oracle/qwen2-h56", "oracle/gemma3-h64"};
}

std::vector<std::string> models_with_kernels() {
  std::vector<std::string> models = oracle_models();
  const std::vector<std::string> refused = refused_models();
  std::erase_if(models, [&](const std::string& model) {
    return std::ranges::find(refused, model) != refused.end();
  });
  return models;
}

INSTANTIATE_TEST_SUITE_P(Golden, Cuda, ::testing::ValuesIn(models_with_kernels()), test_name);

TEST(CudaFamilies, WithoutKernelsAreRefusedByName) {
  RECKON_REQUIRE_CUDA(gpu);
  for (const std::string& name : refused_models()) {
    const auto model = open_model(golden_path(name), on(gpu));
    ASSERT_NE(model, nullptr);
    const auto session = Session::create(*model, {});
    ASSERT_FALSE(session.ok()) << name;
    EXPECT_THAT(session.error().message, HasSubstr("no kernels for this op")) << name;
  }
}

TEST(CudaMemory, IsThePlansAndStaysFlat) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path("oracle/llama-s0"), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const auto session = make_session(*model, {}, {});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes);
  EXPECT_EQ(model->allocated_bytes() > 0, true);
  ASSERT_TRUE(session->append(5).ok());  // captures the graph
  ASSERT_TRUE(session->pick({}).ok());
  const uint64_t before = gpu->memory_state()->available_bytes;
  for (int step = 0; step < 20000; ++step) {
    if (session->position() == session->capacity()) {
      ASSERT_TRUE(session->truncate(0).ok());
    }
    ASSERT_TRUE(session->append(step % 7).ok());
    ASSERT_TRUE(session->pick({}).ok());
  }
  EXPECT_EQ(gpu->memory_state()->available_bytes, before);
}

// What the device says is taken, on models of some size; small ones have loaded the kernels before.
class CudaDeviceMemory : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(CudaDeviceMemory, IsTakenAsThePlanSays) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto& [big, small] = GetParam();
  const std::vector<int32_t> tokens(2048, 17);
  const auto run_all = [&](Session& session) {
    const auto count = std::min<size_t>(tokens.size(), static_cast<size_t>(session.capacity()) - 2);
    EXPECT_TRUE(session.append(std::span(tokens).first(count)).ok());
    EXPECT_TRUE(session.append(3).ok());
    EXPECT_TRUE(session.pick({}).ok());
  };
  {
    const auto model = open_model(golden_path(small), on(gpu, "q4"));
    ASSERT_NE(model, nullptr);
    const auto session = make_session(*model, {}, {});
    ASSERT_NE(session, nullptr);
    run_all(*session);
  }
  const uint64_t before = gpu->memory_state()->available_bytes;
  const auto model = open_model(big, on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const auto session = make_session(*model, {}, {});
  ASSERT_NE(session, nullptr);
  run_all(*session);
  const auto planned = static_cast<double>(session->plan().total_bytes);
  const auto taken = static_cast<double>(before - gpu->memory_state()->available_bytes);
  EXPECT_NEAR(taken / planned, 1.0, 0.01) << taken << " of " << planned;
}

INSTANTIATE_TEST_SUITE_P(
    Synthetic, CudaDeviceMemory,
    ::testing::Values(std::pair("synth:llama-8b,layers=4", "oracle/llama-s0"),
                      std::pair("synth:qwen3.8-27b,layers=4", "oracle/qwen3_5-s0"),
                      std::pair("synth:qwen3.6-35b-a3b,layers=4", "oracle/qwen3_5_moe-s0")));

TEST(CudaMemory, RefusesWhatDoesNotFit) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path("oracle/llama-s0"), on(gpu));
  ASSERT_NE(model, nullptr);
  SessionOptions options;
  options.memory_limit = "4096B";
  const auto session = Session::create(*model, options);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(model->allocated_bytes(), 0U);
  EXPECT_THAT(session.error().message, HasSubstr("memory limit"));
}

TEST(CudaState, IsNeitherSavedNorLoaded) {
  RECKON_REQUIRE_CUDA(gpu);
  const TestFolder folder;
  const std::string path = folder.path() + "/state";
  const char* refusal = "states are saved and loaded on the CPU only";
  for (const char* name : {"oracle/llama-s0", "oracle/qwen3_5-s0"}) {
    const auto model = open_model(golden_path(name), on(gpu));
    const auto session = make_session(*model, {}, {64, 16});
    ASSERT_TRUE(session->append(5).ok());
    EXPECT_THAT(session->check_can_save().error().message, HasSubstr(refusal));
    EXPECT_THAT(session->save_state(path).error().message, HasSubstr(refusal));
    EXPECT_FALSE(std::filesystem::exists(path));
    const auto there = open_model(golden_path(name));
    const auto saved = make_session(*there, {}, {64, 16});
    ASSERT_TRUE(saved->append(5).ok());
    ASSERT_TRUE(saved->save_state(path).ok());
    const auto file = StateFile::open(path);
    ASSERT_TRUE(file.ok());
    const auto fresh = make_session(*model, {}, {64, 16});
    const Status loaded = fresh->load_state(*file);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(loaded.error().message, HasSubstr(refusal));
    EXPECT_EQ(fresh->position(), 0);
    std::filesystem::remove(path);
  }
}

TEST(CudaSampling, FollowsTheRule) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path("oracle/llama-s0"), on(gpu));
  ASSERT_NE(model, nullptr);
  const auto session = make_session(*model, {}, {});
  ASSERT_NE(session, nullptr);
  for (const int32_t token : {1, 2, 3, 4, 5}) {
    const auto logits = session->decode(token);
    ASSERT_TRUE(logits.ok());
    const std::vector<float> copy(logits->begin(), logits->end());
    for (const double temperature : {0.0, 0.7, 1.5}) {
      for (const double uniform : {0.0, 0.25, 0.5, 0.999}) {
        const auto expected = pick_token(copy, {temperature, uniform});
        const auto got = session->pick({temperature, uniform});
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(got->token, expected->token) << temperature << " " << uniform;
        EXPECT_EQ(got->margin, expected->margin);
      }
    }
  }
}

// A pass that runs ahead of its token changes neither the tokens nor where the session stands.
TEST(CudaGenerate, RunsAheadUnseen) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path("oracle/llama-s0"), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> prompt = longest_prompt(*model);
  for (const double temperature : {0.0, 0.9}) {
    GenerateOptions options;
    options.max_tokens = 24;
    options.sampler.temperature = temperature;
    const auto session = make_session(*model, {}, {});
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->runs_ahead());
    const auto whole = generate(*session, prompt, options, nullptr, {});
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    ASSERT_EQ(whole->tokens.size(), 24U);

    auto sampler = Sampler::create(options.sampler);
    ASSERT_TRUE(sampler.ok());
    const auto step_by_step = make_session(*model, {"decode.graph=off"}, {});
    ASSERT_NE(step_by_step, nullptr);
    ASSERT_TRUE(step_by_step->append(prompt).ok());
    std::vector<int32_t> tokens;
    while (tokens.size() < whole->tokens.size()) {
      if (!tokens.empty()) {
        ASSERT_TRUE(step_by_step->append(tokens.back()).ok());
      }
      const auto pick = step_by_step->pick(sampler->next());
      ASSERT_TRUE(pick.ok()) << pick.error().message;
      tokens.push_back(pick->token);
    }
    EXPECT_EQ(whole->tokens, tokens) << "temperature " << temperature;
    EXPECT_EQ(session->position(), step_by_step->position());

    options.stop_tokens = {tokens[12]};
    const auto stop = std::ranges::find(tokens, tokens[12]) - tokens.begin();
    ASSERT_TRUE(session->truncate(0).ok());
    const auto stopped = generate(*session, prompt, options, nullptr, {});
    ASSERT_TRUE(stopped.ok());
    EXPECT_EQ(stopped->stop, StopReason::kEndOfSequence);
    EXPECT_EQ(stopped->tokens, std::vector<int32_t>(tokens.begin(), tokens.begin() + stop));
    EXPECT_EQ(session->position(), static_cast<int64_t>(prompt.size()) + stop);
  }
}

TEST(CudaGenerate, SpeculatesUnseen) {
  RECKON_REQUIRE_CUDA(gpu);
  const auto model = open_model(golden_path("oracle/llama-s0"), on(gpu, "q4"));
  ASSERT_NE(model, nullptr);
  const std::vector<int32_t> prompt = longest_prompt(*model);
  for (const SamplerOptions& sampler :
       {SamplerOptions{}, SamplerOptions{.temperature = 0.9, .seed = 3},
        SamplerOptions{.temperature = 0.9, .seed = 3, .filters = {.top_k = 9}}}) {
    GenerateOptions options;
    options.max_tokens = 512;
    options.sampler = sampler;
    const SessionShape shape{static_cast<int64_t>(prompt.size()) + 512};
    const auto plainly = make_session(*model, {}, shape);
    ASSERT_NE(plainly, nullptr);
    const auto plain = generate(*plainly, prompt, options, nullptr, {});
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    for (const char* drafter : {"lookup", "replay:0.9", "replay:1"}) {
      for (const char* depth : {"1", "2", "3", "4", "5", "8", "auto"}) {
        const auto session = make_session(
            *model,
            {fmt::format("decode.drafter={}", drafter), fmt::format("decode.mtp_depth={}", depth)},
            shape);
        ASSERT_NE(session, nullptr);
        const auto drafted = generate(*session, prompt, options, nullptr, {});
        ASSERT_TRUE(drafted.ok()) << drafted.error().message;
        EXPECT_EQ(drafted->tokens, plain->tokens) << drafter << " " << depth;
        EXPECT_EQ(drafted->margins, plain->margins) << drafter << " " << depth;
        EXPECT_EQ(session->position(), plainly->position());
        EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes);
      }
    }
  }
}

}  // namespace
}  // namespace reckon::engine
