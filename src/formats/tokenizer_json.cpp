#include "formats/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "formats/bpe_model.h"
#include "formats/file_error.h"
#include "formats/json_file.h"
#include "formats/json_node.h"
#include "formats/mapped_file.h"
#include "formats/tokenizer_json_steps.h"
#include "formats/unigram_model.h"
#include "formats/vocabulary.h"

namespace reckon {
namespace {

using nlohmann::json;

constexpr int64_t kMostIds = int64_t{1} << 22;  // a vocabulary may have gaps, but not endless ones

std::string_view text_of(const json& value) {
  return value.get_ref<const std::string&>();
}

class JsonTokenizerReader {
 public:
  explicit JsonTokenizerReader(std::string folder)
      : folder_(std::move(folder)), path_(file("tokenizer.json")) {}

  Result<std::unique_ptr<TokenizerState>> run() {
    TRY(parse(path_, root_));
    const JsonNode top(path_, root_, "");
    TRY(top.only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                  "post_processor", "decoder", "model"}));
    if (const auto node = top.find("normalizer")) TRY(read_normalizer(*node, state_->normalizer));
    if (const auto node = top.find("pre_tokenizer")) {
      TRY(read_pre_tokenizer(*node, state_->pre, byte_level_));
    }
    TRY_ASSIGN(const JsonNode model, top.member("model"));
    TRY(read_model(model));
    if (const auto node = top.find("added_tokens")) TRY(read_added_tokens(*node));
    TRY(make_model(model));
    TRY(read_decoding(top));
    if (const auto node = top.find("post_processor")) TRY(read_surroundings(*node));
    TRY(read_special_ids());
    state_->added.finish(state_->normalizer);
    return std::move(state_);
  }

 private:
  [[nodiscard]] std::string file(std::string_view name) const {
    return (std::filesystem::path(folder_) / name).string();
  }

  [[nodiscard]] static Status parse(const std::string& path, json& object) {
    TRY_ASSIGN(const MappedFile mapped, MappedFile::open(path));
    return parse_json_object(path, "the file", mapped.bytes(), object);
  }

  // The vocabulary: {"text": id, ...} for BPE, [["text", score], ...] for a unigram model.
  [[nodiscard]] Status read_model(const JsonNode& model) {
    TRY_ASSIGN(const std::string type,
               model.string_or("type", model.find("merges") ? "BPE" : "Unigram"));
    unigram_ = type == "Unigram";
    if (!unigram_ && type != "BPE") {
      return model.error(
          fmt::format("has the type '{}': expected one of BPE, Unigram", printable(type)));
    }
    TRY_ASSIGN(const JsonNode vocab, model.member("vocab"));
    if (unigram_) return read_scored_vocabulary(vocab);
    if (!vocab.is_object()) return vocab.error("is not an object");
    for (const auto& [text, id] : vocab.value().items()) {
      const bool fits =
          id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < kMostIds;
      if (!fits) {
        return vocab.error(fmt::format("gives '{}' something else than an id from 0 to {}",
                                       printable(text), kMostIds - 1));
      }
      TRY(place(vocab, text, id.get<int64_t>()));
    }
    return {};
  }

  [[nodiscard]] Status read_scored_vocabulary(const JsonNode& vocab) {
    if (!vocab.value().is_array()) return vocab.error("is not an array");
    if (vocab.value().size() > static_cast<size_t>(kMostIds)) return vocab.error("is too large");
    for (const json& entry : vocab.value()) {
      const bool good = entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
                        entry[1].is_number() && std::isfinite(entry[1].get<double>());
      if (!good) {
        return vocab.error(
            fmt::format("has an element {} that is not [text, finite number]", scores_.size()));
      }
      TRY(place(vocab, text_of(entry[0]), static_cast<int64_t>(scores_.size())));
      scores_.push_back(entry[1].get<double>());
    }
    return {};
  }

