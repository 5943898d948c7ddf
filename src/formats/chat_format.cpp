#include "formats/chat_format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

#include "base/utf8.h"
#include "formats/unicode_classes.h"

namespace reckon {
namespace {

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// ---- How templates are told apart: by what they have and what they must not have ----

using Parts = std::initializer_list<std::string_view>;

bool has_any(std::string_view jinja, Parts parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return contains(jinja, part); });
}
bool has_all(std::string_view jinja, Parts parts) {
  return std::ranges::all_of(parts, [&](std::string_view part) { return contains(jinja, part); });
}

// ---- What templates do to texts ----

std::string_view without_leading(std::string_view text, char c) {
  while (text.starts_with(c)) text.remove_prefix(1);
  return text;
}
std::string_view without_trailing(std::string_view text, char c) {
  while (text.ends_with(c)) text.remove_suffix(1);
  return text;
}

bool is_stripped(char32_t c) {
  return is_white_space(c) || (c >= 0x1C && c <= 0x1F);  // as Python's str.strip() has it
}

// Jinja's `trim`.
std::string_view trimmed(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (c.status != Utf8Status::kValid || !is_stripped(c.code_point)) {
      begin = std::min(begin, at);
      end = at + c.length;
    }
    at += c.length;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// An answer of a model that thinks: what it thought, and what it said.
struct Thought {
  std::string_view thinking;
  std::string_view answer;
};

Thought split_thought(std::string_view content) {
  const size_t last = content.rfind(kThinkClose);
  if (last == std::string_view::npos) return {"", content};
  std::string_view thinking = content.substr(0, content.find(kThinkClose));
  if (const size_t open = thinking.rfind(kThinkOpen); open != std::string_view::npos) {
    thinking.remove_prefix(open + kThinkOpen.size());
  }
  return {thinking, content.substr(last + kThinkClose.size())};
}

bool has_system(const ChatRequest& request) {
  return !request.messages.empty() && request.messages[0].role == "system";
}

// The index of the last user message; -1 where there is none.
int64_t last_user(std::span<const ChatMessage> messages) {
  auto at = static_cast<int64_t>(messages.size()) - 1;
  while (at >= 0 && messages[static_cast<size_t>(at)].role != "user") --at;
  return at;
}

void empty_thought(ChatWriter& out, std::string_view between, std::string_view after) {
  out.token(kThinkOpen);
  out.text(between);
  out.token(kThinkClose);
  out.text(after);
}

// ---- ChatML ----

constexpr std::array<std::string_view, 2> kChatMlEnds{"<|im_end|>", "<|endoftext|>"};

void chatml_open(ChatWriter& out, std::string_view role) {
  out.token("<|im_start|>");
  out.text(role);
  out.text("\n");
}

void chatml_turn(ChatWriter& out, std::string_view role, std::string_view content) {
  chatml_open(out, role);
  out.text(content);
  out.token("<|im_end|>");
  out.text("\n");
}

bool has_chatml_turns(std::string_view jinja) {
  return has_all(jinja, {"'<|im_start|>'+message", "<|im_end|>"});
}
// Whether there are tools or not, some templates speak of them. The begin-of-text token that some
// write is the tokenizer's own prefix (ChatTemplate::encode).
bool is_chatml(std::string_view jinja) {
  if (contains(jinja, "fortoolintools") && !contains(jinja, "iftools")) return false;
  return has_chatml_turns(jinja) && contains(jinja, "<|im_start|>assistant\\n'") &&
         !contains(jinja, "think");
}

void write_chatml(const ChatRequest& request, ChatWriter& out) {
  if (!request.messages.empty() && !has_system(request) && !request.default_system.empty()) {
    chatml_turn(out, "system", request.default_system);
  }
  for (const ChatMessage& message : request.messages) {
    chatml_turn(out, message.role, message.content);
  }
  if (request.prompt == GenerationPrompt::kAdd) chatml_open(out, "assistant");
}

// ---- Qwen: ChatML with thoughts, which earlier answers lose ----

// What becomes of contents, and of the thoughts behind the last user message.
enum class QwenContent : uint8_t { kAsIs, kTrimmed, kThoughtless };

void qwen_turns(const ChatRequest& request, QwenContent how, ChatWriter& out) {
  const int64_t last = last_user(request.messages);
  const auto count = static_cast<int64_t>(request.messages.size());
  for (int64_t i = 0; i < count; ++i) {
    const ChatMessage& message = request.messages[static_cast<size_t>(i)];
    const std::string_view content =
        how == QwenContent::kTrimmed ? trimmed(message.content) : message.content;
    if (message.role != "assistant") {
      chatml_turn(out, message.role, content);
      continue;
    }
    const Thought thought = split_thought(content);
    const bool thinks = contains(content, kThinkClose);
    const std::string_view answer = thinks ? without_leading(thought.answer, '\n') : content;
    const std::string_view thinking =
        how == QwenContent::kTrimmed
            ? trimmed(thought.thinking)
            : without_trailing(without_leading(thought.thinking, '\n'), '\n');
    const bool shows = i > last && how != QwenContent::kThoughtless &&
                       (how == QwenContent::kTrimmed || i + 1 == count || !thinking.empty());
    chatml_open(out, message.role);
    if (shows) {
      out.token(kThinkOpen);
      out.text("\n");
      out.text(thinking);
      out.text("\n");
      out.token(kThinkClose);
      out.text("\n\n");
    }
    out.text(shows ? without_leading(answer, '\n') : answer);
    out.token("<|im_end|>");
    out.text("\n");
  }
  if (request.prompt == GenerationPrompt::kAdd) chatml_open(out, "assistant");
}

void open_thought(ChatWriter& out) {
  out.token(kThinkOpen);
  out.text("\n");
}

void write_qwen3(const ChatRequest& request, ChatWriter& out) {
  qwen_turns(request, QwenContent::kAsIs, out);
  if (request.prompt == GenerationPrompt::kAdd && request.thinking == Thinking::kOff) {
    empty_thought(out, "\n\n", "\n\n");
  }
}

void write_qwen3_instruct(const ChatRequest& request, ChatWriter& out) {
  qwen_turns(request, QwenContent::kAsIs, out);
}

void write_qwen3_thinking(const ChatRequest& request, ChatWriter& out) {
  qwen_turns(request, QwenContent::kAsIs, out);
  if (request.prompt == GenerationPrompt::kAdd) open_thought(out);
}

void write_qwq(const ChatRequest& request, ChatWriter& out) {
  qwen_turns(request, QwenContent::kThoughtless, out);
  if (request.prompt == GenerationPrompt::kAdd) open_thought(out);
}

void qwen35_turns(const ChatRequest& request, bool thinks, ChatWriter& out) {
  qwen_turns(request, QwenContent::kTrimmed, out);
  if (request.prompt == GenerationPrompt::kOmit) return;
  if (thinks) {
    open_thought(out);
  } else {
    empty_thought(out, "\n\n", "\n\n");
  }
}

void write_qwen35(const ChatRequest& request, ChatWriter& out) {
  qwen35_turns(request, request.thinking != Thinking::kOff, out);
}

void write_qwen35_small(const ChatRequest& request, ChatWriter& out) {
  qwen35_turns(request, request.thinking == Thinking::kOn, out);
}

constexpr std::string_view kOpensAnswer = "'<|im_start|>assistant\\n'}}";
constexpr std::string_view kOpensThought = "'<|im_start|>assistant\\n<think>\\n'}}";
constexpr std::string_view kThinksUnlessOff = "enable_thinkingisdefinedandenable_thinkingisfalse%}";
constexpr std::string_view kThinksIfOn = "enable_thinkingisdefinedandenable_thinkingistrue%}";

bool has_qwen_turns(std::string_view jinja) {
  return has_chatml_turns(jinja) && has_all(jinja, {"last_query_index", kThinkClose}) &&
         !has_any(jinja, {"bos_token", "reasoning_effort", "thinking_mode"});
}
bool is_qwen35(std::string_view jinja) {
  return has_qwen_turns(jinja) && has_all(jinja, {"reasoning_content|trim", kOpensAnswer,
                                                  kThinksUnlessOff, "'<think>\\n'}}"});
}
bool is_qwen35_small(std::string_view jinja) {
  return has_qwen_turns(jinja) &&
         has_all(jinja, {"reasoning_content|trim", kOpensAnswer, kThinksIfOn, "'<think>\\n'}}"});
}
bool is_qwen3(std::string_view jinja) {
  return has_qwen_turns(jinja) &&
         has_all(jinja, {kOpensAnswer, kThinksUnlessOff, "'<think>\\n\\n</think>\\n\\n'}}"}) &&
         !contains(jinja, "'<think>\\n'}}");
}
bool is_qwen3_thinking(std::string_view jinja) {
  return has_qwen_turns(jinja) && contains(jinja, kOpensThought) &&
         !contains(jinja, "enable_thinking");
}
bool is_qwen3_instruct(std::string_view jinja) {
  return has_qwen_turns(jinja) && contains(jinja, kOpensAnswer) &&
         !contains(jinja, "enable_thinking");
}
bool is_qwq(std::string_view jinja) {
  return has_chatml_turns(jinja) &&
         has_all(jinja, {"message.content.split('</think>')[-1].lstrip('\\n')", kOpensThought}) &&
         !contains(jinja, "enable_thinking");
}

// ---- Llama 3 ----

constexpr std::array<std::string_view, 3> kLlamaEnds{"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"};

bool has_llama_turns(std::string_view jinja) {
  return has_all(jinja, {"'<|start_header_id|>'+message['role']+'<|end_header_id|>\\n\\n'+"
                         "message['content']|trim+'<|eot_id|>'",
                         "'<|start_header_id|>assistant<|end_header_id|>\\n\\n'"});
}
bool is_llama3(std::string_view jinja) {
  return has_llama_turns(jinja) && !contains(jinja, "<|start_header_id|>system");
}
bool is_llama31(std::string_view jinja) {
  return has_llama_turns(jinja) && has_all(jinja, {"'CuttingKnowledgeDate:December2023\\n'",
                                                   "'TodayDate:'+date_string", "'26Jul2024'"});
}

void llama_open(ChatWriter& out, std::string_view role) {
  out.token("<|start_header_id|>");
  out.text(role);
  out.token("<|end_header_id|>");
  out.text("\n\n");
}

void llama_turns(std::span<const ChatMessage> messages, GenerationPrompt prompt, ChatWriter& out) {
  for (const ChatMessage& message : messages) {
    llama_open(out, message.role);
    out.text(trimmed(message.content));
    out.token("<|eot_id|>");
  }
  if (prompt == GenerationPrompt::kAdd) llama_open(out, "assistant");
}

void write_llama3(const ChatRequest& request, ChatWriter& out) {
  if (!request.messages.empty()) out.token("<|begin_of_text|>");
  llama_turns(request.messages, request.prompt, out);
}

// With the date that the template falls back to, so that a prompt is the same every day.
void write_llama31(const ChatRequest& request, ChatWriter& out) {
  const bool system = has_system(request);
  out.token("<|begin_of_text|>");
  llama_open(out, "system");
  out.text("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
  if (system) out.text(trimmed(request.messages[0].content));
  out.token("<|eot_id|>");
  llama_turns(request.messages.subspan(system ? 1 : 0), request.prompt, out);
}

// ---- Gemma: no system turn, so that the first user message opens with it ----

constexpr std::array<std::string_view, 1> kGemmaEnds{"<end_of_turn>"};

// Gemma 2 refuses a system message; Gemma 3 takes it as here.
bool is_gemma(std::string_view jinja) {
  return has_all(jinja, {"'<start_of_turn>'+role+'\\n'", "message['content']|trim",
                         "<end_of_turn>\\n'", "'<start_of_turn>model\\n'"}) &&
         has_any(jinja, {"=messages[0]['content']+'\\n\\n'", "Systemrolenotsupported"});
}

void gemma_open(ChatWriter& out, std::string_view role) {
  out.token("<start_of_turn>");
  out.text(role == "assistant" ? "model" : role);
  out.text("\n");
}

void write_gemma(const ChatRequest& request, ChatWriter& out) {
  out.token("<bos>");
  const bool system = has_system(request);
  const std::span<const ChatMessage> messages = request.messages.subspan(system ? 1 : 0);
  for (const ChatMessage& message : messages) {
    gemma_open(out, message.role);
    if (system && &message == &messages[0]) {
      out.text(request.messages[0].content);
      out.text("\n\n");
    }
    out.text(trimmed(message.content));
    out.token("<end_of_turn>");
    out.text("\n");
  }
  if (request.prompt == GenerationPrompt::kAdd) gemma_open(out, "assistant");
}

// ---- GLM ----

constexpr std::array<std::string_view, 3> kGlmEnds{"<|user|>", "<|observation|>", "<|endoftext|>"};

// The template of the chat model before 0414 leaves out turns without a content; here none are.
bool is_glm4(std::string_view jinja) {
  return has_all(jinja, {"[gMASK]<sop>", "{%ifadd_generation_prompt%}<|assistant|>{%endif%}"}) &&
         has_any(jinja, {"<|user|>\\n{{content}}",
                         "<|{{item['role']}}|>{{item['metadata']}}\\n{{item['content']}}"}) &&
         !contains(jinja, "think");
}
bool is_glm45(std::string_view jinja) {
  return has_all(jinja, {"[gMASK]<sop>", "'/nothink'if",
                         "<|assistant|>{{-'\\n<think></think>'if(enable_thinkingisdefined"}) &&
         has_any(jinja, {"<|user|>\\n{{visible_text", "<|user|>\\n{%setcontent="});
}

void glm_open(ChatWriter& out, std::string_view role) {
  out.token(role == "system" ? "<|system|>" : role == "user" ? "<|user|>" : "<|assistant|>");
}

void write_glm4(const ChatRequest& request, ChatWriter& out) {
  out.token("[gMASK]");
  out.token("<sop>");
  for (const ChatMessage& message : request.messages) {
    glm_open(out, message.role);
    out.text("\n");
    out.text(message.content);
  }
  if (request.prompt == GenerationPrompt::kAdd) glm_open(out, "assistant");
}

void glm45_answer(ChatWriter& out, const Thought& thought, bool shows) {
  glm_open(out, "assistant");
  out.text("\n");
  out.token(kThinkOpen);
  if (shows) out.text(trimmed(thought.thinking));
  out.token(kThinkClose);
  if (const std::string_view answer = trimmed(thought.answer); !answer.empty()) {
    out.text("\n");
    out.text(answer);
  }
}

void write_glm45(const ChatRequest& request, ChatWriter& out) {
  const bool quiet = request.thinking == Thinking::kOff;
  const int64_t last = last_user(request.messages);
  out.token("[gMASK]");
  out.token("<sop>");
  for (size_t i = 0; i < request.messages.size(); ++i) {
    const ChatMessage& message = request.messages[i];
    if (message.role == "assistant") {
      glm45_answer(out, split_thought(message.content), static_cast<int64_t>(i) > last);
      continue;
    }
    glm_open(out, message.role);
    out.text("\n");
    out.text(message.content);
    if (message.role == "user" && quiet && !message.content.ends_with("/nothink")) {
      out.token("/nothink");
    }
  }
  if (request.prompt == GenerationPrompt::kOmit) return;
  glm_open(out, "assistant");
  if (quiet) {
    out.text("\n");
    empty_thought(out, "", "");
  }
}

// ---- DeepSeek: the system message stands before the first turn ----

constexpr std::string_view kDeepSeekUser = "<｜User｜>";
constexpr std::string_view kDeepSeekAssistant = "<｜Assistant｜>";
constexpr std::string_view kDeepSeekEnd = "<｜end▁of▁sentence｜>";
constexpr std::array<std::string_view, 1> kDeepSeekEnds{kDeepSeekEnd};

bool has_deepseek_turns(std::string_view jinja) {
  return has_all(jinja, {"ns.system_prompt}}", kDeepSeekEnd}) &&
         has_any(jinja, {"{{bos_token}}{{ns.", "{{-bos_token}}{{-ns."}) &&
         has_any(jinja, {"'<｜User｜>'+message['content']}}", "'<｜User｜>'+content}}",
                         "'<｜User｜>'+message['content']+'<｜Assistant｜>'}}",
                         "'<｜User｜>'+content+'<｜Assistant｜>'}}"}) &&
         !has_any(jinja, {"enable_thinking", "<think></think>"});
}
bool is_deepseek_v31(std::string_view jinja) {
  return has_deepseek_turns(jinja) &&
         has_all(jinja, {"ifnotthinking%}", "{{'</think>'}}", "{{'<think>'}}",
                         "content.split('</think>',1)[1]"});
}
bool is_deepseek_r1(std::string_view jinja) {
  return has_deepseek_turns(jinja) && contains(jinja, "'<｜Assistant｜><think>\\n'}}");
}
bool is_deepseek_r1_0528(std::string_view jinja) {
  return has_deepseek_turns(jinja) &&
         has_all(jinja, {"'<｜Assistant｜>'}}", "content.split('</think>')"}) &&
         !contains(jinja, kThinkOpen);
}
bool is_deepseek_v3(std::string_view jinja) {
  return has_deepseek_turns(jinja) && contains(jinja, "'<｜Assistant｜>'}}") &&
         !contains(jinja, "think");
}

// What is left of an earlier answer.
enum class Keeps : uint8_t { kAll, kBehindFirstThought, kBehindLastThought };

std::string_view kept(std::string_view content, Keeps keeps) {
  const size_t at =
      keeps == Keeps::kBehindFirstThought ? content.find(kThinkClose) : content.rfind(kThinkClose);
  return keeps == Keeps::kAll || at == std::string_view::npos
             ? content
             : content.substr(at + kThinkClose.size());
}

enum class AnswerOpening : uint8_t { kBare, kClosedThought };

void deepseek_turns(const ChatRequest& request, Keeps keeps, AnswerOpening opening,
                    ChatWriter& out) {
  out.token("<｜begin▁of▁sentence｜>");
  if (has_system(request)) out.text(request.messages[0].content);
  for (const ChatMessage& message : request.messages.subspan(has_system(request) ? 1 : 0)) {
    if (message.role == "user") {
      out.token(kDeepSeekUser);
      out.text(message.content);
      continue;
    }
    out.token(kDeepSeekAssistant);
    if (opening == AnswerOpening::kClosedThought) out.token(kThinkClose);
    out.text(kept(message.content, keeps));
    out.token(kDeepSeekEnd);
  }
  if (request.prompt == GenerationPrompt::kAdd) out.token(kDeepSeekAssistant);
}

void write_deepseek_v3(const ChatRequest& request, ChatWriter& out) {
  deepseek_turns(request, Keeps::kAll, AnswerOpening::kBare, out);
}

void write_deepseek_r1_0528(const ChatRequest& request, ChatWriter& out) {
  deepseek_turns(request, Keeps::kBehindLastThought, AnswerOpening::kBare, out);
}

void write_deepseek_r1(const ChatRequest& request, ChatWriter& out) {
  write_deepseek_r1_0528(request, out);
  if (request.prompt == GenerationPrompt::kAdd) open_thought(out);
}

void write_deepseek_v31(const ChatRequest& request, ChatWriter& out) {
  deepseek_turns(request, Keeps::kBehindFirstThought, AnswerOpening::kClosedThought, out);
  if (request.prompt == GenerationPrompt::kOmit) return;
  out.token(request.thinking == Thinking::kOn ? kThinkOpen : kThinkClose);
}

constexpr std::array kFormats{
    ChatFormat{"qwen3.5", is_qwen35, write_qwen35, ThinkingModes::kSwitched, kChatMlEnds},
    ChatFormat{"qwen3.5-small", is_qwen35_small, write_qwen35_small, ThinkingModes::kSwitched,
               kChatMlEnds},
    ChatFormat{"qwen3", is_qwen3, write_qwen3, ThinkingModes::kSwitched, kChatMlEnds},
    ChatFormat{"qwen3-thinking", is_qwen3_thinking, write_qwen3_thinking, ThinkingModes::kAlways,
               kChatMlEnds},
    ChatFormat{"qwen3-instruct", is_qwen3_instruct, write_qwen3_instruct, ThinkingModes::kNone,
               kChatMlEnds},
    ChatFormat{"qwq", is_qwq, write_qwq, ThinkingModes::kAlways, kChatMlEnds},
    ChatFormat{"chatml", is_chatml, write_chatml, ThinkingModes::kNone, kChatMlEnds},
    ChatFormat{"llama3.1", is_llama31, write_llama31, ThinkingModes::kNone, kLlamaEnds},
    ChatFormat{"llama3", is_llama3, write_llama3, ThinkingModes::kNone, kLlamaEnds},
    ChatFormat{"gemma", is_gemma, write_gemma, ThinkingModes::kNone, kGemmaEnds},
    ChatFormat{"glm4.5", is_glm45, write_glm45, ThinkingModes::kSwitched, kGlmEnds},
    ChatFormat{"glm4", is_glm4, write_glm4, ThinkingModes::kNone, kGlmEnds},
    ChatFormat{"deepseek-v3.1", is_deepseek_v31, write_deepseek_v31, ThinkingModes::kSwitched,
               kDeepSeekEnds},
    ChatFormat{"deepseek-r1", is_deepseek_r1, write_deepseek_r1, ThinkingModes::kAlways,
               kDeepSeekEnds},
    ChatFormat{"deepseek-r1-0528", is_deepseek_r1_0528, write_deepseek_r1_0528,
               ThinkingModes::kNone, kDeepSeekEnds},
    ChatFormat{"deepseek-v3", is_deepseek_v3, write_deepseek_v3, ThinkingModes::kNone,
               kDeepSeekEnds},
};

}  // namespace

void ChatWriter::text(std::string_view text) {
  if (text.empty()) return;
  if (pieces_.empty() || pieces_.back().is_token) pieces_.emplace_back();
  pieces_.back().text += text;
}

std::span<const ChatFormat> chat_formats() {
  return kFormats;
}

}  // namespace reckon
