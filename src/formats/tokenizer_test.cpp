#include "formats/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "formats/byte_alphabet.h"
#include "formats/test_files.h"
#include "formats/tokenizer_gguf.h"

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer load(const std::string& path) {
  auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  auto tokenizer = Tokenizer::from_checkpoint(*checkpoint);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

// Encodes each recorded text and counts the differences; the first ones are printed.
void expect_golden(const Tokenizer& tokenizer, const std::string& name, Special special) {
  std::ifstream file(golden_path(name));
  int lines = 0;
  int differences = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    const auto entry = nlohmann::json::parse(line);
    const auto text = entry["text"].get<std::string>();
    const auto ids = entry["ids"].get<std::vector<int32_t>>();
    const auto got = tokenizer.encode(text, special);
    if (got == ids) continue;
    if (++differences <= 5) ADD_FAILURE() << line << "\n got " << nlohmann::json(got).dump();
  }
  EXPECT_GT(lines, 0) << name;
  EXPECT_EQ(differences, 0) << "of " << lines << " in " << name;
}

TEST(Tokenizer, TinySmollmMatchesTokenizers) {
  expect_golden(load(golden_path("gguf/tiny-llama-mixed.gguf")), "tokenizer/tiny.jsonl",
                Special::kParse);
}

TEST(Tokenizer, TinyQwen2MatchesTokenizers) {
  expect_golden(load(golden_path("gguf/tiny-qwen3.gguf")), "tokenizer/tiny-qwen2.jsonl",
                Special::kParse);
}

TEST(Tokenizer, Smollm2MatchesTokenizers) {
  RECKON_REQUIRE_SMOLLM2();
  const Tokenizer tokenizer = load(smollm2_path());
  expect_golden(tokenizer, "tokenizer/smollm2.jsonl", Special::kParse);
  expect_golden(tokenizer, "tokenizer/smollm2-plain.jsonl", Special::kIgnore);
}

TEST(Tokenizer, Smollm2HasItsSpecialTokens) {
  RECKON_REQUIRE_SMOLLM2();
  const Tokenizer tokenizer = load(smollm2_path());
  EXPECT_EQ(tokenizer.vocab_size(), 49152);
  EXPECT_EQ(tokenizer.bos(), 1);
  EXPECT_EQ(tokenizer.eos(), 2);
  EXPECT_FALSE(tokenizer.add_bos());
  EXPECT_EQ(tokenizer.control_token("<|im_end|>"), 2);
  EXPECT_FALSE(tokenizer.control_token("Hello").has_value());
  EXPECT_TRUE(tokenizer.is_control(16));
  EXPECT_FALSE(tokenizer.is_control(17));
  EXPECT_FALSE(tokenizer.is_control(-1));
  EXPECT_EQ(tokenizer.token_bytes(2), "<|im_end|>");
}

// A vocabulary of all single bytes, the given merges and tokens.
class TokenizerFile {
 public:
  TokenizerFile() {
    for (int byte = 0; byte < 256; ++byte) add(byte_to_alphabet(static_cast<uint8_t>(byte)), 1);
  }
  int32_t add(const std::string& text, int32_t type) {
    tokens.push_back(text);
    types.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
  int32_t merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right, 1);
  }
  [[nodiscard]] std::string bytes() const {
    GgufWriter file;
    file.string("general.architecture", "llama").string("tokenizer.ggml.model", model);
    if (!pre.empty()) file.string("tokenizer.ggml.pre", pre);
    file.strings("tokenizer.ggml.tokens", tokens);
    ByteWriter type_array;
    type_array.put(GgufType::kInt32).put<uint64_t>(types.size());
    for (const int32_t type : types) type_array.put(type);
    file.key("tokenizer.ggml.token_type", GgufType::kArray, type_array.bytes());
    file.strings("tokenizer.ggml.merges", merges);
    file.scalar<uint32_t>("tokenizer.ggml.eos_token_id", GgufType::kUint32, eos);
    return file.bytes();
  }
  Result<Tokenizer> open() const {
    const TestFolder folder;
    const auto checkpoint = Checkpoint::open(folder.write("tokenizer.gguf", bytes()));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    return Tokenizer::from_checkpoint(*checkpoint);
  }
  [[nodiscard]] Tokenizer load() const {
    auto tokenizer = open();
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return std::move(tokenizer).value();
  }

  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  std::vector<std::string> merges;
  std::string model = "gpt2";
  std::string pre = "smollm";
  uint32_t eos = 0;
};