  // Gives `text` the id, which no other text may have.
  [[nodiscard]] Status place(const JsonNode& node, std::string_view text, int64_t id) {
    const auto index = static_cast<size_t>(id);
    if (index >= texts_.size()) texts_.resize(index + 1);
    if (texts_[index]) {
      return node.error(fmt::format("gives '{}' the id {}, which '{}' has", printable(text), id,
                                    printable(*texts_[index])));
    }
    if (!vocabulary_.add(text, static_cast<int32_t>(id))) {
      return node.error(fmt::format("has the token '{}' twice", printable(text)));
    }
    texts_[index] = std::string(text);
    return {};
  }

  [[nodiscard]] Status read_added_tokens(const JsonNode& node) {
    TRY_ASSIGN(const auto tokens, node.elements());
    for (const bool special : {true, false}) {  // control tokens come first in tokenizers
      for (const JsonNode& token : tokens) {
        TRY_ASSIGN(const bool is_special, token.boolean_or("special", false));
        if (is_special == special) TRY(read_added_token(token, special));
      }
    }
    return {};
  }

  [[nodiscard]] Status read_added_token(const JsonNode& node, bool special) {
    TRY(node.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
    AddedToken token;
    token.special = special;
    TRY_ASSIGN(token.text, node.string("content"));
    TRY_ASSIGN(const int64_t id, node.integer("id"));
    TRY_ASSIGN(token.normalized, node.boolean_or("normalized", !special));
    TRY_ASSIGN(token.single_word, node.boolean_or("single_word", false));
    TRY_ASSIGN(token.lstrip, node.boolean_or("lstrip", false));
    TRY_ASSIGN(token.rstrip, node.boolean_or("rstrip", false));
    if (id < 0 || id >= kMostIds) {
      return node.error(fmt::format("has the id {}: expected 0 to {}", id, kMostIds - 1));
    }
    token.id = static_cast<int32_t>(id);
    const int32_t known = vocabulary_.find(token.text);
    if (known == kNoToken) {
      TRY(add_to_model_later(node, token));
    } else if (known != token.id) {
      return node.error(fmt::format("has the id {}: expected {}, which '{}' has in the vocabulary",
                                    id, known, printable(token.text)));
    }
    is_added_.resize(std::max(is_added_.size(), static_cast<size_t>(id) + 1));
    is_added_[static_cast<size_t>(id)] = true;
    state_->added.add(std::move(token));
    return {};
  }

  // A token that is none of the model's: found as a whole only.
  [[nodiscard]] Status add_to_model_later(const JsonNode& node, const AddedToken& token) {
    const auto index = static_cast<size_t>(token.id);
    if (index >= texts_.size()) texts_.resize(index + 1);
    if (texts_[index] && *texts_[index] != token.text) {
      return node.error(fmt::format("has the id {}, which '{}' has in the vocabulary", token.id,
                                    printable(*texts_[index])));
    }
    texts_[index] = token.text;
    return {};
  }

  [[nodiscard]] Status make_model(const JsonNode& model) {
    return unigram_ ? make_unigram(model) : make_bpe(model);
  }

  [[nodiscard]] Status make_bpe(const JsonNode& model) {
    TRY(model.only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"}));
    if (const auto dropout = model.find("dropout"); dropout && dropout->value() != 0) {
      return dropout->error("is set: expected null");
    }
    for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      TRY_ASSIGN(const std::string affix, model.string_or(key, ""));
      if (!affix.empty()) {
        return model.error(fmt::format("has the {} '{}': expected none", key, printable(affix)));
      }
    }
    BpeOptions options{.byte_level = byte_level_};
    TRY_ASSIGN(options.byte_fallback, model.boolean_or("byte_fallback", false));
    TRY_ASSIGN(options.fuse_unk, model.boolean_or("fuse_unk", false));
    TRY_ASSIGN(options.ignore_merges, model.boolean_or("ignore_merges", false));
    if (const auto node = model.find("unk_token")) {
      TRY_ASSIGN(const std::string unk, model.string("unk_token"));
      const int32_t id = vocabulary_.find(unk);
      if (id == kNoToken) {
        return node->error(fmt::format("is '{}', which is not in the vocabulary", printable(unk)));
      }
      options.unk = id;
    }
    TRY_ASSIGN(MergeTable merges, read_merges(model));
    state_->model = std::make_unique<BpeModel>(options, vocabulary_, std::move(merges));
    return {};
  }

  // Each is "left right" or ["left", "right"].
  [[nodiscard]] Result<MergeTable> read_merges(const JsonNode& model) const {
    TRY_ASSIGN(const JsonNode node, model.member("merges"));
    const json& list = node.value();
    if (!list.is_array()) return node.error("is not an array");
    if (list.size() > static_cast<size_t>(INT32_MAX)) return node.error("is too long");
    MergeTable merges;
    merges.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      const json& merge = list[i];
      std::string_view left;
      std::string_view right;
      if (merge.is_string()) {
        const size_t space = text_of(merge).find(' ');
        left = text_of(merge).substr(0, space);
        if (space != std::string_view::npos) right = text_of(merge).substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        left = text_of(merge[0]);
        right = text_of(merge[1]);
      }
      if (left.empty() || right.empty() ||
          !add_merge(merges, static_cast<int32_t>(i), left, right, vocabulary_)) {
        return node.error(
            fmt::format("has {} at {}: expected two tokens of the vocabulary that make a third",
                        printable(merge.dump(-1, ' ', true)), i));
      }
    }
    return merges;
  }

