#include "formats/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "formats/file_error.h"
#include "formats/json_file.h"
#include "formats/mapped_file.h"

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
  size_t at = jinja.find(opening);
  for (; at != std::string_view::npos; at = jinja.find(opening, at)) {
    at += opening.size();
    const std::string_view behind = jinja.substr(at);
    const size_t newline = behind.starts_with("\\n") ? 2 : behind.starts_with('\n') ? 1 : 0;
    if (newline == 0) continue;
    const std::string_view text = behind.substr(newline);
    const std::string_view literal = text.substr(0, text.find_first_of("'\"{}"));
    const size_t close = literal.find(kClose);
    if (close != std::string_view::npos) return std::string(literal.substr(0, close));
    at += newline + literal.size();  // what opens in it closes no sooner
  }
  return "";
}

// The one token of a text that the vocabulary has as an added token.
std::optional<int32_t> added_token(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, Special::kParse);
  if (ids.size() != 1 || tokenizer.token_bytes(ids[0]) != text) return std::nullopt;
  return ids[0];
}

bool begins_with(std::span<const int32_t> ids, std::span<const int32_t> prefix) {
  return ids.size() >= prefix.size() && std::ranges::equal(ids.first(prefix.size()), prefix);
}

// "chat_template" of a tokenizer_config.json: a text, or a list of named ones.
Result<std::optional<std::string>> template_in(const std::string& path, std::string_view text) {
  nlohmann::json config;
  TRY(parse_json_object(path, "the file", text, config));
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::optional<std::string>();
  if (found->is_string()) return std::optional(found->get<std::string>());
  if (found->is_array()) {
    for (const nlohmann::json& entry : *found) {
      if (!entry.is_object() || entry.value("name", nlohmann::json()) != "default") continue;
      const auto named = entry.find("template");
      if (named != entry.end() && named->is_string()) {
        return std::optional(named->get<std::string>());
      }
    }
  }
  return file_error(path, "'chat_template' is neither a text nor a list with one named 'default'");
}

Result<std::optional<std::string>> folder_template(const std::filesystem::path& folder) {
  std::error_code ignored;
  const std::filesystem::path jinja = folder / "chat_template.jinja";
  if (std::filesystem::exists(jinja, ignored)) {
    TRY_ASSIGN(const MappedFile file, MappedFile::open(jinja.string()));
    return std::optional(std::string(file.bytes()));
  }
  const std::filesystem::path config = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(config, ignored)) return std::optional<std::string>();
  TRY_ASSIGN(const MappedFile file, MappedFile::open(config.string()));
  return template_in(config.string(), file.bytes());
}

}  // namespace

Result<std::optional<std::string>> chat_template_text(const Checkpoint& checkpoint) {
  switch (checkpoint.kind()) {
    case CheckpointKind::kGguf: {
      if (!checkpoint.has(kTemplateKey)) return std::optional<std::string>();
      TRY_ASSIGN(const std::string_view text, checkpoint.gguf()->string(kTemplateKey));
      return std::optional(std::string(text));
    }
    case CheckpointKind::kHuggingFace:
      return folder_template(checkpoint.path());
    case CheckpointKind::kSynthetic:
      break;
  }
  return std::optional<std::string>();
}

Result<ChatTemplate> ChatTemplate::from_checkpoint(const Checkpoint& checkpoint) {
  TRY_ASSIGN(const std::optional<std::string> jinja, chat_template_text(checkpoint));
  if (!jinja) {
    return file_error(checkpoint.path(),
                      fmt::format("chat needs a template: expected '{}' in a GGUF file, or a "
                                  "folder's chat_template.jinja or tokenizer_config.json",
                                  kTemplateKey));
  }
  return from_text(*jinja, checkpoint.path());
}

Result<ChatTemplate> ChatTemplate::from_text(std::string_view jinja, std::string_view source) {
  const std::string text = normalized(jinja);
  for (const ChatFormat& format : chat_formats()) {
    if (!format.matches(text)) continue;
    ChatTemplate chat(format);
    if (format.name == "chatml") chat.default_system_ = find_default_system(jinja);
    return chat;
  }
  return file_error(source, fmt::format("the chat template ('{}') is of no known format; expected "
                                        "one of {}",
                                        printable(jinja.substr(0, 60)), join(names(), ", ")));
}

Result<ChatTemplate> ChatTemplate::from_name(std::string_view name) {
  const auto found = std::ranges::find(chat_formats(), name, &ChatFormat::name);
  if (found != chat_formats().end()) return ChatTemplate(*found);
  const std::string near = nearest(name, names());
  return usage_error(fmt::format("unknown chat template '{}'; {}", name,
                                 near.empty() ? "expected one of " + join(names(), ", ")
                                              : fmt::format("did you mean '{}'?", near)));
}

std::vector<std::string> ChatTemplate::names() {
  std::vector<std::string> names;
  for (const ChatFormat& format : chat_formats()) names.emplace_back(format.name);
  std::ranges::sort(names);
  return names;
}

Status ChatTemplate::set_thinking(Thinking thinking) {
  const ThinkingModes modes = format_->thinking;
  if (thinking != Thinking::kDefault && modes == ThinkingModes::kNone) {
    return usage_error(
        fmt::format("the chat template '{}' knows no thinking to switch", format_->name));
  }
  if (thinking == Thinking::kOff && modes == ThinkingModes::kAlways) {
    return usage_error(fmt::format("the chat template '{}' always thinks", format_->name));
  }
  thinking_ = thinking;
  return {};
}

std::vector<ChatPiece> ChatTemplate::pieces(std::span<const ChatMessage> messages,
                                            GenerationPrompt prompt) const {
  ChatWriter writer;
  format_->write({messages, prompt, thinking_, default_system_}, writer);
  return writer.pieces();
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages,
                                 GenerationPrompt prompt) const {
  std::string text;
  for (const ChatPiece& piece : pieces(messages, prompt)) text += piece.text;
  return text;
}

Result<std::vector<int32_t>> ChatTemplate::encode(const Tokenizer& tokenizer,
                                                  std::span<const ChatMessage> messages,
                                                  GenerationPrompt prompt) const {
  std::vector<int32_t> ids;
  for (const ChatPiece& piece : pieces(messages, prompt)) {
    if (piece.is_token) {
      const std::optional<int32_t> token = added_token(tokenizer, piece.text);
      if (!token) {
        return usage_error(
            fmt::format("the vocabulary has no token '{}', which the chat template "
                        "'{}' needs",
                        piece.text, format_->name));
      }
      ids.push_back(*token);
      continue;
    }
    const auto part = tokenizer.encode(piece.text, Special::kIgnore);
    ids.insert(ids.end(), part.begin(), part.end());
  }
  if (!begins_with(ids, tokenizer.prefix())) {
    ids.insert(ids.begin(), tokenizer.prefix().begin(), tokenizer.prefix().end());
  }
  return ids;
}

std::vector<int32_t> ChatTemplate::end_tokens(const Tokenizer& tokenizer) const {
  std::vector<int32_t> ids;
  for (const std::string_view text : format_->ends) {
    if (const auto token = added_token(tokenizer, text)) ids.push_back(*token);
  }
  return ids;
}

}  // namespace reckon
