#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "formats/utf8_stream.h"

namespace reckon::engine {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Passes completed text on to the sink.
class TextOutput {
 public:
  TextOutput(const Tokenizer* tokenizer, const TextSink& sink)
      : tokenizer_(tokenizer), sink_(sink) {}

  [[nodiscard]] Flow push(int32_t token) {
    if (tokenizer_ == nullptr || !sink_) return Flow::kContinue;
    return emit(stream_.push(tokenizer_->token_bytes(token)));
  }
  void finish() {
    if (tokenizer_ != nullptr && sink_) static_cast<void>(emit(stream_.flush()));
  }

 private:
  [[nodiscard]] Flow emit(const std::string& text) {
    return text.empty() ? Flow::kContinue : sink_(text);
  }

  const Tokenizer* tokenizer_;
  const TextSink& sink_;
  Utf8Stream stream_;
};

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfSequence:
      return "end of sequence";
    case StopReason::kMaxTokens:
      return "token limit";
    case StopReason::kContextFull:
      return "context full";
    case StopReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::vector<int32_t> default_stop_tokens(const Tokenizer& tokenizer) {
  std::vector<int32_t> stops;
  const auto add = [&](std::optional<int32_t> token) {
    if (token && std::ranges::find(stops, *token) == stops.end()) stops.push_back(*token);
  };
  for (const int32_t token : tokenizer.end_tokens()) add(token);
  add(tokenizer.control_token("<|im_end|>"));
  add(tokenizer.control_token("<|endoftext|>"));
  return stops;
}

Result<Generation> generate(Session& session, std::span<const int32_t> prompt,
                            const GenerateOptions& options, const Tokenizer* tokenizer,
                            const TextSink& sink) {
  if (options.max_tokens < 0) {
    return usage_error(
        fmt::format("{} tokens to generate; expected 0 or more", options.max_tokens));
  }
  TRY_ASSIGN(Sampler sampler, Sampler::create(options.sampler));
  TextOutput output(tokenizer, sink);
  Generation generation;
  generation.prompt_tokens = static_cast<int64_t>(prompt.size());

  int64_t start = now_ns();
  TRY(session.append(prompt));
  TRY(session.wait());
  generation.prefill_ns = now_ns() - start;

  while (static_cast<int64_t>(generation.tokens.size()) < options.max_tokens) {
    start = now_ns();
    if (!generation.tokens.empty()) {
      if (session.position() == session.capacity()) {
        generation.stop = StopReason::kContextFull;
        break;
      }
      TRY(session.append(generation.tokens.back()));
      ++generation.decode_passes;
    }
    TRY_ASSIGN(const kernels::Pick pick, session.pick(sampler.next()));
    if (!generation.tokens.empty()) generation.decode_ns += now_ns() - start;
    if (std::ranges::find(options.stop_tokens, pick.token) != options.stop_tokens.end()) {
      generation.stop = StopReason::kEndOfSequence;
      break;
    }
    generation.tokens.push_back(pick.token);
    generation.margins.push_back(pick.margin);
    if (output.push(pick.token) == Flow::kStop) {
      generation.stop = StopReason::kCancelled;
      break;
    }
  }
  output.finish();
  return generation;
}

}  // namespace reckon::engine
