// A state that was saved and loaded goes on with the bits of the session that it was saved from.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "engine/generate.h"
#include "engine/test_sessions.h"

namespace reckon::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ModelOptions with_head() {
  ModelOptions options;
  options.build.draft_head = true;
  return options;
}

StateFile open_state(const std::string& path) {
  auto file = StateFile::open(path);
  if (!file.ok()) ADD_FAILURE() << file.error().message;
  return std::move(file).value();
}

bool same_logits(const Result<std::span<const float>>& a, const Result<std::span<const float>>& b) {
  if (!a.ok() || !b.ok()) return false;
  return same_bits({a->begin(), a->end()}, {b->begin(), b->end()});
}

// Decodes the tokens in both.
void expect_same_rows(Session& saved, Session& loaded, std::span<const int32_t> tokens) {
  ASSERT_EQ(loaded.position(), saved.position());
  EXPECT_TRUE(std::ranges::equal(loaded.tokens(), saved.tokens()));
  for (const int32_t token : tokens) {
    EXPECT_TRUE(same_logits(saved.decode(token), loaded.decode(token))) << saved.position();
  }
}

class SavedState : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] std::string save(Session& session) const {
    std::string path = folder_.path() + "/state";
    const Status saved = session.save_state(path);
    EXPECT_TRUE(saved.ok()) << (saved.ok() ? "" : saved.error().message);
    return path;
  }
  void load(Session& session, const std::string& path) const {
    const Status loaded = session.load_state(open_state(path));
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  }

  TestFolder folder_;
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path(GetParam()), with_head());
  std::vector<int32_t> tokens_ = longest_prompt(*model_);
};

// From every position of a short run, which the prefill reaches in chunks.
TEST_P(SavedState, GoesOnWithTheSameBits) {
  constexpr size_t kTokens = 24;
  const auto tokens = std::span<const int32_t>(tokens_).first(kTokens + 3);
  for (const Assignments& assignments :
       {Assignments{"decode.drafter=none"},
        Assignments{"prefill.numerics=exact", "decode.drafter=none"},
        Assignments{"numerics=reference", "decode.drafter=none"}}) {
    for (size_t n = 1; n <= kTokens; ++n) {
      const auto saved = make_session(*model_, assignments, {kTokens + 3, 8});
      ASSERT_TRUE(saved->append(tokens.first(n)).ok());
      const std::string path = save(*saved);
      const auto loaded = make_session(*model_, assignments, {kTokens + 3, 8});
      load(*loaded, path);
      expect_same_rows(*saved, *loaded, tokens.subspan(n, 3));
    }
  }
}