TEST(Tokenizer, TheLongestSpecialTokenWins) {
  TokenizerFile file;
  const int32_t shorter = file.add("<a>", 3);
  const int32_t longer = file.add("<a><b>", 3);
  const int32_t always = file.add("<think>", 4);
  const Tokenizer tokenizer = file.load();
  EXPECT_THAT(tokenizer.encode("<a><b><a>", Special::kParse), ElementsAre(longer, shorter));
  EXPECT_THAT(tokenizer.encode("<think>", Special::kIgnore), ElementsAre(always));
  EXPECT_EQ(tokenizer.encode("<a>", Special::kIgnore).size(), 3U);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("x<a>y", Special::kParse)), "x<a>y");
  EXPECT_FALSE(tokenizer.is_control(always));
}

TEST(Tokenizer, AFileThatNamesNoPreTokenizerIsSplitByLlamaCppsDefault) {
  TokenizerFile file;
  const int32_t two = file.merge("1", "2");
  (void)file.merge("12", "3");
  (void)file.merge("123", "4");
  const int32_t dots = file.merge(".", ".");
  (void)file.merge(byte_to_alphabet(' '), "1");
  for (const char* pre : {"default", ""}) {
    file.pre = pre;
    const std::string bytes = file.bytes();
    const auto gguf = GgufFile::parse(MappedFile::copy_of("model.gguf", bytes));
    ASSERT_TRUE(gguf.ok());
    EXPECT_EQ(gguf_tokenizer_note(*gguf).has_value(), file.pre.empty());
    // " 1" stays apart, "1234" is "123" and "4".
    EXPECT_THAT(file.load().encode(" 1234..", Special::kParse),
                ElementsAre(' ', two + 1, '4', dots));
  }
  file.pre = "gpt-2";
  EXPECT_THAT(file.load().encode("1234..", Special::kParse), ElementsAre(two + 2, dots));
}

TEST(Tokenizer, EveryByteStringSurvivesTheRoundTrip) {
  TokenizerFile file;
  file.merge("a", "b");
  file.merge(byte_to_alphabet(0xc3), byte_to_alphabet(0xa9));
  const Tokenizer tokenizer = file.load();
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    const size_t size = random() % 40;
    while (bytes.size() < size) {
      const char* pieces[] = {"ab", "\xc3\xa9", "\xe2\x82", "\xf0\x9f", " ", "\n", "1", "'s"};
      const auto kind = random() % 10;
      bytes += kind < 8 ? std::string(pieces[kind]) : std::string(1, static_cast<char>(random()));
    }
    for (const Special special : {Special::kParse, Special::kIgnore}) {
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(bytes, special)), bytes);
    }
  }
  EXPECT_EQ(tokenizer.encode("\xff\xfe", Special::kParse), (std::vector<int32_t>{0xff, 0xfe}));
}

// As tokenizers does it: what stood beside the byte is adjacent afterwards and may merge.
TEST(Tokenizer, AByteWithoutATokenIsLeftOut) {
  TokenizerFile file;
  file.tokens[0x13] = "no byte";
  const int32_t both = file.merge("!", "!");
  const Tokenizer tokenizer = file.load();
  EXPECT_THAT(tokenizer.encode("!\x13!", Special::kParse), ElementsAre(both));
}

TEST(Tokenizer, IdsOutsideTheVocabularyHaveNoBytes) {
  const Tokenizer tokenizer = TokenizerFile().load();
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(256), "");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{'h', -5, 'i', 1 << 30}), "hi");
}

