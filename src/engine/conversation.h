// A conversation of several turns over one session. What the session has computed of earlier turns
// stays in its KV cache: a turn runs the tokens alone that differ from those before.
//
// Used from one thread; the session, and the tokenizer, outlive it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/generate.h"
#include "formats/chat_template.h"

namespace reckon::engine {

struct ConversationOptions {
  GenerateOptions generate;
  std::optional<std::string> system;  // none: the template's own, where it has one
};

// One answer.
struct Turn {
  std::string text;
  Generation generation;      // of the tokens that were run for it
  int64_t cached_tokens = 0;  // of the prompt, that the cache had already
};

class Conversation {
 public:
  // A usage error where the sampler's options are outside their ranges.
  [[nodiscard]] static Result<Conversation> create(Session& session, const Tokenizer& tokenizer,
                                                   ChatTemplate chat, ConversationOptions options);

  // Puts the user's text, lets the model answer, and keeps both, also an answer that was cut short.
  // A refusal where what was said so far no longer fits the context; after any error the
  // conversation is as it was before.
  [[nodiscard]] Result<Turn> ask(std::string_view text, const TextSink& sink);
  // Answers the last question anew, in place of the last answer. A usage error where there is none.
  [[nodiscard]] Result<Turn> ask_again(const TextSink& sink);
  // Forgets everything that was said; the system message stays.
  void reset() { messages_.clear(); }
  // Another system message, or none, for a conversation that starts over.
  void set_system(std::optional<std::string> system);

  [[nodiscard]] const std::optional<std::string>& system() const { return options_.system; }
  // What was said, without the system message.
  [[nodiscard]] const std::vector<ChatMessage>& messages() const { return messages_; }

 private:
  Conversation(Session& session, const Tokenizer& tokenizer, ChatTemplate chat,
               ConversationOptions options, Sampler sampler);
  [[nodiscard]] Result<Turn> answer(const std::vector<ChatMessage>& question, const TextSink& sink);
  [[nodiscard]] Result<std::vector<int32_t>> prompt_of(
      const std::vector<ChatMessage>& question) const;

  Session& session_;
  const Tokenizer& tokenizer_;
  ChatTemplate chat_;
  ConversationOptions options_;
  Sampler sampler_;
  std::vector<ChatMessage> messages_;
  std::vector<int32_t> run_;  // the tokens that the session stands behind
};

}  // namespace reckon::engine
