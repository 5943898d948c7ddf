#include "engine/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon::engine {
namespace {

// How many of `prompt` the session need not run again: all but the last token at most, since the
// logits after it are wanted.
size_t common_tokens(const std::vector<int32_t>& run, const std::vector<int32_t>& prompt) {
  const auto differ = std::ranges::mismatch(run, prompt).in2;
  return std::min(static_cast<size_t>(differ - prompt.begin()), prompt.size() - 1);
}

}  // namespace

Conversation::Conversation(Session& session, const Tokenizer& tokenizer, ChatTemplate chat,
                           ConversationOptions options, Sampler sampler)
    : session_(session),
      tokenizer_(tokenizer),
      chat_(std::move(chat)),
      options_(std::move(options)),
      sampler_(std::move(sampler)) {}

Result<Conversation> Conversation::create(Session& session, const Tokenizer& tokenizer,
                                          ChatTemplate chat, ConversationOptions options) {
  TRY_ASSIGN(Sampler sampler, Sampler::create(options.generate.sampler));
  return Conversation(session, tokenizer, std::move(chat), std::move(options), std::move(sampler));
}

void Conversation::set_system(std::optional<std::string> system) {
  options_.system = std::move(system);
  reset();
}

Result<std::vector<int32_t>> Conversation::prompt_of(
    const std::vector<ChatMessage>& question) const {
  std::vector<ChatMessage> all;
  if (options_.system) all.push_back({"system", *options_.system});
  all.insert(all.end(), question.begin(), question.end());
  TRY_ASSIGN(std::vector<int32_t> prompt, chat_.encode(tokenizer_, all, GenerationPrompt::kAdd));
  const auto count = static_cast<int64_t>(prompt.size());
  if (count > session_.capacity()) {
    return refused(
        fmt::format("the conversation would be {} tokens, and the context holds {}: start over, or "
                    "give more context",
                    count, session_.capacity()));
  }
  return prompt;
}

Result<Turn> Conversation::answer(const std::vector<ChatMessage>& question, const TextSink& sink) {
  TRY_ASSIGN(const std::vector<int32_t> prompt, prompt_of(question));
  const size_t common = common_tokens(run_, prompt);
  TRY(session_.truncate(static_cast<int64_t>(common)));
  run_ = prompt;
  sampler_.forget();
  sampler_.saw(std::span(prompt).first(common));

  Turn turn;
  turn.cached_tokens = static_cast<int64_t>(common);
  const TextSink keep = [&](std::string_view piece) {
    turn.text += piece;
    return sink ? sink(piece) : Flow::kContinue;
  };
  GenerateOptions options = options_.generate;
  options.context = std::span(prompt).first(common);
  Result<Generation> generation =
      generate(session_, std::span(prompt).subspan(common), options, sampler_, &tokenizer_, keep);
  if (generation.ok()) {
    run_.insert(run_.end(), generation->tokens.begin(), generation->tokens.end());
  }
  // The last token may not have been run, nor all of a prompt that failed.
  run_.resize(std::min(run_.size(), static_cast<size_t>(session_.position())));
  TRY_ASSIGN(turn.generation, std::move(generation));
  return turn;
}

Result<Turn> Conversation::ask(std::string_view text, const TextSink& sink) {
  std::vector<ChatMessage> question = messages_;
  question.push_back({"user", std::string(text)});
  TRY_ASSIGN(Turn turn, answer(question, sink));
  messages_ = std::move(question);
  messages_.push_back({"assistant", turn.text});
  return turn;
}

Result<Turn> Conversation::ask_again(const TextSink& sink) {
  if (messages_.empty()) return usage_error("there is no question to answer again");
  std::vector<ChatMessage> question(messages_.begin(), messages_.end() - 1);
  TRY_ASSIGN(Turn turn, answer(question, sink));
  messages_.back().content = turn.text;
  return turn;
}

}  // namespace reckon::engine