  [[nodiscard]] Status make_unigram(const JsonNode& model) {
    TRY(model.only({"type", "unk_id", "vocab", "byte_fallback"}));
    TRY_ASSIGN(const bool byte_fallback, model.boolean_or("byte_fallback", false));
    std::optional<int32_t> unk;
    if (model.find("unk_id")) {
      TRY_ASSIGN(const int64_t id, model.integer("unk_id"));
      if (id < 0 || id >= static_cast<int64_t>(scores_.size())) {
        return model.error(
            fmt::format("has the unk_id {}: expected an id below {}", id, scores_.size()));
      }
      unk = static_cast<int32_t>(id);
    }
    std::array<int32_t, 256> bytes{};
    for (size_t byte = 0; byte < bytes.size(); ++byte) {
      bytes[byte] =
          byte_fallback ? vocabulary_.find(byte_token_text(static_cast<uint8_t>(byte))) : kNoToken;
    }
    std::vector<UnigramModel::Token> tokens;
    double lowest = 0;
    for (size_t i = 0; i < scores_.size(); ++i) {
      lowest = i == 0 ? scores_[i] : std::min(lowest, scores_[i]);
      if (texts_[i]->empty()) continue;
      tokens.push_back({*texts_[i], static_cast<int32_t>(i), scores_[i]});
    }
    state_->model = std::make_unique<UnigramModel>(std::move(tokens), bytes, unk, lowest,
                                                   UnigramModel::Sums::kDouble);
    return {};
  }

  [[nodiscard]] Status read_decoding(const JsonNode& top) {
    DecodeRules rules;
    TRY_ASSIGN(const JsonNode decoder, top.member("decoder"));
    TRY(read_decoder(decoder, rules));
    if (rules.byte_level != byte_level_) {
      return decoder.error(byte_level_ ? "is not ByteLevel, which 'pre_tokenizer' is"
                                       : "is ByteLevel, which 'pre_tokenizer' is not");
    }
    state_->strips_space = rules.strips_space;
    is_added_.resize(texts_.size());
    state_->control.resize(texts_.size());
    for (const AddedToken& token : state_->added.all()) {
      state_->control[static_cast<size_t>(token.id)] = token.special;
    }
    for (size_t id = 0; id < texts_.size(); ++id) {
      const std::string text = texts_[id].value_or("");
      const bool as_it_is = state_->control[id] || (is_added_[id] && byte_level_);
      state_->bytes.add(as_it_is ? text : rules.bytes_of(text));
    }
    return {};
  }

