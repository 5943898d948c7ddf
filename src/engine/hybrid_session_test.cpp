// Sessions of models with recurrent state and a head that drafts: going back, drafting, memory, on
// the CPU and on a GPU (skipped where there is none).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "engine/audit.h"
#include "engine/generate.h"
#include "engine/oracle.h"
#include "engine/test_sessions.h"
#include "models/test_edited_folder.h"

namespace reckon::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A backend's name and a golden folder.
using Case = std::tuple<std::string, std::string>;

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return test_name({std::get<1>(info.param), info.index});
}

auto on_every_folder(const std::string& backend) {
  return ::testing::Combine(::testing::Values(backend), ::testing::ValuesIn(hybrid_folders()));
}

class HybridTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto opened = kernels::open_backend(std::get<0>(GetParam()));
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    backend_ = *opened;
  }

  [[nodiscard]] std::unique_ptr<LoadedModel> open(bool head,
                                                  const std::string& quant = "none") const {
    ModelOptions options;
    options.backend = backend_;
    options.quant = *models::QuantScheme::parse(quant);
    options.build.draft_head = head;
    return open_model(golden_path(std::get<1>(GetParam())), options);
  }

  kernels::Backend* backend_ = nullptr;
};

// The shapes say how many rows are verified, not a drafter.
const Assignments kExact{"prefill.numerics=exact", "decode.drafter=none"};

class HybridSession : public HybridTest {
 protected:
  void SetUp() override {
    HybridTest::SetUp();
    if (backend_ == nullptr) return;
    model_ = open(true);
    ASSERT_NE(model_, nullptr);
    tokens_ = longest_prompt(*model_);
    vocabulary_ = static_cast<size_t>(model_->model().info().vocabulary);
  }

  std::unique_ptr<LoadedModel> model_;
  std::vector<int32_t> tokens_;
  size_t vocabulary_ = 0;

  // Row r of the logits of all tokens.
  [[nodiscard]] std::vector<float> row(const std::vector<float>& rows, size_t r) const {
    const auto begin = rows.begin() + static_cast<ptrdiff_t>(r * vocabulary_);
    return {begin, begin + static_cast<ptrdiff_t>(vocabulary_)};
  }
};

TEST_P(HybridSession, GoesBackToEveryPosition) {
  constexpr size_t kTokens = 24;
  const std::vector<int32_t> tokens(tokens_.begin(), tokens_.begin() + kTokens);
  const std::vector<float> expected = prefill_rows(*model_, kExact, tokens);
  for (const int64_t verify_rows : {0, 4}) {
    SessionShape shape{kTokens, 8};
    shape.verify_rows = verify_rows;
    const auto session = make_session(*model_, kExact, shape);
    ASSERT_TRUE(session->append(tokens).ok());
    EXPECT_EQ(session->reach(), static_cast<int64_t>(kTokens) - verify_rows);
    for (size_t p = kTokens; p-- > 0;) {
      ASSERT_TRUE(session->truncate(static_cast<int64_t>(p)).ok());
      EXPECT_EQ(session->position(), static_cast<int64_t>(p));
      const auto logits = session->decode(tokens[p]);
      ASSERT_TRUE(logits.ok()) << logits.error().message;
      EXPECT_TRUE(same_bits({logits->begin(), logits->end()}, row(expected, p))) << p;
      // Another token, taken back, leaves nothing behind.
      if (p + 1 < kTokens) {
        ASSERT_TRUE(session->decode((tokens[p] + 1) % 90).ok());
        ASSERT_TRUE(session->truncate(static_cast<int64_t>(p + 1)).ok());
        const auto next = session->decode(tokens[p + 1]);
        EXPECT_TRUE(same_bits({next->begin(), next->end()}, row(expected, p + 1))) << p;
      }
    }
  }
}

