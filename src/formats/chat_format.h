// The chat formats that are known: how each published family lays out a conversation. They say what
// the family's own template (Jinja, in the checkpoint) says of plain conversations of text; tools
// and images are left out. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct ChatMessage {
  std::string role;  // "system" (the first one only), "user", "assistant"
  std::string content;
};

enum class GenerationPrompt {
  kAdd,   // end with the opening of an assistant's turn, so that the model answers
  kOmit,  // the messages alone
};

// Whether a model that can is asked to think before it answers; kDefault: as its template has it.
enum class Thinking : uint8_t { kDefault, kOn, kOff };

struct ChatRequest {
  std::span<const ChatMessage> messages;
  GenerationPrompt prompt = GenerationPrompt::kAdd;
  Thinking thinking = Thinking::kDefault;
  // Stands in where the first message is not a system message; "": nothing does. ChatML's only.
  std::string_view default_system;
};

// A part of a rendered conversation: the text of one added token of the vocabulary, or text that
// holds none, whatever it looks like.
struct ChatPiece {
  std::string text;
  bool is_token = false;
};

class ChatWriter {
 public:
  void token(std::string_view text) { pieces_.push_back({std::string(text), true}); }
  // Texts in a row become one piece, as a tokenizer sees them in the rendered conversation.
  void text(std::string_view text);
  [[nodiscard]] const std::vector<ChatPiece>& pieces() const { return pieces_; }

 private:
  std::vector<ChatPiece> pieces_;
};

// What Thinking a format knows beside kDefault.
enum class ThinkingModes : uint8_t { kNone, kAlways, kSwitched };

struct ChatFormat {
  std::string_view name;
  // Whether a template is of this format. It has come without spaces, with single quotes and with
  // "\n" for newlines.
  bool (*matches)(std::string_view jinja) = nullptr;
  void (*write)(const ChatRequest& request, ChatWriter& out) = nullptr;
  ThinkingModes thinking = ThinkingModes::kNone;
  std::span<const std::string_view> ends;  // tokens that end an answer
};

// Every format; a template is of the first that matches.
[[nodiscard]] std::span<const ChatFormat> chat_formats();

}  // namespace reckon