  [[nodiscard]] Status read_surroundings(const JsonNode& node) {
    Surroundings around;
    TRY(read_post_processor(node, around));
    for (const auto& [from, to] :
         {std::pair(&around.before, &state_->prefix), std::pair(&around.after, &state_->suffix)}) {
      for (const int64_t id : *from) {
        if (id < 0 || id >= static_cast<int64_t>(texts_.size())) {
          return node.error(
              fmt::format("adds the id {}: expected one below {}", id, texts_.size()));
        }
        to->push_back(static_cast<int32_t>(id));
      }
    }
    return {};
  }

  [[nodiscard]] Status read_special_ids() {
    TRY(read_tokenizer_config());
    for (const std::string_view name : {"generation_config.json", "config.json"}) {
      TRY(read_end_ids(file(name)));
    }
    if (!state_->bos && !state_->prefix.empty()) state_->bos = state_->prefix[0];
    return {};
  }

  [[nodiscard]] static bool exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  }

  // bos_token and eos_token, each a text or {"content": text}; add_bos_token.
  [[nodiscard]] Status read_tokenizer_config() {
    const std::string path = file("tokenizer_config.json");
    if (!exists(path)) return {};
    json object;
    TRY(parse(path, object));
    const JsonNode top(path, object, "");
    TRY_ASSIGN(state_->bos, read_token(top, "bos_token"));
    TRY_ASSIGN(const auto eos, read_token(top, "eos_token"));
    if (eos) state_->eos.push_back(*eos);
    TRY_ASSIGN(const bool add_bos, top.boolean_or("add_bos_token", false));
    if (add_bos && state_->bos && state_->prefix.empty()) state_->prefix.push_back(*state_->bos);
    return {};
  }

  [[nodiscard]] Result<std::optional<int32_t>> read_token(const JsonNode& top,
                                                          std::string_view key) const {
    const auto node = top.find(key);
    if (!node) return std::optional<int32_t>();
    TRY_ASSIGN(const std::string text,
               node->is_object() ? node->string("content") : top.string(key));
    for (size_t id = 0; id < texts_.size(); ++id) {
      if (texts_[id] == text) return std::optional<int32_t>(static_cast<int32_t>(id));
    }
    return node->error(fmt::format("is '{}', which tokenizer.json does not have", printable(text)));
  }

  // eos_token_id, one or several. A configuration may know more ids than the tokenizer.
  [[nodiscard]] Status read_end_ids(const std::string& path) {
    if (!exists(path)) return {};
    json object;
    TRY(parse(path, object));
    const JsonNode top(path, object, "");
    const auto node = top.find("eos_token_id");
    if (!node) return {};
    const json& value = node->value();
    for (const json& id : value.is_array() ? value : json::array({value})) {
      if (!id.is_number_integer()) return node->error("is neither a token id nor a list of them");
      const auto number = id.get<int64_t>();
      if (number < 0 || number >= static_cast<int64_t>(texts_.size())) continue;
      const auto token = static_cast<int32_t>(number);
      if (std::find(state_->eos.begin(), state_->eos.end(), token) == state_->eos.end()) {
        state_->eos.push_back(token);
      }
    }
    return {};
  }

  std::string folder_;
  std::string path_;
  json root_;
  std::unique_ptr<TokenizerState> state_ = std::make_unique<TokenizerState>();
  bool byte_level_ = false;
  bool unigram_ = false;
  std::vector<std::optional<std::string>> texts_;  // by id
  std::vector<double> scores_;                     // of a unigram model
  std::vector<bool> is_added_;
  Vocabulary vocabulary_;  // the model's
};

}  // namespace

Result<std::unique_ptr<TokenizerState>> read_json_tokenizer(const std::string& folder) {
  return JsonTokenizerReader(folder).run();
}

}  // namespace reckon
