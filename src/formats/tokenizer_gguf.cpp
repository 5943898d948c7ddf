#include "formats/tokenizer_gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "formats/bpe_model.h"
#include "formats/byte_alphabet.h"
#include "formats/file_error.h"
#include "formats/scored_bpe_model.h"
#include "formats/unigram_model.h"
#include "formats/vocabulary.h"

namespace reckon {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";  // SentencePiece's space

constexpr std::string_view kPreKey = "tokenizer.ggml.pre";

// tokenizer.ggml.token_type, where 0 says nothing.
enum class TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// tokenizer.ggml.model.
enum class Kind { kByteLevelBpe, kScoredBpe, kUnigram };

// What a value of tokenizer.ggml.pre stands for: the steps of the models' tokenizer.json.
struct Preset {
  std::string_view name;
  void (*add_steps)(TokenizerState& state);
  bool ignore_merges = false;
};

void gpt2_steps(TokenizerState& state) {
  state.pre.add_pattern(SplitPattern::kGpt2);
}
// What llama.cpp does where the file names no pre-tokenizer.
void default_steps(TokenizerState& state) {
  state.pre.add_pattern(SplitPattern::kPunctuation);
  state.pre.add_pattern(SplitPattern::kGpt2);
  state.pre.add_pattern(SplitPattern::kNumbers);
  state.pre.add_pattern(SplitPattern::kThreeDigits);
}
void smollm_steps(TokenizerState& state) {
  state.pre.add_digits(SplitBehavior::kIsolated);
  state.pre.add_pattern(SplitPattern::kGpt2);
}
void qwen2_steps(TokenizerState& state) {
  state.normalizer.add_nfc();
  state.pre.add_pattern(SplitPattern::kQwen2);
}
void qwen35_steps(TokenizerState& state) {
  state.normalizer.add_nfc();
  state.pre.add_pattern(SplitPattern::kQwen35);
}
void qwen2_distill_steps(TokenizerState& state) {
  state.pre.add_pattern(SplitPattern::kQwen2);
}
void llama3_steps(TokenizerState& state) {
  state.pre.add_pattern(SplitPattern::kLlama3);
}
void deepseek_v3_steps(TokenizerState& state) {
  state.pre.add_pattern(SplitPattern::kUpToThreeNumbers);
  state.pre.add_pattern(SplitPattern::kHanAndKana);
  state.pre.add_pattern(SplitPattern::kDeepseekV3);
}

constexpr Preset kPresets[] = {
    {"chatglm-bpe", llama3_steps},
    {"deepseek-r1-qwen", qwen2_distill_steps},
    {"deepseek-v3", deepseek_v3_steps},
    {"default", default_steps},
    {"glm4", llama3_steps},
    {"gpt-2", gpt2_steps},
    {"llama-bpe", llama3_steps, true},
    {"llama-v3", llama3_steps, true},
    {"llama3", llama3_steps, true},
    {"qwen2", qwen2_steps},
    {"qwen35", qwen35_steps},
    {"smollm", smollm_steps},
};

class GgufTokenizerReader {
 public:
  explicit GgufTokenizerReader(const GgufFile& gguf)
      : gguf_(gguf), state_(std::make_unique<TokenizerState>()) {}

  Result<std::unique_ptr<TokenizerState>> run() {
    TRY(read_kind());
    TRY(read_tokens());
    TRY(kind_ == Kind::kByteLevelBpe ? make_byte_level() : make_sentencepiece());
    TRY(read_special_ids());
    state_->added.finish(state_->normalizer);
    return std::move(state_);
  }

 private:
  [[nodiscard]] Error error(std::string_view message) const {
    return file_error(gguf_.path(), message);
  }

  [[nodiscard]] Status read_kind() {
    TRY_ASSIGN(const std::string_view model, gguf_.string("tokenizer.ggml.model"));
    if (model == "gpt2") {
      kind_ = Kind::kByteLevelBpe;
    } else if (model == "llama") {
      kind_ = Kind::kScoredBpe;
    } else if (model == "t5") {
      kind_ = Kind::kUnigram;
    } else {
      return error(
          fmt::format("the tokenizer model '{}' is not supported: expected 'gpt2' (byte-level "
                      "BPE), 'llama' (SentencePiece BPE) or 't5' (unigram)",
                      printable(model)));
    }
    return {};
  }

  [[nodiscard]] Status read_tokens() {
    TRY_ASSIGN(tokens_, gguf_.strings("tokenizer.ggml.tokens"));
    if (tokens_.empty() || tokens_.size() > std::numeric_limits<int32_t>::max()) {
      return error(fmt::format("the vocabulary has {} tokens", tokens_.size()));
    }
    constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
    std::vector<int64_t> types(tokens_.size(), static_cast<int64_t>(TokenType::kNormal));
    if (gguf_.has(kTypes)) {
      TRY_ASSIGN(types, gguf_.integers(kTypes));
      TRY(check_count(kTypes, types.size()));
    }
    vocabulary_.reserve(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (types[i] < 0 || types[i] > static_cast<int64_t>(TokenType::kByte)) {
        return error(
            fmt::format("'{}' gives token {} the type {}: expected 1 to 6", kTypes, i, types[i]));
      }
      types_.push_back(static_cast<TokenType>(types[i]));
      TRY(add_token(static_cast<int32_t>(i), types_[i]));
    }
    return {};
  }