// Sessions of other sizes, in the middle of a decode, and saved again.
TEST_P(SavedState, FitsSessionsOfOtherSizes) {
  const auto tokens = std::span<const int32_t>(tokens_);
  const Assignments exact = {"prefill.numerics=exact", "decode.drafter=none"};
  SessionShape large{200, 32};
  large.verify_rows = 5;
  const auto saved = make_session(*model_, exact, large);
  ASSERT_TRUE(saved->append(tokens.first(40)).ok());
  ASSERT_TRUE(saved->append_rows(tokens.subspan(40, 5)).ok());
  ASSERT_TRUE(saved->truncate(42).ok());
  const std::string path = save(*saved);
  const auto small = make_session(*model_, exact, {50, 16});
  load(*small, path);
  expect_same_rows(*saved, *small, tokens.subspan(42, 4));
  const auto again = make_session(*model_, exact, large);
  load(*again, save(*small));
  expect_same_rows(*small, *again, tokens.subspan(46, 3));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

// What cannot be gone back to is run again, from the tokens.
TEST_P(SavedState, GoesBackAfterItWasLoaded) {
  const auto tokens = std::span<const int32_t>(tokens_);
  const Assignments exact = {"prefill.numerics=exact", "decode.drafter=none"};
  const auto saved = make_session(*model_, exact, {64, 16});
  ASSERT_TRUE(saved->append(tokens.first(30)).ok());
  const auto loaded = make_session(*model_, exact, {64, 16});
  load(*loaded, save(*saved));
  ASSERT_TRUE(loaded->truncate(12).ok());
  const auto plain = make_session(*model_, exact, {64, 16});
  ASSERT_TRUE(plain->append(tokens.first(12)).ok());
  expect_same_rows(*plain, *loaded, tokens.subspan(20, 3));
}

std::vector<std::string> saved_models() {
  std::vector<std::string> models = hybrid_folders();
  models.insert(models.end(), {"oracle/llama-s0", "oracle/gemma3-h64", "gguf/tiny-qwen3.gguf"});
  return models;
}

INSTANTIATE_TEST_SUITE_P(Golden, SavedState, ::testing::ValuesIn(saved_models()), test_name);

// With the head that drafts.
class SavedDrafts : public SavedState {
 protected:
  static SessionShape shape(int64_t chunk = 16) {
    SessionShape shape{96, chunk};
    shape.verify_rows = 4;
    shape.drafts = true;
    return shape;
  }
  std::vector<int32_t> generated(Session& session, std::span<const int32_t> prompt,
                                 int64_t count) const {
    GenerateOptions options;
    options.max_tokens = count;
    const auto generation = generate(session, prompt, options, nullptr, {});
    if (!generation.ok()) {
      ADD_FAILURE() << generation.error().message;
      return {};
    }
    return generation->tokens;
  }
};

// The head's own rows are saved, however far they are behind.
TEST_P(SavedDrafts, DraftsTheSame) {
  const auto tokens = std::span<const int32_t>(tokens_);
  for (size_t n = 1; n <= 24; ++n) {
    for (const bool drafted_before : {false, true}) {
      const auto saved = make_session(*model_, {}, shape());
      ASSERT_TRUE(saved->append(tokens.first(n)).ok());
      if (drafted_before) {
        ASSERT_TRUE(saved->draft(tokens[n]).ok());
      }
      const std::string path = save(*saved);
      const auto loaded = make_session(*model_, {}, shape());
      load(*loaded, path);
      bool is_deep = drafted_before;  // until the next pass the saved one drafts on
      for (const int32_t next : {tokens[n], (tokens[n] + 5) % 90, 7}) {
        int32_t token = next;
        for (int depth = 0; depth < 3 && !is_deep; ++depth) {
          const auto expected = saved->draft(token);
          const auto got = loaded->draft(token);
          ASSERT_TRUE(expected.ok() && got.ok());
          EXPECT_EQ(got->token, expected->token) << n;
          EXPECT_EQ(got->margin, expected->margin) << n;
          token = expected->token;
        }
        EXPECT_TRUE(same_logits(saved->decode(next), loaded->decode(next)));
        is_deep = false;
      }
    }
  }
}

TEST_P(SavedDrafts, GeneratesTheSameTokens) {
  constexpr int64_t kTokens = 14;
  const auto prompt = std::span<const int32_t>(tokens_).first(20);
  for (const Assignments& assignments :
       {Assignments{"decode.mtp_depth=3"},
        Assignments{"decode.drafter=replay:0.7", "decode.mtp_depth=3"},
        Assignments{"decode.drafter=lookup", "decode.mtp_depth=2"}}) {
    const auto whole = make_session(*model_, assignments, shape());
    const std::vector<int32_t> expected = generated(*whole, prompt, kTokens);
    ASSERT_EQ(expected.size(), static_cast<size_t>(kTokens));
    for (int64_t n = 1; n < kTokens; ++n) {
      const auto first = make_session(*model_, assignments, shape());
      std::vector<int32_t> tokens = generated(*first, prompt, n);
      const std::string path = folder_.path() + "/state";
      ASSERT_TRUE(first->save_state(path, tokens.back()).ok());
      const StateFile file = open_state(path);
      const auto second = make_session(*model_, assignments, shape());
      ASSERT_TRUE(second->load_state(file).ok());
      const int32_t pending[] = {file.contents().pending.value()};
      const std::vector<int32_t> rest = generated(*second, pending, kTokens - n);
      tokens.insert(tokens.end(), rest.begin(), rest.end());
      EXPECT_EQ(tokens, expected) << n;
    }
  }
}

TEST_P(SavedDrafts, AreRefusedWhereThereIsNoRoomOrNoHead) {
  const auto saved = make_session(*model_, {}, shape());
  ASSERT_TRUE(saved->append(std::span<const int32_t>(tokens_).first(16)).ok());
  const std::string path = save(*saved);
  const auto error_of = [&](const Assignments& assignments, const SessionShape& other) {
    const auto session = make_session(*model_, assignments, other);
    const Status loaded = session->load_state(open_state(path));
    if (loaded.ok()) return std::string();
    EXPECT_EQ(loaded.error().kind, ErrorKind::kRefused);
    EXPECT_EQ(session->position(), 0);
    return loaded.error().message;
  };
  EXPECT_EQ(error_of({}, shape()), "");
  EXPECT_THAT(error_of({}, shape(8)), HasSubstr("has 16 rows of the last pass for the head"));
  EXPECT_THAT(error_of({"decode.drafter=none"}, {96, 16}),
              HasSubstr("saved with the model's own head that drafts"));
}

INSTANTIATE_TEST_SUITE_P(Golden, SavedDrafts, ::testing::ValuesIn(hybrid_folders()), test_name);

class RefusedState : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto session = make_session(*model_, {}, {40, 8});
    ASSERT_TRUE(session->append(std::span<const int32_t>(tokens_).first(20)).ok());
    ASSERT_TRUE(session->save_state(path_).ok());
  }
  // Of a session with these switches; it is refused and nothing is changed.
  [[nodiscard]] std::string refusal(const LoadedModel& model, const Assignments& assignments,
                                    int64_t capacity = 40) const {
    const auto session = make_session(model, assignments, {capacity, 8});
    const Status loaded = session->load_state(open_state(path_));
    if (loaded.ok()) return "";
    EXPECT_EQ(loaded.error().kind, ErrorKind::kRefused);
    EXPECT_EQ(session->position(), 0);
    EXPECT_THAT(loaded.error().message, AllOf(HasSubstr(path_ + ": "), Not(HasSubstr("\n"))));
    return loaded.error().message;
  }
  // Of a file with these bytes.
  [[nodiscard]] std::string file_error(const std::string& bytes) const {
    const auto file = StateFile::open(folder_.write("changed", bytes));
    if (file.ok()) return "";
    EXPECT_EQ(file.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(file.error().message,
                AllOf(HasSubstr(folder_.path() + "/changed: "), Not(HasSubstr("\n"))));
    return file.error().message;
  }

  TestFolder folder_;
  std::string path_ = folder_.path() + "/state";
  std::unique_ptr<LoadedModel> model_ = open_model(golden_path("oracle/llama-s0"));
  std::vector<int32_t> tokens_ = longest_prompt(*model_);
};