// A verify of four rows of which any number is kept runs nothing again.
TEST_P(HybridSession, KeepsAnyNumberOfVerifiedRows) {
  const std::vector<int32_t> tokens(tokens_.begin(), tokens_.begin() + 40);
  const std::vector<float> expected = prefill_rows(*model_, kExact, tokens);
  SessionShape shape{64, 16};
  shape.verify_rows = 4;
  const auto session = make_session(*model_, kExact, shape);
  ASSERT_TRUE(session->append(std::span(tokens).first(10)).ok());
  size_t position = 10;
  for (size_t kept = 1; position + 4 < tokens.size(); kept = kept % 4 + 1) {
    std::vector<int32_t> rows(tokens.begin() + static_cast<ptrdiff_t>(position),
                              tokens.begin() + static_cast<ptrdiff_t>(position + 4));
    for (size_t r = kept; r < 4; ++r) rows[r] = (rows[r] + 7) % 90;
    const auto logits = session->verify(rows);
    ASSERT_TRUE(logits.ok()) << logits.error().message;
    for (size_t r = 0; r < kept; ++r) {
      const float* data = logits->data + r * vocabulary_;
      EXPECT_TRUE(same_bits({data, data + vocabulary_}, row(expected, position + r)));
    }
    position += kept;
    EXPECT_LE(session->reach(), static_cast<int64_t>(position));
    ASSERT_TRUE(session->truncate(static_cast<int64_t>(position)).ok());
  }
}

// The head's cache is the same whether its rows came in chunks, one by one, or after verified rows
// were taken back.
TEST_P(HybridSession, DraftsAlikeHoweverThePromptCame) {
  const auto prompt = std::span<const int32_t>(tokens_).first(30);
  const auto drafts_of = [&](const std::function<void(Session&)>& run) {
    SessionShape shape{64, 16};
    shape.verify_rows = 4;
    shape.drafts = true;
    const auto session = make_session(*model_, kExact, shape);
    run(*session);
    EXPECT_EQ(session->position(), 30);
    std::vector<int32_t> drafts{5};
    for (int depth = 0; depth < 3; ++depth) {
      const auto pick = session->draft(drafts.back());
      if (!pick.ok()) {
        ADD_FAILURE() << pick.error().message;
        break;
      }
      drafts.push_back(pick->token);
    }
    return drafts;
  };
  const auto expected = drafts_of([&](Session& s) { EXPECT_TRUE(s.append(prompt).ok()); });
  EXPECT_EQ(expected, drafts_of([&](Session& s) {
              for (const int32_t token : prompt) EXPECT_TRUE(s.append(token).ok());
            }));
  EXPECT_EQ(expected, drafts_of([&](Session& s) {
              EXPECT_TRUE(s.append(prompt.first(27)).ok());
              EXPECT_TRUE(s.draft(prompt[27]).ok());
              EXPECT_TRUE(s.draft(9).ok());
              const int32_t rows[] = {prompt[27], prompt[28], 9, 8};
              EXPECT_TRUE(s.verify(rows).ok());
              EXPECT_TRUE(s.truncate(29).ok());
              EXPECT_TRUE(s.draft(3).ok());  // not what follows
              EXPECT_TRUE(s.append(prompt[29]).ok());
            }));
  EXPECT_EQ(expected, drafts_of([&](Session& s) {
              EXPECT_TRUE(s.append(prompt).ok());
              EXPECT_TRUE(s.append(77).ok());
              EXPECT_TRUE(s.truncate(12).ok());  // out of reach: run again
              EXPECT_TRUE(s.append(prompt.subspan(12)).ok());
            }));
}

TEST_P(HybridSession, DraftsAreAskedForInReason) {
  SessionShape shape{8, 4};
  shape.drafts = true;
  const auto session = make_session(*model_, {}, shape);
  EXPECT_THAT(session->draft(1).error().message, HasSubstr("nothing to draft from"));
  ASSERT_TRUE(session->append(std::span(tokens_).first(7)).ok());
  EXPECT_THAT(session->draft(100000).error().message, HasSubstr("token 100000"));
  ASSERT_TRUE(session->draft(1).ok());
  ASSERT_TRUE(session->draft(1).ok());
  EXPECT_THAT(session->draft(1).error().message, HasSubstr("does not fit in a context of 8"));
  const auto without = open(false);
  const auto refused = Session::create(*without, {{}, shape, std::nullopt});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUsage);
}

