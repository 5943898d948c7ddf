#include "formats/tokenizer_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "formats/test_files.h"
#include "formats/tokenizer.h"

namespace reckon {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json small() {
  return json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

std::string message(const std::string& text) {
  const TestFolder folder;
  folder.write("tokenizer.json", text);
  const auto tokenizer = Tokenizer::from_folder(folder.path());
  return tokenizer.ok() ? std::string("loaded") : tokenizer.error().message;
}

// What is said where `value` stands at `pointer`.
std::string message_with(const std::string& pointer, const json& value) {
  json file = small();
  file[json::json_pointer(pointer)] = value;
  return message(file.dump());
}

TEST(TokenizerJson, ReadsMergesOfBothForms) {
  EXPECT_EQ(message(small().dump()), "loaded");
  EXPECT_EQ(message_with("/model/merges", json::array({json::array({"a", "b"})})), "loaded");
}

TEST(TokenizerJson, WhatIsUnknownIsAnErrorThatNamesIt) {
  EXPECT_THAT(message_with("/normalizer", {{"type", "Lowercase"}}),
              HasSubstr("'normalizer' has the type \"Lowercase\": expected one of NFC, Prepend"));
  EXPECT_THAT(message_with("/pre_tokenizer", {{"type", "BertPreTokenizer"}}),
              HasSubstr("'pre_tokenizer' has the type \"BertPreTokenizer\""));
  EXPECT_THAT(message_with("/decoder", {{"type", "WordPiece"}}),
              HasSubstr("'decoder' has the type"));
  EXPECT_THAT(message_with("/post_processor", {{"type", "BertProcessing"}}),
              HasSubstr("'post_processor' has the type"));
  EXPECT_THAT(message_with("/model/type", "WordPiece"), HasSubstr("'model' has the type"));
  EXPECT_THAT(message_with("/model/surprise", 1), HasSubstr("'model' has the key 'surprise'"));
  EXPECT_THAT(message_with("/surprise", 1), HasSubstr("has the key 'surprise'"));
  EXPECT_THAT(message_with("/decoder", nullptr), HasSubstr("has no 'decoder'"));
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", "\\w+"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  EXPECT_THAT(message_with("/pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split}}}),
              HasSubstr("'pre_tokenizer.pretokenizers[0]' splits by \"\\\\w+\""));
}

TEST(TokenizerJson, BrokenVocabulariesAreErrors) {
  EXPECT_THAT(message_with("/model/vocab/b", 0), HasSubstr("the id 0, which"));
  EXPECT_THAT(message_with("/model/vocab/b", -1), HasSubstr("gives 'b' something else than an id"));
  EXPECT_THAT(message_with("/model/vocab/b", 1 << 30), HasSubstr("gives 'b' something else"));
  EXPECT_THAT(message_with("/model/merges/0", "a c"), HasSubstr("'model.merges' has \"a c\" at 0"));
  EXPECT_THAT(message_with("/model/merges/0", "ab"), HasSubstr("expected two tokens"));
  EXPECT_THAT(message_with("/model/merges", nullptr), HasSubstr("'model' has no 'merges'"));
  EXPECT_THAT(message_with("/model/unk_token", "?"), HasSubstr("is '?', which is not in the voc"));
  EXPECT_THAT(message_with("/added_tokens/0/id", 1 << 30),
              HasSubstr("'added_tokens[0]' has the id"));
  EXPECT_THAT(message_with("/added_tokens/0/id", 2), HasSubstr("which 'ab' has"));
  EXPECT_THAT(message_with("/added_tokens/0/content", "a"), HasSubstr("expected 0, which 'a' has"));
  EXPECT_THAT(message("[1]"), HasSubstr("not a JSON object"));
  std::string twice = small().dump();
  twice.replace(twice.find("\"b\":1"), 5, "\"a\":1");
  EXPECT_THAT(message(twice), HasSubstr("tokenizer.json: the file has 'a' twice"));
}

TEST(TokenizerJson, TakesBeginAndEndFromTheConfigurations) {
  const TestFolder folder;
  folder.write("tokenizer.json", small().dump());
  folder.write("tokenizer_config.json",
               R"({"bos_token": {"content": "<s>"}, "eos_token": "b", "add_bos_token": true})");
  folder.write("generation_config.json", R"({"eos_token_id": [2, 1, 99]})");
  const auto tokenizer = Tokenizer::from_folder(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->bos(), 3);
  EXPECT_THAT(tokenizer->prefix(), ElementsAre(3));
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(1, 2));
  EXPECT_THAT(tokenizer->encode("ab<s>b", Special::kParse), ElementsAre(2, 3, 1));
}

TEST(TokenizerJson, DamageNeverCrashes) {
  const std::string whole = small().dump();
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const TestFolder folder;
    folder.write("tokenizer.json", damaged);
    const auto tokenizer = Tokenizer::from_folder(folder.path());
    if (tokenizer.ok()) (void)tokenizer->decode(tokenizer->encode("ab <s> \xff", Special::kParse));
  }
}

}  // namespace
}  // namespace reckon