TEST_F(RefusedState, OfAnotherModelOrOtherNumerics) {
  EXPECT_EQ(refusal(*model_, {}), "");
  EXPECT_EQ(refusal(*model_, {"prefill.chunk=3", "cpu.threads=1", "kv.type=f32"}), "");
  EXPECT_THAT(refusal(*open_model(golden_path("oracle/llama-s1")), {}),
              HasSubstr("the state of another model"));
  ModelOptions packed;
  packed.quant = *models::QuantScheme::parse("q8");
  EXPECT_THAT(refusal(*open_model(golden_path("oracle/llama-s0"), packed), {}),
              HasSubstr("saved with weights in bf16; here it is p8"));
  EXPECT_THAT(refusal(*model_, {"prefill.numerics=exact"}),
              HasSubstr("saved with prefill.numerics fast; here it is exact"));
  EXPECT_THAT(refusal(*model_, {"numerics=reference"}), HasSubstr("saved with numerics auto"));
  EXPECT_THAT(refusal(*model_, {}, 19),
              HasSubstr("a state of 20 positions does not fit in a context of 19"));
  if (kernels::cpu_backend().device().best_isa != kernels::Isa::kScalar) {
    EXPECT_THAT(refusal(*model_, {"cpu.isa=scalar"}), HasSubstr("here it is scalar"));
  }
}

