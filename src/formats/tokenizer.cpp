#include "formats/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "formats/file_error.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_json.h"
#include "formats/tokenizer_state.h"

namespace reckon {

Result<Tokenizer> Tokenizer::from_checkpoint(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kSynthetic) {
    return usage_error(
        fmt::format("{}: a synthetic model has no tokenizer, so it takes no text: 'reckon bench' "
                    "and queues with 'prompt_tokens' alone run it on random tokens",
                    checkpoint.path()));
  }
  if (checkpoint.gguf() == nullptr) return from_folder(checkpoint.path());
  TRY_ASSIGN(auto state, read_gguf_tokenizer(*checkpoint.gguf()));
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::from_folder(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::path(folder) / "tokenizer.json", ignored)) {
    return file_error(folder, "text needs a tokenizer: expected tokenizer.json in the folder");
  }
  TRY_ASSIGN(auto state, read_json_tokenizer(folder));
  return Tokenizer(std::move(state));
}

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerState> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, Special special) const {
  std::vector<int32_t> ids;
  state_->encode(text, special, ids);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += token_bytes(id);
  if (state_->strips_space && bytes.starts_with(' ')) bytes.erase(0, 1);
  return bytes;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return state_->bytes.at(static_cast<size_t>(id));
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(state_->bytes.size());
}

std::optional<int32_t> Tokenizer::bos() const {
  return state_->bos;
}

std::optional<int32_t> Tokenizer::eos() const {
  return state_->eos.empty() ? std::nullopt : std::optional(state_->eos[0]);
}

std::span<const int32_t> Tokenizer::end_tokens() const {
  return state_->eos;
}

std::span<const int32_t> Tokenizer::prefix() const {
  return state_->prefix;
}

std::span<const int32_t> Tokenizer::suffix() const {
  return state_->suffix;
}

bool Tokenizer::add_bos() const {
  return !state_->prefix.empty() && state_->prefix[0] == state_->bos;
}

bool Tokenizer::is_control(int32_t id) const {
  return id >= 0 && id < vocab_size() && state_->control[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::control_token(std::string_view text) const {
  if (text.empty()) return std::nullopt;
  for (const AddedToken& token : state_->added.all()) {
    if (token.special && token.text == text) return token.id;
  }
  return std::nullopt;
}

}  // namespace reckon
