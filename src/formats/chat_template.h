// Chat prompts: messages to text and to tokens. A checkpoint's template (Jinja) is recognised as
// one of the formats of chat_format.h, not interpreted. Const but for set_thinking(), and then
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/chat_format.h"
#include "formats/checkpoint.h"
#include "formats/tokenizer.h"

namespace reckon {

// The checkpoint's template as it is: tokenizer.chat_template of a GGUF file; of a folder
// chat_template.jinja, else "chat_template" in tokenizer_config.json (where there are several, the
// one named "default"). None where it has none; fails where a file is broken.
[[nodiscard]] Result<std::optional<std::string>> chat_template_text(const Checkpoint& checkpoint);

class ChatTemplate {
 public:
  // Fails where the checkpoint has no template or one of no known format.
  [[nodiscard]] static Result<ChatTemplate> from_checkpoint(const Checkpoint& checkpoint);
  // From a template's text; `source` is named in errors.
  [[nodiscard]] static Result<ChatTemplate> from_text(std::string_view jinja,
                                                      std::string_view source);
  // A format by its name; a usage error, with the nearest, where there is none.
  [[nodiscard]] static Result<ChatTemplate> from_name(std::string_view name);
  [[nodiscard]] static std::vector<std::string> names();

  [[nodiscard]] std::string_view name() const { return format_->name; }
  // Used where the first message is not a system message; "" where the template has none.
  [[nodiscard]] const std::string& default_system() const { return default_system_; }
  // A usage error where the format cannot be asked to.
  [[nodiscard]] Status set_thinking(Thinking thinking);

  [[nodiscard]] std::string render(std::span<const ChatMessage> messages,
                                   GenerationPrompt prompt) const;
  // The tokens of render(), behind the tokenizer's prefix where they do not begin with it, except
  // that control-token text inside roles and contents stays plain text: what a user types cannot
  // open or close a turn. A usage error where the vocabulary lacks a token of the format.
  [[nodiscard]] Result<std::vector<int32_t>> encode(const Tokenizer& tokenizer,
                                                    std::span<const ChatMessage> messages,
                                                    GenerationPrompt prompt) const;
  // The tokens that end an answer, of those that the vocabulary has.
  [[nodiscard]] std::vector<int32_t> end_tokens(const Tokenizer& tokenizer) const;

 private:
  explicit ChatTemplate(const ChatFormat& format) : format_(&format) {}
  [[nodiscard]] std::vector<ChatPiece> pieces(std::span<const ChatMessage> messages,
                                              GenerationPrompt prompt) const;

  const ChatFormat* format_;
  std::string default_system_;
  Thinking thinking_ = Thinking::kDefault;
};

}  // namespace reckon