// Whole files that no session writes.
TEST_F(RefusedState, WithBuffersOrTokensThatAreNotTheModels) {
  const StateFile file = open_state(path_);
  std::vector<StatePieces> pieces;
  for (size_t i = 0; i < file.contents().buffers.size(); ++i) pieces.push_back({file.rows(i)});
  const StateContents contents = file.contents();
  const auto changed = [&](const std::function<void(StateContents&)>& change) {
    StateContents other = contents;
    change(other);
    EXPECT_TRUE(write_state_file(path_, other, pieces).ok());
    return refusal(*model_, {});
  };
  EXPECT_EQ(changed([](StateContents&) {}), "");
  const char* buffers = "its buffers are not those";
  EXPECT_THAT(changed([](auto& c) { c.buffers[0].name = "else"; }), HasSubstr(buffers));
  EXPECT_THAT(changed([](auto& c) { std::swap(c.buffers[0].parts, c.buffers[0].width); }),
              HasSubstr(buffers));
  EXPECT_THAT(changed([](auto& c) { c.tokens.pop_back(); }), HasSubstr(buffers));
  EXPECT_THAT(changed([](auto& c) { c.tokens[3] = 1 << 30; }), HasSubstr("holds the token"));
  EXPECT_THAT(changed([](auto& c) { c.draft = DraftMark{0, 1, 2}; }), HasSubstr("saved with the"));
  EXPECT_THAT(changed([](auto& c) { c.identity.backend = "cuda"; }), HasSubstr("backend cuda"));
  EXPECT_THAT(changed([](auto& c) { c.identity.numerics["new.switch"] = "on"; }),
              HasSubstr("switches that this version does not have"));
}

TEST_F(RefusedState, OfAFileThatIsNotWhole) {
  const std::string bytes = read_file(path_);
  EXPECT_EQ(file_error(bytes), "");
  EXPECT_THAT(file_error(""), HasSubstr("expected a saved state"));
  EXPECT_THAT(file_error("GGUF" + bytes), HasSubstr("expected a saved state"));
  for (size_t size = 8; size < bytes.size(); size += size < 100 ? 1 : 97) {
    EXPECT_THAT(file_error(bytes.substr(0, size)), HasSubstr("cut short")) << size;
  }
  EXPECT_THAT(file_error(bytes + "more"), HasSubstr("damaged"));
  std::string other = bytes;
  other[8] = 2;
  EXPECT_THAT(file_error(other), HasSubstr("of format 2, from another version of Reckon"));
}

// Padding apart, no byte may be another one.
TEST_F(RefusedState, OfAFileThatIsDamaged) {
  const std::string bytes = read_file(path_);
  int64_t padding = 0;
  for (size_t at = 0; at < bytes.size(); at += at < 4096 ? 1 : 61) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x10);
    if (file_error(other).empty()) {
      EXPECT_EQ(bytes[at], '\0') << at;
      ++padding;
    }
  }
  EXPECT_LT(padding, 64 + 2 * 64);
}

TEST_F(RefusedState, OfNoFile) {
  for (const std::string& path : {folder_.path(), folder_.path() + "/none"}) {
    const auto file = StateFile::open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().kind, ErrorKind::kUsage);
  }
}

TEST_F(RefusedState, IsLeftAloneWhereSavingFails) {
  const std::string before = read_file(path_);
  const auto session = make_session(*model_, {}, {40, 8});
  EXPECT_THAT(session->save_state(path_).error().message, HasSubstr("no token was run"));
  ASSERT_TRUE(session->append(std::span<const int32_t>(tokens_).first(3)).ok());
  const Status saved = session->save_state(folder_.path() + "/none/state");
  ASSERT_FALSE(saved.ok());
  EXPECT_THAT(saved.error().message, HasSubstr("/none/"));
  EXPECT_EQ(read_file(path_), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

}  // namespace
}  // namespace reckon::engine