// One word of a megabyte must not take quadratic time.
// Of the processor, not of the clock on the wall: others may be using the machine. Eight times the
// text is 64 times the work where it is quadratic, and about 10 times where it is not.
TEST(Tokenizer, LongWordsTakeLinearithmicWork) {
  RECKON_REQUIRE_SMOLLM2();
  const Tokenizer tokenizer = load(smollm2_path());
  constexpr size_t kShort = size_t{1} << 17;
  std::mt19937 random(3);
  std::string mixed;
  for (size_t i = 0; i < 8 * kShort; ++i) mixed += static_cast<char>('a' + random() % 26);
  const auto work = [&](const std::string& text) {
    const std::clock_t start = std::clock();
    const auto ids = tokenizer.encode(text, Special::kParse);
    const std::clock_t end = std::clock();
    EXPECT_EQ(tokenizer.decode(ids), text);
    return static_cast<double>(end - start);
  };
  for (const std::string& text :
       {std::string(8 * kShort, 'a'), std::string(8 * kShort, ' '), std::string(8 * kShort, '\n'),
        std::string(8 * kShort, '7'), std::string(8 * kShort, '<'), mixed}) {
    EXPECT_LT(work(text), 32 * work(text.substr(0, kShort)) + 0.1 * CLOCKS_PER_SEC);
  }
}

TEST(Tokenizer, BrokenVocabulariesAreErrors) {
  const auto message = [](const TokenizerFile& file) {
    const auto tokenizer = file.open();
    return tokenizer.ok() ? std::string("loaded") : tokenizer.error().message;
  };
  TokenizerFile model;
  model.model = "bert";
  EXPECT_THAT(message(model), HasSubstr("tokenizer model 'bert' is not supported"));
  TokenizerFile pre;
  pre.pre = "deepseek-v9";
  EXPECT_THAT(message(pre), HasSubstr("pre-tokenizer 'deepseek-v9' is not supported: expected one "
                                      "of chatglm-bpe, deepseek-r1-qwen, deepseek-v3, default"));
  TokenizerFile twice;
  twice.add("a", 1);
  EXPECT_THAT(message(twice), HasSubstr("token 'a' twice"));
  TokenizerFile types;
  types.types.pop_back();
  EXPECT_THAT(message(types), HasSubstr("has 255 elements: expected 256"));
  TokenizerFile unknown;
  unknown.merges = {"a zz"};
  EXPECT_THAT(message(unknown), HasSubstr("merge 0 of 'tokenizer.ggml.merges' is 'a zz'"));
  TokenizerFile again;
  again.merge("a", "b");
  again.merges.push_back("a b");
  EXPECT_THAT(message(again), HasSubstr("merge 1 of 'tokenizer.ggml.merges' is 'a b', which"));
  TokenizerFile odd;
  odd.types.back() = 7;
  EXPECT_THAT(message(odd), HasSubstr("gives token 255 the type 7: expected 1 to 6"));
  TokenizerFile one;
  one.merges = {"ab"};
  EXPECT_THAT(message(one), HasSubstr("expected two tokens"));
  TokenizerFile eos;
  eos.eos = 256;
  EXPECT_THAT(message(eos), HasSubstr("'tokenizer.ggml.eos_token_id' is 256"));
}

TEST(Tokenizer, DamageNeverCrashes) {
  TokenizerFile file;
  file.merge("a", "b");
  file.add("<a>", 3);
  const std::string whole = file.bytes();
  const TestFolder folder;
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto checkpoint = Checkpoint::open(folder.write("damaged.gguf", damaged));
    if (!checkpoint.ok()) continue;
    const auto tokenizer = Tokenizer::from_checkpoint(*checkpoint);
    if (!tokenizer.ok()) continue;
    (void)tokenizer->decode(tokenizer->encode("ab <a> \xff", Special::kParse));
  }
}

TEST(Tokenizer, AFolderWithoutOneSaysWhatIsExpected) {
  const auto checkpoint = Checkpoint::open(golden_path("oracle/llama-s0"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto tokenizer = Tokenizer::from_checkpoint(*checkpoint);
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_THAT(tokenizer.error().message, HasSubstr("expected tokenizer.json in the folder"));
}

}  // namespace
}  // namespace reckon
