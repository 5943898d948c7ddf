#include "engine/oracle_record.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <span>

#include "engine/sampler.h"
#include "engine/session.h"

namespace reckon::engine {
namespace {

void append_rows(std::vector<float>& rows, Activation values) {
  rows.insert(rows.end(), values.data, values.data + values.rows * values.columns);
}

class Recorder {
 public:
  explicit Recorder(Session& session) : session_(session) {}

  // The prompt as the session computes it, recorded at the same places.
  [[nodiscard]] Result<OraclePrompt> record(const OraclePrompt& like) {
    OraclePrompt prompt;
    prompt.tokens = like.tokens;
    prompt.logit_rows = like.logit_rows;
    prompt.hidden.resize(like.hidden.size());
    if (like.drafts) prompt.drafts.emplace();
    TRY_ASSIGN(const std::vector<float> last, record_prefill(prompt));
    if (like.drafts) {
      prompt.drafts->next = like.drafts->next;
      TRY(record_drafts(like.drafts->tokens.size(), prompt));
    }
    TRY(record_greedy(like.greedy.size(), last, prompt));
    return prompt;
  }

 private:
  // Gives the logits of the last row.
  [[nodiscard]] Result<std::vector<float>> record_prefill(OraclePrompt& prompt) {
    TRY(session_.truncate(0));
    if (!prompt.hidden.empty()) {
      session_.observe([&](int64_t layer, Activation hidden) {
        append_rows(prompt.hidden[static_cast<size_t>(layer)], hidden);
      });
    }
    if (prompt.drafts) {
      session_.observe_drafts([&](int64_t, Activation hidden, Activation logits) {
        append_rows(prompt.drafts->hidden, hidden);
        append_rows(prompt.drafts->logits, logits);
      });
    }
    std::vector<float> rows;  // of every position
    int64_t columns = 0;
    const Status status = session_.prefill_all(prompt.tokens, [&](int64_t, Activation logits) {
      columns = logits.columns;
      append_rows(rows, logits);
    });
    session_.observe({});
    TRY(status);
    prompt.logits.assign(rows.end() - prompt.logit_rows * columns, rows.end());
    return std::vector<float>(rows.end() - columns, rows.end());
  }

  // The logits of the drafts' rows are parted from those of the prompt's.
  [[nodiscard]] Status record_drafts(size_t depth, OraclePrompt& prompt) {
    OracleDrafts& drafts = *prompt.drafts;
    int32_t token = drafts.next;
    for (size_t i = 0; i < depth; ++i) {
      TRY_ASSIGN(const kernels::Pick pick, session_.draft(token));
      token = pick.token;
      drafts.tokens.push_back(token);
    }
    session_.observe_drafts({});
    const auto recorded = static_cast<ptrdiff_t>(prompt.tokens.size() - 1);
    const auto columns =
        static_cast<ptrdiff_t>(drafts.logits.size()) / (recorded + static_cast<ptrdiff_t>(depth));
    const auto behind = drafts.logits.begin() + recorded * columns;
    drafts.draft_logits.assign(behind, drafts.logits.end());
    drafts.logits.erase(behind, drafts.logits.end());
    return {};
  }

  [[nodiscard]] Status record_greedy(size_t count, std::vector<float> last, OraclePrompt& prompt) {
    prompt.min_top2_margin = std::numeric_limits<double>::infinity();
    while (prompt.greedy.size() < count) {
      TRY_ASSIGN(const kernels::Pick pick, pick_token(last));
      prompt.greedy.push_back(pick.token);
      prompt.min_top2_margin = std::min(prompt.min_top2_margin, static_cast<double>(pick.margin));
      if (prompt.greedy.size() == count) break;
      TRY_ASSIGN(const std::span<const float> logits, session_.decode(pick.token));
      last.assign(logits.begin(), logits.end());
    }
    return {};
  }

  Session& session_;
};

Result<std::unique_ptr<Session>> reference_session(const LoadedModel& model,
                                                   const SessionShape& shape) {
  SessionOptions options;
  TRY(options.switches.set("numerics", "reference"));
  options.shape = shape;
  return Session::create(model, options);
}

// Runs what a check runs of a prompt, along what was recorded.
Status follow(Session& session, const OraclePrompt& prompt) {
  TRY(session.truncate(0));
  if (prompt.drafts) session.observe_drafts([](int64_t, Activation, Activation) {});
  TRY(session.prefill_all(prompt.tokens, [](int64_t, Activation) {}));
  if (prompt.drafts) {
    int32_t token = prompt.drafts->next;
    for (const int32_t draft : prompt.drafts->tokens) {
      TRY_ASSIGN(const kernels::Pick pick, session.draft(token));
      (void)pick;
      token = draft;
    }
    session.observe_drafts({});
  }
  for (size_t step = 0; step + 1 < prompt.greedy.size(); ++step) {
    TRY_ASSIGN(const std::span<const float> logits, session.decode(prompt.greedy[step]));
    (void)logits;
  }
  return {};
}

}  // namespace

Result<std::vector<Selections>> record_selections(const LoadedModel& model,
                                                  const SessionShape& shape,
                                                  const std::vector<OraclePrompt>& prompts) {
  TRY_ASSIGN(const std::unique_ptr<Session> session, reference_session(model, shape));
  std::vector<Selections> recorded(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) {
    session->observe_routes([&](int64_t first_position, const models::Routed& routed) {
      recorded[i].record(first_position, routed);
    });
    TRY(follow(*session, prompts[i]));
  }
  return recorded;
}

Status record_again(const LoadedModel& model, const SessionShape& shape,
                    std::vector<OraclePrompt>& prompts) {
  TRY_ASSIGN(const std::unique_ptr<Session> session, reference_session(model, shape));
  Recorder recorder(*session);
  for (OraclePrompt& prompt : prompts) {
    TRY_ASSIGN(prompt, recorder.record(prompt));
  }
  return {};
}

}  // namespace reckon::engine