// Plan and run agree to the byte, and every buffer is read.
TEST_P(HybridSession, TakesWhatThePlanSays) {
  for (const bool drafts : {false, true}) {
    for (const int64_t verify_rows : {0, 3}) {
      const auto model = open(drafts);
      SessionOptions options;
      options.shape = {200, 16};
      options.shape.verify_rows = verify_rows;
      options.shape.drafts = drafts;
      kernels::BufferAudit audit;
      options.audit = &audit;
      const auto session = Session::create(*model, options);
      ASSERT_TRUE(session.ok()) << session.error().message;
      ASSERT_TRUE((*session)->append(std::span(tokens_).first(50)).ok());
      if (drafts) {
        ASSERT_TRUE((*session)->draft(3).ok());
      }
      ASSERT_TRUE((*session)->append(3).ok());
      ASSERT_TRUE((*session)->pick({}).ok());
      EXPECT_EQ((*session)->arenas().peak_bytes(), (*session)->plan().total_bytes);
      const AuditReport report = audit_report(audit);
      EXPECT_THAT(report.unread, IsEmpty()) << (report.unread.empty() ? "" : report.unread[0].name);
    }
  }
}

TEST_P(HybridSession, TakesWhatThePlanSaysAtAnyContextAndChunk) {
  constexpr int64_t kMostContext = 65536;
  models::EditedFolder folder(std::get<1>(GetParam()));
  folder.config["max_position_embeddings"] = kMostContext;
  const std::string path = folder.write();
  for (const bool drafts : {false, true}) {
    ModelOptions options;
    options.backend = backend_;
    options.build.draft_head = drafts;
    const auto model = open_model(path, options);
    for (const int64_t context : {int64_t{1024}, int64_t{8192}, kMostContext}) {
      for (const int64_t chunk : {128, 512, 2048, 4096}) {
        SessionShape shape{context, chunk};
        shape.drafts = drafts;
        const auto session = make_session(*model, {}, shape);
        ASSERT_NE(session, nullptr);
        ASSERT_TRUE(session->append(tokens_).ok());
        EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes)
            << context << " positions, chunks of " << chunk;
      }
    }
  }
}

// Verifies of every width, going back within each, leave the bits of a prefill.
TEST_P(HybridSession, VerifiesOfEveryWidthGiveTheSameBits) {
  for (const char* quant : {"none", "q8", "q4"}) {
    const auto model = open(false, quant);
    const std::vector<int32_t> tokens(tokens_.begin(), tokens_.begin() + 60);
    const std::vector<float> expected = prefill_rows(*model, kExact, tokens);
    ASSERT_FALSE(expected.empty());
    EXPECT_TRUE(same_bits(decode_rows(*model, kExact, tokens), expected)) << quant;
    for (int64_t width = 1; width <= 16; ++width) {
      SessionShape shape{64, 16};
      shape.verify_rows = width;
      const auto session = make_session(*model, kExact, shape);
      ASSERT_NE(session, nullptr);
      std::vector<float> rows;
      for (size_t at = 0; at < tokens.size();) {
        const size_t count = std::min(static_cast<size_t>(width), tokens.size() - at);
        const auto kept = static_cast<int64_t>(
            at + (at + count < tokens.size() && at % 3 == 0 ? (count + 1) / 2 : count));
        const auto logits = session->verify(std::span(tokens).subspan(at, count));
        ASSERT_TRUE(logits.ok()) << logits.error().message;
        rows.insert(
            rows.end(), logits->data,
            logits->data + static_cast<size_t>(kept - static_cast<int64_t>(at)) * vocabulary_);
        ASSERT_TRUE(session->truncate(kept).ok());
        at = static_cast<size_t>(kept);
      }
      EXPECT_TRUE(same_bits(rows, expected)) << quant << ", width " << width;
    }
  }
}

