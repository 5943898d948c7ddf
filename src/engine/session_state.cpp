// Saving and loading a session's state. Buffers are kept by position, so that it makes no
// difference how many of them either session has room for.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "engine/session.h"
#include "formats/file_error.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"

namespace reckon::engine {
namespace {

using models::BufferSpec;
using models::PositionRange;
using models::StateKind;

// Switches that leave the bits of a state alone, or that something else here stands for: what
// drafts, how work is shared out, the instruction set, the type of the KV cache.
bool is_no_numerics(std::string_view key) {
  return key.starts_with("decode.") || key == "prefill.chunk" || key == "cpu.threads" ||
         key == "cpu.isa" || key == "kv.type";
}

Status check_backend(const kernels::Backend& backend) {
  if (backend.device().backend == "cpu") return {};
  return usage_error("states are saved and loaded on the CPU only in this version");
}

int64_t row_bytes_of(const BufferSpec& spec) {
  return row_bytes(spec.type, spec.columns / spec.parts);
}

// Calls what(memory, bytes) for each piece of a buffer's rows, in the order of a file.
template <typename What>
void each_piece(const BufferSpec& spec, char* memory, const PositionRange& range,
                const What& what) {
  const int64_t bytes = row_bytes_of(spec);
  for (int64_t part = 0; part < spec.parts; ++part) {
    for (int64_t p = range.first; p < range.first + range.count;) {
      const int64_t row = models::row_of_position(spec, p);
      const int64_t rows = std::min(range.first + range.count - p, spec.rows - row);
      what(memory + (part * spec.rows + row) * bytes, static_cast<size_t>(rows * bytes));
      p += rows;
    }
  }
}

// The positions whose rows of a buffer a saved state has.
PositionRange range_of(const BufferSpec& spec, int64_t position,
                       const std::optional<DraftMark>& draft) {
  if (spec.kind != StateKind::kLastPass) return models::needed_from(spec, position);
  return {draft->first, position - draft->first};
}

StateRows rows_of(const BufferSpec& spec, const PositionRange& range) {
  return {.name = spec.name,
          .kind = spec.kind,
          .type = spec.type,
          .parts = spec.parts,
          .width = spec.columns / spec.parts,
          .first = range.first,
          .count = range.count};
}

std::string difference(const StateFile& file, std::string_view what, std::string_view saved,
                       std::string_view here) {
  return fmt::format("{}: saved with {} {}; here it is {}", file.path(), what, printable(saved),
                     here);
}

Status check_numerics(const StateFile& file, const StateIdentity& saved, const StateIdentity& here,
                      const kernels::SwitchSet& switches) {
  for (const kernels::SwitchInfo& info : kernels::switch_registry()) {
    const auto found = saved.numerics.find(info.key);
    const bool changed = found != saved.numerics.end();
    if (changed == here.numerics.contains(info.key) &&
        (!changed || found->second == here.numerics.at(info.key))) {
      continue;
    }
    return refused(difference(file, info.key, changed ? found->second : info.default_value,
                              switches.get(info.key)));
  }
  if (saved.numerics == here.numerics) return {};
  return refused(
      fmt::format("{}: saved with switches that this version does not have", file.path()));
}

Status check_identity(const StateFile& file, const StateIdentity& here,
                      const kernels::SwitchSet& switches) {
  const StateIdentity& saved = file.contents().identity;
  if (saved.model != here.model) {
    return refused(fmt::format("{}: the state of another model (its content is {}, this one's {})",
                               file.path(), printable(saved.model), here.model));
  }
  if (saved.weights != here.weights) {
    return refused(difference(file, "weights in", saved.weights, here.weights));
  }
  if (saved.backend != here.backend) {
    return refused(difference(file, "backend", saved.backend, here.backend));
  }
  if (saved.isa != here.isa) return refused(difference(file, "cpu.isa", saved.isa, here.isa));
  return check_numerics(file, saved, here, switches);
}

}  // namespace

StateIdentity Session::state_identity() const {
  const kernels::SwitchSet& switches = planner_->switches();
  const std::string isa = switches.get("cpu.isa");
  StateIdentity identity{
      .model = model_.checkpoint().content_hash(),
      .weights = model_.weight_format(),
      .backend = backend_.device().backend,
      .isa = isa == "auto" ? std::string(kernels::isa_name(backend_.device().best_isa)) : isa,
      .numerics = {}};
  for (const auto& [key, value] : switches.changed()) {
    if (!is_no_numerics(key)) identity.numerics[key] = value;
  }
  return identity;
}

std::vector<Session::KeptBuffer> Session::kept_buffers() const {
  const SessionBuffers buffers = session_buffers(model_.model(), plan_.shape);
  std::vector<KeptBuffer> kept;
  for (size_t i = 0; i < buffers.state.size(); ++i) {
    if (state_[i].data == nullptr) continue;
    kept.push_back({buffers.state[i], static_cast<char*>(state_[i].data)});
  }
  for (size_t i = 0; draft_head_ && i < buffers.activations.size(); ++i) {
    if (buffers.activations[i].kind != StateKind::kLastPass) continue;
    kept.push_back({buffers.activations[i], reinterpret_cast<char*>(activations_[i].data)});
  }
  return kept;
}

Status Session::check_can_save() const {
  return check_backend(backend_);
}

Status Session::save_state(const std::string& path, std::optional<int32_t> pending) {
  if (position_ == 0) return usage_error("there is no state to save: no token was run");
  TRY(check_can_save());
  RECKON_CHECK(!is_last_unknown_);
  TRY(wait());
  StateContents contents;
  contents.identity = state_identity();
  contents.tokens = tokens_;
  contents.pending = pending;
  if (draft_head_) contents.draft = draft_head_->mark(position_);
  std::vector<StatePieces> pieces;
  for (const KeptBuffer& buffer : kept_buffers()) {
    const PositionRange range = range_of(buffer.spec, position_, contents.draft);
    contents.buffers.push_back(rows_of(buffer.spec, range));
    const int64_t origin =
        buffer.spec.kind == StateKind::kLastPass ? draft_head_->model_first() : 0;
    StatePieces& rows = pieces.emplace_back();
    each_piece(buffer.spec, buffer.memory, {range.first - origin, range.count},
               [&](char* memory, size_t bytes) { rows.emplace_back(memory, bytes); });
  }
  return write_state_file(path, contents, pieces);
}

Status Session::check_state(const StateFile& file) const {
  TRY(check_backend(backend_));
  TRY(check_identity(file, state_identity(), planner_->switches()));
  const StateContents& contents = file.contents();
  const int64_t vocabulary = model_.model().info().vocabulary;
  for (const int32_t token : contents.tokens) {
    if (token < vocabulary) continue;
    return refused(
        fmt::format("{}: holds the token {}, which the model does not have", file.path(), token));
  }
  const auto position = static_cast<int64_t>(contents.tokens.size());
  if (position > capacity()) {
    return refused(fmt::format("{}: a state of {} positions does not fit in a context of {}",
                               file.path(), position, capacity()));
  }
  if (contents.draft.has_value() != (draft_head_ != nullptr)) {
    return refused(fmt::format(
        "{}: saved {} the model's own head that drafts (decode.drafter, "
        "decode.mtp_depth); here it is {}",
        file.path(), contents.draft ? "with" : "without", draft_head_ ? "there" : "not there"));
  }
  return check_buffers(file, position);
}

Status Session::check_buffers(const StateFile& file, int64_t position) const {
  const StateContents& contents = file.contents();
  const std::vector<KeptBuffer> buffers = kept_buffers();
  bool same = buffers.size() == contents.buffers.size();
  for (size_t i = 0; same && i < buffers.size(); ++i) {
    const BufferSpec& spec = buffers[i].spec;
    const PositionRange range = range_of(spec, position, contents.draft);
    same = contents.buffers[i] == rows_of(spec, range);
    if (same && spec.kind == StateKind::kLastPass && range.count > spec.rows) {
      return refused(
          fmt::format("{}: has {} rows of the last pass for the head that drafts; a "
                      "chunk of this session has {} (--chunk)",
                      file.path(), range.count, spec.rows));
    }
  }
  if (same) return {};
  return refused(fmt::format("{}: its buffers are not those of this session's state", file.path()));
}

Status Session::load_state(const StateFile& file) {
  RECKON_CHECK(position_ == 0 && tokens_.empty());
  TRY(check_state(file));
  const StateContents& contents = file.contents();
  const std::vector<KeptBuffer> buffers = kept_buffers();
  for (size_t i = 0; i < buffers.size(); ++i) {
    const StateRows& rows = contents.buffers[i];
    // The first row that is still needed of a last pass stands for its first one.
    const int64_t first = rows.kind == StateKind::kLastPass ? 0 : rows.first;
    const char* from = file.rows(i).data();
    each_piece(buffers[i].spec, buffers[i].memory, {first, rows.count},
               [&](char* memory, size_t bytes) {
                 std::memcpy(memory, from, bytes);
                 from += bytes;
               });
  }
  tokens_ = contents.tokens;
  position_ = static_cast<int64_t>(tokens_.size());
  if (rollback_) state_reach_ = position_;
  if (draft_head_) draft_head_->restore(*contents.draft);
  return {};
}

}  // namespace reckon::engine
