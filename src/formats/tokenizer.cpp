#include "formats/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "base/utf8.h"
#include "formats/bpe.h"
#include "formats/byte_alphabet.h"
#include "formats/file_error.h"
#include "formats/pretokenizer.h"

namespace reckon {
namespace {

constexpr int32_t kNoToken = -1;

// tokenizer.ggml.token_type, as far as it matters here.
enum class TokenType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4 };

// A token that is found in the input as a whole, before words are split.
struct AddedToken {
  std::string text;
  int32_t id;
  bool always;  // user-defined: found with Special::kIgnore, too
};

}  // namespace

struct Tokenizer::State {
  PreTokenizer pre = PreTokenizer::kGpt2;
  std::string pool;             // the bytes of all tokens, one after the other
  std::vector<size_t> offsets;  // of each token, and the end
  std::vector<bool> control;
  std::array<int32_t, 256> byte_tokens{};
  MergeTable merges;
  // By first byte, longest first.
  std::array<std::vector<AddedToken>, 256> added;
  std::optional<int32_t> bos;
  std::optional<int32_t> eos;
  bool add_bos = false;

  [[nodiscard]] const AddedToken* added_at(std::string_view text, Special special) const {
    for (const AddedToken& token : added[static_cast<uint8_t>(text[0])]) {
      if ((token.always || special == Special::kParse) && text.starts_with(token.text)) {
        return &token;
      }
    }
    return nullptr;
  }

  void encode_word(std::string_view word, std::vector<int32_t>& symbols,
                   std::vector<int32_t>& ids) const {
    symbols.clear();
    for (const char c : word) {
      const int32_t token = byte_tokens[static_cast<uint8_t>(c)];
      if (token != kNoToken) symbols.push_back(token);
    }
    merges.merge(symbols, ids);
  }

  // Text without added tokens.
  void encode_plain(std::string_view text, std::vector<int32_t>& ids) const {
    std::vector<int32_t> symbols;
    while (!text.empty()) {
      const size_t valid = valid_utf8_prefix(text);
      split_words(pre, text.substr(0, valid),
                  [&](std::string_view word) { encode_word(word, symbols, ids); });
      text.remove_prefix(valid);
      if (text.empty()) return;
      encode_word(text.substr(0, 1), symbols, ids);
      text.remove_prefix(1);
    }
  }
};

// Reads a Tokenizer from GGUF metadata.
class TokenizerBuilder {
 public:
  explicit TokenizerBuilder(const GgufFile& gguf)
      : gguf_(gguf), state_(std::make_unique<Tokenizer::State>()) {}

  Result<Tokenizer> run() {
    TRY(read_kind());
    TRY(read_tokens());
    TRY(read_merges());
    TRY_ASSIGN(state_->bos, read_id("tokenizer.ggml.bos_token_id"));
    TRY_ASSIGN(state_->eos, read_id("tokenizer.ggml.eos_token_id"));
    constexpr std::string_view kAddBos = "tokenizer.ggml.add_bos_token";
    if (gguf_.has(kAddBos)) {
      TRY_ASSIGN(state_->add_bos, gguf_.boolean(kAddBos));
    }
    return Tokenizer(std::move(state_));
  }

 private:
  [[nodiscard]] Error error(std::string_view message) const {
    return file_error(gguf_.path(), message);
  }

  [[nodiscard]] Status read_kind() {
    TRY_ASSIGN(const std::string_view model, gguf_.string("tokenizer.ggml.model"));
    if (model != "gpt2") {
      return error(
          fmt::format("the tokenizer model '{}' is not supported: expected 'gpt2' "
                      "(byte-level BPE)",
                      printable(model)));
    }
    std::string_view name = "default";
    if (gguf_.has("tokenizer.ggml.pre")) {
      TRY_ASSIGN(name, gguf_.string("tokenizer.ggml.pre"));
    }
    const auto pre = pre_tokenizer_from_name(name);
    if (!pre) {
      return error(fmt::format("the pre-tokenizer '{}' is not supported: expected one of {}",
                               printable(name), pre_tokenizer_names()));
    }
    state_->pre = *pre;
    return {};
  }