// Those of a CPU are in speculate_test.cpp.
class HybridSpeculation : public HybridSession {};

// Whatever drafts, and however deep.
TEST_P(HybridSpeculation, GivesTheTokensOfPlainDecode) {
  for (const char* quant : {"none", "q4"}) {
    const auto model = open(true, quant);
    for (const SamplerOptions& sampler :
         {SamplerOptions{}, SamplerOptions{.temperature = 0.9, .seed = 3}}) {
      GenerateOptions options;
      options.max_tokens = 128;
      options.sampler = sampler;
      const SessionShape shape{static_cast<int64_t>(tokens_.size()) + 128};
      const auto plainly = make_session(*model, {"decode.drafter=none"}, shape);
      ASSERT_NE(plainly, nullptr);
      const auto plain = generate(*plainly, tokens_, options, nullptr, {});
      ASSERT_TRUE(plain.ok()) << plain.error().message;
      for (const char* drafter : {"mtp", "replay:0.8"}) {
        for (const char* depth : {"1", "2", "3", "8"}) {
          const auto session = make_session(*model,
                                            {fmt::format("decode.drafter={}", drafter),
                                             fmt::format("decode.mtp_depth={}", depth)},
                                            shape);
          ASSERT_NE(session, nullptr);
          const auto drafted = generate(*session, tokens_, options, nullptr, {});
          ASSERT_TRUE(drafted.ok()) << drafted.error().message;
          EXPECT_EQ(drafted->tokens, plain->tokens) << quant << " " << drafter << " " << depth;
          EXPECT_EQ(drafted->margins, plain->margins) << quant << " " << drafter << " " << depth;
          EXPECT_EQ(session->position(), plainly->position());
          EXPECT_EQ(session->arenas().peak_bytes(), session->plan().total_bytes);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, HybridSession, on_every_folder("cpu"), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, HybridSession, on_every_folder("cuda"), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, HybridSpeculation, on_every_folder("cuda"), case_name);

using DraftOracle = HybridTest;

TEST_P(DraftOracle, RowsAndDraftsAreThoseRecorded) {
  const auto model = open(true);
  std::vector<Assignments> runs{{"numerics=reference"},
                                {"numerics=reference", "prefill.chunk=7"},
                                kExact,
                                {"prefill.numerics=exact", "cpu.isa=scalar"}};
  // The fast kernels of a GPU round activations to 16 bits, which these cases amplify.
  if (backend_->device().backend == "cpu") runs.push_back({});
  for (const Assignments& assignments : runs) {
    const auto report = check_oracle(*model, {switches_of(assignments), {}, std::nullopt});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->passed) << (report->first_failure ? mismatch_text(*report->first_failure)
                                                          : "");
    EXPECT_EQ(report->draft_rows, 47 + 3);
    EXPECT_EQ(report->drafts, 3);
    EXPECT_EQ(report->drafts_equal, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, DraftOracle, on_every_folder("cpu"), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, DraftOracle, on_every_folder("cuda"), case_name);

using HybridExperts = HybridTest;

TEST_P(HybridExperts, OfOneTensorGiveTheSameBits) {
  models::EditedFolder folder(std::get<1>(GetParam()));
  models::fuse_experts(folder);
  ModelOptions options;
  options.backend = backend_;
  const auto fused = open_model(folder.write(), options);
  const auto apart = open(false);
  ASSERT_NE(fused, nullptr);
  const std::vector<int32_t> tokens = longest_prompt(*apart);
  EXPECT_TRUE(same_bits(prefill_rows(*fused, {}, tokens), prefill_rows(*apart, {}, tokens)));
}

INSTANTIATE_TEST_SUITE_P(Golden, HybridExperts,
                         ::testing::Values(Case("cpu", "oracle/qwen3_5_moe-s0")), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, HybridExperts,
                         ::testing::Values(Case("cuda", "oracle/qwen3_5_moe-s0")), case_name);

}  // namespace
}  // namespace reckon::engine
