#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "engine/broken_weights.h"
#include "engine/stop_text.h"
#include "formats/utf8_stream.h"

namespace reckon::engine {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Passes completed text on to the sink, up to a stop text.
class TextOutput {
 public:
  TextOutput(const Tokenizer* tokenizer, const TextSink& sink, StopText stop)
      : tokenizer_(tokenizer), sink_(sink), stop_(std::move(stop)) {}

  // Why the token was the last one, where it was.
  [[nodiscard]] std::optional<StopReason> push(int32_t token) {
    if (tokenizer_ == nullptr) return std::nullopt;
    const Flow flow = emit(stop_.push(stream_.push(tokenizer_->token_bytes(token))));
    if (stop_.stopped()) return StopReason::kStopText;
    return flow == Flow::kStop ? std::optional(StopReason::kCancelled) : std::nullopt;
  }
  void finish() {
    if (tokenizer_ == nullptr || stop_.stopped()) return;
    static_cast<void>(emit(stop_.push(stream_.flush()) + stop_.flush()));
  }

 private:
  [[nodiscard]] Flow emit(const std::string& text) {
    return text.empty() || !sink_ ? Flow::kContinue : sink_(text);
  }

  const Tokenizer* tokenizer_;
  const TextSink& sink_;
  Utf8Stream stream_;
  StopText stop_;
};

Result<kernels::Pick> pick_on_host(Session& session, Sampler& sampler) {
  TRY_ASSIGN(const std::span<const float> logits, session.logits());
  Result<kernels::Pick> pick = sampler.pick(logits);
  if (!pick.ok()) return explain_not_finite(session.loaded(), pick.error());
  return pick;
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfSequence:
      return "end of sequence";
    case StopReason::kStopText:
      return "stop text";
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
  TRY_ASSIGN(Sampler sampler, Sampler::create(options.sampler));
  return generate(session, prompt, options, sampler, tokenizer, sink);
}

Result<Generation> generate(Session& session, std::span<const int32_t> prompt,
                            const GenerateOptions& options, Sampler& sampler,
                            const Tokenizer* tokenizer, const TextSink& sink) {
  if (options.max_tokens < 0) {
    return usage_error(
        fmt::format("{} tokens to generate; expected 0 or more", options.max_tokens));
  }
  TRY_ASSIGN(StopText stop_text, StopText::create(options.stop_texts));
  if (!options.stop_texts.empty() && tokenizer == nullptr) {
    return usage_error("a stop text needs a tokenizer, and there is none");
  }
  TextOutput output(tokenizer, sink, std::move(stop_text));
  Generation generation;
  generation.prompt_tokens = static_cast<int64_t>(prompt.size());
  // Keeps a token and passes its text on; why that was the last one.
  const auto take = [&](const kernels::Pick& pick) -> std::optional<StopReason> {
    const auto& stops = options.stop_tokens;
    if (std::ranges::find(stops, pick.token) != stops.end()) return StopReason::kEndOfSequence;
    generation.tokens.push_back(pick.token);
    generation.margins.push_back(pick.margin);
    sampler.saw({&pick.token, 1});
    return output.push(pick.token);
  };

  const int64_t start = now_ns();
  TRY(session.append(prompt));
  TRY(session.wait());
  sampler.saw(prompt);
  generation.prefill_ns = now_ns() - start;
  if (options.max_tokens == 0) return generation;

  const bool on_host = sampler.needs_logits();
  if (!on_host) TRY(session.start_pick(sampler.next()));
  for (int64_t known = 0;;) {  // when the last token became known, or was passed on
    const auto count = static_cast<int64_t>(generation.tokens.size()) + 1;
    const bool more = count < options.max_tokens && session.position() < session.capacity();
    const bool ahead = more && !on_host && session.runs_ahead();
    if (ahead) {
      TRY(session.append_picked());
      ++generation.decode_passes;
    }
    TRY_ASSIGN(const kernels::Pick pick,
               on_host ? pick_on_host(session, sampler) : session.take_pick());
    const int64_t now = now_ns();
    if (count > 1) generation.decode_ns += now - known;
    known = now;
    if (const auto stop = take(pick)) {
      generation.stop = *stop;
      if (ahead) TRY(session.truncate(session.position() - 1));
      break;
    }
    if (count == options.max_tokens) break;
    if (!more) {
      generation.stop = StopReason::kContextFull;
      break;
    }
    if (!ahead) {
      known = now_ns();  // no pass ran while the callback did
      TRY(session.append(pick.token));
      ++generation.decode_passes;
    }
    if (!on_host) TRY(session.start_pick(sampler.next()));
  }
  output.finish();
  return generation;
}

}  // namespace reckon::engine
