// Tokenizers of every kind against what PyPI `tokenizers` and `sentencepiece` gave for the same
// texts (tests/golden/README.md, tools/golden/make_tokenizer_kinds.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "formats/test_files.h"
#include "formats/tokenizer.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kRandomTexts = 10'000;

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t state) : state_(state) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

struct Texts {
  std::vector<std::string> fixed;
  std::vector<std::string> random;
};

Texts load_texts() {
  const auto file = nlohmann::json::parse(read_file(golden_path("tokenizer/kinds/texts.json")));
  const auto parts = file["parts"].get<std::vector<std::string>>();
  Texts texts{file["fixed"].get<std::vector<std::string>>(), {}};
  for (int i = 0; i < kRandomTexts; ++i) {
    SplitMix64 random(static_cast<uint64_t>(i));
    std::string text;
    for (uint64_t n = 1 + random.next() % 24; n > 0; --n)
      text += parts[random.next() % parts.size()];
    texts.random.push_back(std::move(text));
  }
  return texts;
}

std::string digits(const std::vector<int32_t>& ids) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((static_cast<uint32_t>(id) >> shift) & 0xffU)) * 0x100000001b3U;
    }
  }
  return fmt::format("{:04x}", hash & 0xffffU);
}

Tokenizer load_kind(const std::string& kind) {
  const std::string path = golden_path("tokenizer/kinds/" + kind);
  if (!kind.ends_with(".gguf")) {
    auto tokenizer = Tokenizer::from_folder(path);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return std::move(tokenizer).value();
  }
  const auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  auto tokenizer = Tokenizer::from_checkpoint(*checkpoint);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

class TokenizerKinds : public ::testing::TestWithParam<const char*> {};

TEST_P(TokenizerKinds, MatchTheReference) {
  const std::string kind = GetParam();
  const Tokenizer tokenizer = load_kind(kind);
  const Texts texts = load_texts();
  const std::string name = kind.substr(0, kind.find('.'));
  std::istringstream lines(read_file(golden_path("tokenizer/kinds/" + name + ".hashes")));
  const auto compare = [&](const std::vector<std::string>& inputs, Special special) {
    std::string line;
    std::getline(lines, line);
    ASSERT_EQ(line.size(), inputs.size() * 4);
    int differences = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto ids = tokenizer.encode(inputs[i], special);
      if (digits(ids) == line.substr(i * 4, 4)) continue;
      if (++differences <= 5) {
        ADD_FAILURE() << kind << ": " << nlohmann::json(inputs[i]).dump(-1, ' ', true) << " gives "
                      << nlohmann::json(ids).dump();
      }
    }
    EXPECT_EQ(differences, 0) << "of " << inputs.size();
  };
  // SentencePiece itself takes control tokens for text.
  const Special special = kind.ends_with(".gguf") ? Special::kIgnore : Special::kParse;
  compare(texts.fixed, special);
  compare(texts.random, special);
  if (special == Special::kParse) compare(texts.fixed, Special::kIgnore);
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerKinds,
                         ::testing::Values("gpt2", "llama3", "glm4", "qwen2", "qwen35",
                                           "deepseek-v3", "flags", "llama2", "llama2-first",
                                           "gemma", "bpe-unk", "unigram", "unigram-bytes",
                                           "llama.gguf", "t5.gguf"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

std::vector<std::string> random_bytes() {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    const size_t size = random() % 40;
    while (bytes.size() < size) {
      const char* pieces[] = {"the", "\xc3\xa9", "\xe2\x82", "\xf0\x9f", " ", "\n", "1", "'s"};
      const auto kind = random() % 10;
      bytes += kind < 8 ? std::string(pieces[kind]) : std::string(1, static_cast<char>(random()));
    }
    texts.push_back(std::move(bytes));
  }
  return texts;
}

// Every byte string comes back where the vocabulary has all bytes and nothing normalises.
TEST(TokenizerRoundTrip, EveryByteString) {
  for (const char* kind : {"gpt2", "llama3", "deepseek-v3", "llama2", "gemma", "llama.gguf"}) {
    const Tokenizer tokenizer = load_kind(kind);
    const bool prefixes =
        tokenizer.decode(tokenizer.encode("\xff a", Special::kIgnore)) != "\xff a";
    EXPECT_FALSE(prefixes) << kind;
    for (const std::string& text : random_bytes()) {
      // The space that decoding drops is the text's own where an invalid byte comes first.
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, Special::kParse)), text) << kind;
    }
  }
}

TEST(TokenizerRoundTrip, TextsOfPartsOfAllKinds) {
  const Texts texts = load_texts();
  for (const char* kind : {"gpt2", "llama3", "glm4", "deepseek-v3"}) {
    const Tokenizer tokenizer = load_kind(kind);
    for (const std::string& text : texts.random) {
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, Special::kParse)), text) << kind;
    }
  }
}

TEST(TokenizerRoundTrip, SpacesOfSentencePiece) {
  const Tokenizer tokenizer = load_kind("llama2");
  const auto round = [&](std::string_view text) {
    return tokenizer.decode(tokenizer.encode(text, Special::kParse));
  };
  EXPECT_EQ(round("the man"), "the man");
  EXPECT_EQ(round(" the  man "), " the  man ");
  EXPECT_EQ(round("<s>the man"), "<s> the man");  // as the reference does
  const auto ids = tokenizer.encode("the man", Special::kParse);
  EXPECT_TRUE(tokenizer.token_bytes(ids[0]).starts_with(' '));  // of a text that goes on
  EXPECT_EQ(tokenizer.token_bytes(tokenizer.encode("\xff", Special::kParse)[0]), "\xff");
  EXPECT_THAT(tokenizer.encode("", Special::kParse), IsEmpty());
}

TEST(TokenizerRoundTrip, WithoutByteTokensTheUnknownTokenStandsForAll) {
  const Tokenizer tokenizer = load_kind("unigram");
  const auto unk = tokenizer.control_token("<unk>");
  ASSERT_TRUE(unk.has_value());
  EXPECT_THAT(tokenizer.encode("\xff", Special::kParse), ElementsAre(*unk));
}

TEST(TokenizerPrefix, SayWhatGoesBeforeAText) {
  const Tokenizer llama = load_kind("llama3");
  EXPECT_TRUE(llama.add_bos());
  EXPECT_EQ(llama.bos(), llama.control_token("<s>"));
  const Tokenizer glm = load_kind("glm4");
  EXPECT_THAT(glm.prefix(),
              ElementsAre(*glm.control_token("<|im_start|>"), *glm.control_token("<s>")));
  EXPECT_THAT(load_kind("qwen2").prefix(), IsEmpty());
  EXPECT_TRUE(load_kind("llama.gguf").add_bos());
  const Tokenizer t5 = load_kind("t5.gguf");
  EXPECT_THAT(t5.suffix(), ElementsAre(*t5.eos()));
}

}  // namespace
}  // namespace reckon