  [[nodiscard]] Status check_count(std::string_view key, size_t count) const {
    if (count == tokens_.size()) return {};
    return error(fmt::format("'{}' has {} elements: expected {}, as many as tokens", key, count,
                             tokens_.size()));
  }

  [[nodiscard]] Status add_token(int32_t id, TokenType type) {
    const std::string_view text = tokens_[static_cast<size_t>(id)];
    if (!vocabulary_.add(text, id)) {
      return error(fmt::format("the vocabulary has the token '{}' twice", printable(text)));
    }
    const bool control = type == TokenType::kControl || type == TokenType::kUnknown;
    state_->control.push_back(control);
    const std::string bytes = bytes_of(text, type);
    state_->bytes.add(bytes);
    if (control || type == TokenType::kUserDefined) {
      state_->added.add({.text = bytes, .id = id, .special = control});
    }
    if (type == TokenType::kUnknown && !unk_) unk_ = id;
    return {};
  }

  [[nodiscard]] std::string bytes_of(std::string_view text, TokenType type) const {
    if (type == TokenType::kControl || type == TokenType::kUnknown) return std::string(text);
    if (kind_ == Kind::kByteLevelBpe) {
      if (type == TokenType::kUserDefined) return std::string(text);
      return bytes_from_alphabet(text).value_or(std::string(text));
    }
    if (type == TokenType::kByte) {
      if (const auto byte = byte_from_token_text(text)) return {static_cast<char>(*byte)};
    }
    return replace_all(text, kSpaceMark, " ");
  }

  [[nodiscard]] Status make_byte_level() {
    std::string_view name = "default";
    if (gguf_.has(kPreKey)) {
      TRY_ASSIGN(name, gguf_.string(kPreKey));
    }
    const auto* preset = std::find_if(std::begin(kPresets), std::end(kPresets),
                                      [&](const Preset& known) { return known.name == name; });
    if (preset == std::end(kPresets)) {
      return error(fmt::format("the pre-tokenizer '{}' is not supported: expected one of {}",
                               printable(name), gguf_pre_tokenizer_names()));
    }
    preset->add_steps(*state_);
    TRY_ASSIGN(MergeTable merges, read_merges());
    const BpeOptions options{.byte_level = true, .ignore_merges = preset->ignore_merges};
    state_->model = std::make_unique<BpeModel>(options, vocabulary_, std::move(merges));
    return {};
  }

  // Each merge is "left right", two tokens of the vocabulary whose concatenation is a third.
  [[nodiscard]] Result<MergeTable> read_merges() const {
    constexpr std::string_view kKey = "tokenizer.ggml.merges";
    TRY_ASSIGN(const auto texts, gguf_.strings(kKey));
    if (texts.size() > std::numeric_limits<int32_t>::max()) {
      return error(fmt::format("'{}' has {} elements", kKey, texts.size()));
    }
    MergeTable merges;
    merges.reserve(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string_view merge = texts[i];
      const size_t space = merge.find(' ');
      const bool two = space != std::string_view::npos;
      if (!two || !add_merge(merges, static_cast<int32_t>(i), merge.substr(0, space),
                             merge.substr(space + 1), vocabulary_)) {
        return error(
            fmt::format("merge {} of '{}' is '{}': expected two tokens of the vocabulary that "
                        "make a third",
                        i, kKey, printable(merge)));
      }
      // Readers differ in which of two ranks counts.
      if (merges.size() == i) {
        return error(
            fmt::format("merge {} of '{}' is '{}', which stands there before: expected "
                        "each once",
                        i, kKey, printable(merge)));
      }
    }
    return merges;
  }

  [[nodiscard]] Status make_sentencepiece() {
    bool space_prefix = true;
    if (gguf_.has("tokenizer.ggml.add_space_prefix")) {
      TRY_ASSIGN(space_prefix, gguf_.boolean("tokenizer.ggml.add_space_prefix"));
    }
    TRY(refuse_charsmap());
    bool removes = false;
    if (gguf_.has("tokenizer.ggml.remove_extra_whitespaces")) {
      TRY_ASSIGN(removes, gguf_.boolean("tokenizer.ggml.remove_extra_whitespaces"));
    }
    if (removes) state_->normalizer.add_collapse_spaces();
    if (space_prefix) state_->normalizer.add_prepend(kSpaceMark);
    state_->normalizer.add_replace(" ", kSpaceMark);
    if (removes) state_->normalizer.add_strip_end(kSpaceMark);
    state_->strips_space = space_prefix;

    TRY_ASSIGN(const auto scores, gguf_.numbers("tokenizer.ggml.scores"));
    TRY(check_count("tokenizer.ggml.scores", scores.size()));
    TRY_ASSIGN(const auto unk, read_id("tokenizer.ggml.unknown_token_id"));
    if (unk) unk_ = unk;
    std::array<int32_t, 256> bytes{};
    for (size_t byte = 0; byte < bytes.size(); ++byte) {
      const int32_t id = vocabulary_.find(byte_token_text(static_cast<uint8_t>(byte)));
      const bool usable = id != kNoToken && types_[static_cast<size_t>(id)] == TokenType::kByte;
      bytes[byte] = usable ? id : kNoToken;
    }
    kind_ == Kind::kScoredBpe ? make_scored_bpe(scores, bytes) : make_unigram(scores, bytes);
    return {};
  }

