// Chat prompts: messages to text and to tokens. ChatML only ("<|im_start|>role\ncontent<|im_end|>"
// lines); a checkpoint's template is recognised, not interpreted. Const and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "formats/tokenizer.h"

namespace reckon {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

enum class GenerationPrompt {
  kAdd,   // end with "<|im_start|>assistant\n", so that the model answers
  kOmit,  // the messages alone
};

class ChatTemplate {
 public:
  // Fails where the checkpoint has no template or one that is not ChatML.
  [[nodiscard]] static Result<ChatTemplate> from_checkpoint(const Checkpoint& checkpoint);
  // From a template's text (Jinja, as in tokenizer.chat_template); `source` is named in errors.
  [[nodiscard]] static Result<ChatTemplate> from_text(std::string_view jinja,
                                                      std::string_view source);

  // Used where the first message is not a system message; "" where the template has none.
  [[nodiscard]] const std::string& default_system() const { return default_system_; }

  [[nodiscard]] std::string render(std::span<const ChatMessage> messages,
                                   GenerationPrompt prompt) const;
  // The tokens of render(), except that control-token text inside roles and contents stays plain
  // text: what a user types cannot open or close a turn.
  [[nodiscard]] std::vector<int32_t> encode(const Tokenizer& tokenizer,
                                            std::span<const ChatMessage> messages,
                                            GenerationPrompt prompt) const;

 private:
  struct Piece {
    std::string text;
    Special special;
  };
  [[nodiscard]] std::vector<Piece> pieces(std::span<const ChatMessage> messages,
                                          GenerationPrompt prompt) const;

  std::string default_system_;
};

}  // namespace reckon
