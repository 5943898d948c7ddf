#include "engine/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/broken_weights.h"
#include "engine/clock.h"
#include "engine/lookup_drafter.h"
#include "engine/mtp_drafter.h"
#include "engine/replay_drafter.h"
#include "engine/speculate.h"
#include "engine/stop_text.h"
#include "formats/utf8_stream.h"

namespace reckon::engine {
namespace {

constexpr uint64_t kReplaySeed = 0;

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
  return explained(session.loaded(), sampler.pick(logits));
}

// One generation.
class Run {
 public:
  Run(Session& session, const GenerateOptions& options, Sampler& sampler)
      : session_(session), options_(options), sampler_(sampler) {}

  // Drafts where there is a drafter.
  Result<Generation> generate(std::span<const int32_t> prompt, const Tokenizer* tokenizer,
                              const TextSink& sink, Drafter* drafter);

 private:
  Status prefill(std::span<const int32_t> prompt);
  // Whether the token after those that were taken may be followed by another.
  bool more() const {
    return picks_ + 1 < options_.max_tokens && first_position_ + picks_ < session_.capacity();
  }
  // Keeps a token and passes its text on; false where the generation ends with it.
  bool take(const kernels::Pick& pick, TextOutput& output);
  Status decode(TextOutput& output);
  Status speculate(std::span<const int32_t> prompt, Drafter& drafter, TextOutput& output);

  Session& session_;
  const GenerateOptions& options_;
  Sampler& sampler_;
  Generation generation_;
  int64_t first_position_ = 0;  // where the first token that is picked will stand
  int64_t picks_ = 0;
};

Result<Generation> Run::generate(std::span<const int32_t> prompt, const Tokenizer* tokenizer,
                                 const TextSink& sink, Drafter* drafter) {
  if (options_.max_tokens < 0) {
    return usage_error(
        fmt::format("{} tokens to generate; expected 0 or more", options_.max_tokens));
  }
  TRY_ASSIGN(StopText stop_text, StopText::create(options_.stop_texts));
  if (!options_.stop_texts.empty() && tokenizer == nullptr) {
    return usage_error("a stop text needs a tokenizer, and there is none");
  }
  TRY(prefill(prompt));
  if (options_.max_tokens == 0) return std::move(generation_);
  TextOutput output(tokenizer, sink, std::move(stop_text));
  TRY(drafter != nullptr ? speculate(prompt, *drafter, output) : decode(output));
  output.finish();
  generation_.decode_tokens = picks_ - 1;
  return std::move(generation_);
}

Status Run::prefill(std::span<const int32_t> prompt) {
  const int64_t start = now_ns();
  TRY(session_.append(prompt));
  TRY(session_.wait());
  sampler_.saw(prompt);
  generation_.prefill_ns = now_ns() - start;
  generation_.prompt_tokens = static_cast<int64_t>(prompt.size());
  first_position_ = session_.position();
  return {};
}

bool Run::take(const kernels::Pick& pick, TextOutput& output) {
  const bool last = !more();
  ++picks_;
  const auto& stops = options_.stop_tokens;
  if (std::ranges::find(stops, pick.token) != stops.end()) {
    generation_.stop = StopReason::kEndOfSequence;
    return false;
  }
  generation_.tokens.push_back(pick.token);
  generation_.margins.push_back(pick.margin);
  sampler_.saw({&pick.token, 1});
  if (const auto stop = output.push(pick.token)) {
    generation_.stop = *stop;
    return false;
  }
  if (last && picks_ < options_.max_tokens) generation_.stop = StopReason::kContextFull;
  return !last;
}

Status Run::decode(TextOutput& output) {
  const bool on_host = sampler_.needs_logits();
  if (!on_host) TRY(session_.start_pick(sampler_.next()));
  for (int64_t known = 0;;) {  // when the last token became known, or was passed on
    const bool ahead = more() && !on_host && session_.runs_ahead();
    if (ahead) {
      TRY(session_.append_picked());
      ++generation_.decode_passes;
    }
    TRY_ASSIGN(const kernels::Pick pick,
               on_host ? pick_on_host(session_, sampler_) : session_.take_pick());
    const int64_t now = now_ns();
    if (picks_ > 0) generation_.decode_ns += now - known;
    known = now;
    if (!take(pick, output)) return ahead ? session_.truncate(session_.position() - 1) : Status();
    if (!ahead) {
      known = now_ns();  // no pass ran while the callback did
      TRY(session_.append(pick.token));
      ++generation_.decode_passes;
    }
    if (!on_host) TRY(session_.start_pick(sampler_.next()));
  }
}

Status Run::speculate(std::span<const int32_t> prompt, Drafter& drafter, TextOutput& output) {
  std::vector<int32_t> text(options_.context.begin(), options_.context.end());
  text.insert(text.end(), prompt.begin(), prompt.end());
  TRY(drafter.commit(text));
  Speculator speculator(
      session_, drafter, sampler_,
      speculation_options(session_.planner().switches(), session_.plan().shape.drafts));
  TRY(speculator.run(options_.max_tokens,
                     [&](const kernels::Pick& pick) { return take(pick, output); }));
  generation_.decode_ns = speculator.elapsed_ns();
  generation_.decode_passes = speculator.stats().passes();
  generation_.speculation = speculator.stats();
  return {};
}

// What plain decode would give from here, with the session left as it is.
Result<Recording> record(Session& session, std::span<const int32_t> prompt,
                         const GenerateOptions& options, const Sampler& sampler,
                         const Tokenizer* tokenizer) {
  const int64_t position = session.position();
  Sampler copy = sampler;
  TRY_ASSIGN(Generation plain,
             Run(session, options, copy).generate(prompt, tokenizer, {}, nullptr));
  TRY(session.truncate(position));
  return Recording{std::move(plain.tokens), std::move(plain.margins)};
}

// `speculation` has a drafter; the rest is what is to be generated with it.
Result<std::unique_ptr<Drafter>> make_drafter(const SpeculationOptions& speculation,
                                              Session& session, std::span<const int32_t> prompt,
                                              const GenerateOptions& options,
                                              const Sampler& sampler, const Tokenizer* tokenizer) {
  if (speculation.drafter == DrafterKind::kLookup) {
    return std::unique_ptr<Drafter>(std::make_unique<LookupDrafter>());
  }
  if (speculation.drafter == DrafterKind::kMtp) {
    return std::unique_ptr<Drafter>(std::make_unique<MtpDrafter>(session));
  }
  TRY_ASSIGN(Recording recording, record(session, prompt, options, sampler, tokenizer));
  return std::unique_ptr<Drafter>(
      std::make_unique<ReplayDrafter>(speculation.replay_probability, std::move(recording),
                                      session.model().info().vocabulary, kReplaySeed));
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
  const SpeculationOptions speculation =
      speculation_options(session.planner().switches(), session.plan().shape.drafts);
  if (speculation.drafter == DrafterKind::kNone || session.plan().shape.verify_rows < 2) {
    return Run(session, options, sampler).generate(prompt, tokenizer, sink, nullptr);
  }
  TRY_ASSIGN(const auto drafter,
             make_drafter(speculation, session, prompt, options, sampler, tokenizer));
  return Run(session, options, sampler).generate(prompt, tokenizer, sink, drafter.get());
}

}  // namespace reckon::engine
