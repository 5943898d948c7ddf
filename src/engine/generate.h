// Generation: a prompt's tokens in, text pieces and a full account out.
//
// Runs on the session's thread; the session must have room for the prompt at least. Times are wall
// clock in nanoseconds and leave out the callback, but where a device runs ahead: there the next
// token's pass has begun when the callback is called, and time goes on. A pass that ran ahead of a
// stop is counted and taken back.
//
// Drafts tokens and verifies them where the session's switches say so (speculate.h); the tokens,
// the text and where the session stands afterwards are those of plain decode. A drafter that
// replays first runs the generation plainly and takes it back; its times are the second run's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/sampler.h"
#include "engine/session.h"
#include "engine/speculation_stats.h"
#include "formats/tokenizer.h"

namespace reckon::engine {

enum class StopReason : uint8_t { kEndOfSequence, kStopText, kMaxTokens, kContextFull, kCancelled };
[[nodiscard]] std::string_view stop_reason_name(StopReason reason);  // "end of sequence", ...

enum class Flow : uint8_t { kContinue, kStop };
// Gets each piece of text as it becomes complete UTF-8 (never empty); kStop ends the generation.
using TextSink = std::function<Flow(std::string_view text)>;

struct GenerateOptions {
  int64_t max_tokens = 128;
  SamplerOptions sampler;
  std::vector<int32_t> stop_tokens;  // end the generation and are not part of it
  // What the session holds already, for a drafter; empty: it is not told.
  std::span<const int32_t> context = {};
  // End the generation; the text ends before the first of them (stop_text.h), while the tokens go
  // up to the one that completed it. They need a tokenizer.
  std::vector<std::string> stop_texts = {};
};

struct Generation {
  std::vector<int32_t> tokens;
  std::vector<float> margins;  // top-2 logit margin at each of `tokens`
  StopReason stop = StopReason::kMaxTokens;
  int64_t prompt_tokens = 0;
  int64_t prefill_ns = 0;
  int64_t decode_ns = 0;  // passes, drafting and sampling after the first token
  int64_t decode_passes = 0;
  int64_t decode_tokens = 0;                    // picked after the first one, a stop token, too
  std::optional<SpeculationStats> speculation;  // where drafts were verified
};

// The tokenizer's end of sequence and, where the vocabulary has them as control tokens, the ends
// of a ChatML turn and of a text.
[[nodiscard]] std::vector<int32_t> default_stop_tokens(const Tokenizer& tokenizer);

// Appends `prompt` to the session and generates. `tokenizer` may be null where no text is wanted
// (then `sink` is not called). Errors: an empty prompt or one that does not fit (usage), a negative
// max_tokens (usage), stop texts that cannot be (usage), and what the session and the sampler
// report.
[[nodiscard]] Result<Generation> generate(Session& session, std::span<const int32_t> prompt,
                                          const GenerateOptions& options,
                                          const Tokenizer* tokenizer, const TextSink& sink);
// The same with a sampler that goes on from generations before, instead of one of options.sampler.
// It is told of every token that is appended here.
[[nodiscard]] Result<Generation> generate(Session& session, std::span<const int32_t> prompt,
                                          const GenerateOptions& options, Sampler& sampler,
                                          const Tokenizer* tokenizer, const TextSink& sink);

}  // namespace reckon::engine