  [[nodiscard]] Status read_tokens() {
    TRY_ASSIGN(tokens_, gguf_.strings("tokenizer.ggml.tokens"));
    if (tokens_.empty() || tokens_.size() > std::numeric_limits<int32_t>::max()) {
      return error(fmt::format("the vocabulary has {} tokens", tokens_.size()));
    }
    std::vector<int64_t> types;
    if (gguf_.has("tokenizer.ggml.token_type")) {
      TRY_ASSIGN(types, gguf_.integers("tokenizer.ggml.token_type"));
      if (types.size() != tokens_.size()) {
        return error(
            fmt::format("'tokenizer.ggml.token_type' has {} elements: expected {}, as many "
                        "as tokens",
                        types.size(), tokens_.size()));
      }
    } else {
      types.assign(tokens_.size(), static_cast<int64_t>(TokenType::kNormal));
    }
    ids_.reserve(tokens_.size());
    state_->offsets.reserve(tokens_.size() + 1);
    for (size_t i = 0; i < tokens_.size(); ++i) {
      TRY(add_token(static_cast<int32_t>(i), static_cast<TokenType>(types[i])));
    }
    state_->offsets.push_back(state_->pool.size());
    for (auto& tokens : state_->added) {
      std::stable_sort(tokens.begin(), tokens.end(),
                       [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids_.find(byte_to_alphabet(static_cast<uint8_t>(byte)));
      state_->byte_tokens[static_cast<size_t>(byte)] =
          found == ids_.end() ? kNoToken : found->second;
    }
    return {};
  }

  [[nodiscard]] Status add_token(int32_t id, TokenType type) {
    const std::string_view text = tokens_[static_cast<size_t>(id)];
    if (!ids_.emplace(text, id).second) {
      return error(fmt::format("the vocabulary has the token '{}' twice", printable(text)));
    }
    const bool control = type == TokenType::kControl || type == TokenType::kUnknown;
    const bool added = control || type == TokenType::kUserDefined;
    state_->control.push_back(control);
    state_->offsets.push_back(state_->pool.size());
    if (added) {
      state_->pool += text;
      if (!text.empty()) {
        state_->added[static_cast<uint8_t>(text[0])].push_back({std::string(text), id, !control});
      }
    } else {
      state_->pool += bytes_from_alphabet(text).value_or(std::string(text));
    }
    return {};
  }

  // Each merge is "left right", two tokens of the vocabulary whose concatenation is a third.
  [[nodiscard]] Status read_merges() {
    constexpr std::string_view kKey = "tokenizer.ggml.merges";
    TRY_ASSIGN(const auto merges, gguf_.strings(kKey));
    if (merges.size() > std::numeric_limits<int32_t>::max()) {
      return error(fmt::format("'{}' has {} elements", kKey, merges.size()));
    }
    state_->merges.reserve(merges.size());
    std::string whole;
    for (size_t i = 0; i < merges.size(); ++i) {
      const std::string_view merge = merges[i];
      const size_t space = merge.find(' ');
      if (space == std::string_view::npos) return bad_merge(i, merge);
      const std::string_view left = merge.substr(0, space);
      const std::string_view right = merge.substr(space + 1);
      whole.assign(left).append(right);
      const auto left_id = ids_.find(left);
      const auto right_id = ids_.find(right);
      const auto merged_id = ids_.find(whole);
      if (left_id == ids_.end() || right_id == ids_.end() || merged_id == ids_.end()) {
        return bad_merge(i, merge);
      }
      state_->merges.add(left_id->second, right_id->second, static_cast<int32_t>(i),
                         merged_id->second);
    }
    return {};
  }

  [[nodiscard]] Error bad_merge(size_t index, std::string_view merge) const {
    return error(
        fmt::format("merge {} of 'tokenizer.ggml.merges' is '{}': expected two tokens of "
                    "the vocabulary that make a third",
                    index, printable(merge)));
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
  std::unique_ptr<Tokenizer::State> state_;
  std::vector<std::string_view> tokens_;
  std::unordered_map<std::string_view, int32_t> ids_;
};

Result<Tokenizer> Tokenizer::from_checkpoint(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kSynthetic) {
    return usage_error(
        fmt::format("{}: a synthetic model has no tokenizer, so it takes no text: 'reckon bench' "
                    "and queues with 'prompt_tokens' alone run it on random tokens",
                    checkpoint.path()));
  }
  if (checkpoint.gguf() == nullptr) {
    return file_error(checkpoint.path(),
                      "text needs a tokenizer, which is read from GGUF files only: expected a GGUF "
                      "file, or token ids in place of text");
  }
  return TokenizerBuilder(*checkpoint.gguf()).run();
}

Tokenizer::Tokenizer(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, Special special) const {
  std::vector<int32_t> ids;
  size_t plain = 0;  // where the text since the last added token begins
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = state_->added_at(text.substr(at), special);
    if (token == nullptr) {
      ++at;
      continue;
    }
    state_->encode_plain(text.substr(plain, at - plain), ids);
    ids.push_back(token->id);
    at += token->text.size();
    plain = at;
  }
  state_->encode_plain(text.substr(plain), ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += token_bytes(id);
  return bytes;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const size_t begin = state_->offsets[static_cast<size_t>(id)];
  return std::string_view(state_->pool)
      .substr(begin, state_->offsets[static_cast<size_t>(id) + 1] - begin);
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(state_->control.size());
}

std::optional<int32_t> Tokenizer::bos() const {
  return state_->bos;
}

std::optional<int32_t> Tokenizer::eos() const {
  return state_->eos;
}

bool Tokenizer::add_bos() const {
  return state_->add_bos;
}

bool Tokenizer::is_control(int32_t id) const {
  return id >= 0 && id < vocab_size() && state_->control[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::control_token(std::string_view text) const {
  if (text.empty()) return std::nullopt;
  for (const AddedToken& token : state_->added[static_cast<uint8_t>(text[0])]) {
    if (!token.always && token.text == text) return token.id;
  }
  return std::nullopt;
}

}  // namespace reckon