  [[nodiscard]] Status refuse_charsmap() const {
    constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
    if (!gguf_.has(kKey)) return {};
    TRY_ASSIGN(const auto charsmap, gguf_.integers(kKey));
    if (charsmap.empty()) return {};
    return error(fmt::format("'{}' is not supported: expected a tokenizer without it", kKey));
  }

  void make_scored_bpe(const std::vector<double>& scores, const std::array<int32_t, 256>& bytes) {
    std::vector<ScoredBpeModel::Token> tokens;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const TokenType type = types_[i];
      if (type == TokenType::kNormal || type == TokenType::kUserDefined) {
        tokens.push_back({tokens_[i], static_cast<int32_t>(i), static_cast<float>(scores[i])});
      }
    }
    state_->model = std::make_unique<ScoredBpeModel>(tokens, bytes, unk_);
  }

  void make_unigram(const std::vector<double>& scores, const std::array<int32_t, 256>& bytes) {
    std::vector<UnigramModel::Token> tokens;
    double lowest = 0;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (types_[i] != TokenType::kNormal || tokens_[i].empty()) continue;
      lowest = tokens.empty() ? scores[i] : std::min(lowest, scores[i]);
      tokens.push_back({std::string(tokens_[i]), static_cast<int32_t>(i), scores[i]});
    }
    state_->model = std::make_unique<UnigramModel>(std::move(tokens), bytes, unk_, lowest,
                                                   UnigramModel::Sums::kSingle);
  }

  [[nodiscard]] Status read_special_ids() {
    TRY_ASSIGN(state_->bos, read_id("tokenizer.ggml.bos_token_id"));
    TRY_ASSIGN(const auto eos, read_id("tokenizer.ggml.eos_token_id"));
    if (eos) state_->eos.push_back(*eos);
    bool add_bos = kind_ == Kind::kScoredBpe;
    bool add_eos = kind_ == Kind::kUnigram;
    if (gguf_.has("tokenizer.ggml.add_bos_token")) {
      TRY_ASSIGN(add_bos, gguf_.boolean("tokenizer.ggml.add_bos_token"));
    }
    if (gguf_.has("tokenizer.ggml.add_eos_token")) {
      TRY_ASSIGN(add_eos, gguf_.boolean("tokenizer.ggml.add_eos_token"));
    }
    if (add_bos && state_->bos) state_->prefix.push_back(*state_->bos);
    if (add_eos && eos) state_->suffix.push_back(*eos);
    return {};
  }

  [[nodiscard]] Result<std::optional<int32_t>> read_id(std::string_view key) const {
    if (!gguf_.has(key)) return std::optional<int32_t>();
    TRY_ASSIGN(const int64_t id, gguf_.integer(key));
    if (id < 0 || id >= static_cast<int64_t>(tokens_.size())) {
      return error(fmt::format("metadata key '{}' is {}: expected a token id below {}", key, id,
                               tokens_.size()));
    }
    return std::optional<int32_t>(static_cast<int32_t>(id));
  }

  const GgufFile& gguf_;
  std::unique_ptr<TokenizerState> state_;
  Kind kind_ = Kind::kByteLevelBpe;
  std::vector<std::string_view> tokens_;
  std::vector<TokenType> types_;
  Vocabulary vocabulary_;
  std::optional<int32_t> unk_;
};

}  // namespace

Result<std::unique_ptr<TokenizerState>> read_gguf_tokenizer(const GgufFile& gguf) {
  return GgufTokenizerReader(gguf).run();
}

std::optional<std::string> gguf_tokenizer_note(const GgufFile& gguf) {
  const auto model = gguf.string("tokenizer.ggml.model");
  if (!model.ok() || *model != "gpt2" || gguf.has(kPreKey)) return std::nullopt;
  return fmt::format(
      "{}: no '{}', so text is split as llama.cpp splits it by default; the model "
      "may have been trained with another rule",
      gguf.path(), kPreKey);
}

std::string gguf_pre_tokenizer_names() {
  std::string names;
  for (const Preset& known : kPresets) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

}  // namespace reckon
