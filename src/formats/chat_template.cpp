#include "formats/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/file_error.h"

namespace reckon {
namespace {

constexpr std::string_view kOpen = "<|im_start|>";
constexpr std::string_view kClose = "<|im_end|>";
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

// Jinja without spaces, with one kind of quote and with "\n" for newlines, so that spelling does
// not matter.
std::string normalized(std::string_view jinja) {
  std::string out;
  for (const char c : jinja) {
    if (c == ' ' || c == '\t') continue;
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c == '"' ? '\'' : c;
    }
  }
  return out;
}

// The system message that the template opens with by itself: a literal between "<|im_start|>system"
// and "<|im_end|>" without code in between; "" where there is none.
std::string find_default_system(std::string_view jinja) {
  const std::string opening = std::string(kOpen) + "system";
  for (size_t at = jinja.find(opening); at != std::string_view::npos;
       at = jinja.find(opening, at + 1)) {
    std::string_view text = jinja.substr(at + opening.size());
    if (text.starts_with("\\n")) {
      text.remove_prefix(2);
    } else if (text.starts_with("\n")) {
      text.remove_prefix(1);
    } else {
      continue;
    }
    text = text.substr(0, text.find(kClose));
    if (text.find_first_of("'\"{}") == std::string_view::npos) return std::string(text);
  }
  return "";
}

}  // namespace

Result<ChatTemplate> ChatTemplate::from_checkpoint(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() == nullptr || !checkpoint.has(kTemplateKey)) {
    return file_error(
        checkpoint.path(),
        fmt::format("chat needs a template: expected a GGUF file with '{}'", kTemplateKey));
  }
  TRY_ASSIGN(const std::string_view jinja, checkpoint.gguf()->string(kTemplateKey));
  return from_text(jinja, checkpoint.path());
}

Result<ChatTemplate> ChatTemplate::from_text(std::string_view jinja, std::string_view source) {
  const std::string text = normalized(jinja);
  if (text.find("'<|im_start|>'+message") == std::string::npos ||
      text.find(kClose) == std::string::npos) {
    return file_error(source,
                      "the chat template is not ChatML (<|im_start|>role ... <|im_end|>), "
                      "the only kind supported");
  }
  ChatTemplate chat;
  chat.default_system_ = find_default_system(jinja);
  return chat;
}

std::vector<ChatTemplate::Piece> ChatTemplate::pieces(std::span<const ChatMessage> messages,
                                                      GenerationPrompt prompt) const {
  std::vector<Piece> pieces;
  const auto add = [&](std::string_view role, std::string_view content) {
    pieces.push_back({std::string(kOpen), Special::kParse});
    pieces.push_back({fmt::format("{}\n{}", role, content), Special::kIgnore});
    pieces.push_back({std::string(kClose), Special::kParse});
    pieces.push_back({"\n", Special::kIgnore});
  };
  if (!messages.empty() && messages[0].role != "system" && !default_system_.empty()) {
    add("system", default_system_);
  }
  for (const ChatMessage& message : messages) add(message.role, message.content);
  if (prompt == GenerationPrompt::kAdd) {
    pieces.push_back({std::string(kOpen), Special::kParse});
    pieces.push_back({"assistant\n", Special::kIgnore});
  }
  return pieces;
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 GenerationPrompt prompt) const {
  std::string text;
  for (const Piece& piece : pieces(messages, prompt)) text += piece.text;
  return text;
}

std::vector<int32_t> ChatTemplate::encode(const Tokenizer& tokenizer,
                                          std::span<const ChatMessage> messages,
                                          GenerationPrompt prompt) const {
  std::vector<int32_t> ids;
  for (const Piece& piece : pieces(messages, prompt)) {
    const auto part = tokenizer.encode(piece.text, piece.special);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  return ids;
}

}  // namespace reckon
