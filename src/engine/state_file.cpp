#include "engine/state_file.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/check.h"
#include "base/hash.h"
#include "base/regular_file.h"
#include "formats/file_error.h"
#include "formats/json_file.h"
#include "formats/json_node.h"
#include "formats/new_file.h"

namespace reckon::engine {
namespace {

using models::StateKind;
using nlohmann::json;

constexpr std::string_view kMagic = "RKSTATE\n";
constexpr size_t kHead = 40;  // before the header
constexpr uint64_t kLargestToken = std::numeric_limits<int32_t>::max();
constexpr std::string_view kDamagedHead = "the head of the saved state is damaged";
constexpr uint64_t kAlignment = 64;

struct KindName {
  StateKind kind;
  std::string_view name;
};
constexpr std::array kKinds{
    KindName{StateKind::kByPosition, "by position"}, KindName{StateKind::kSlots, "slots"},
    KindName{StateKind::kRing, "ring"}, KindName{StateKind::kLastPass, "last pass"}};

std::string_view kind_name(StateKind kind) {
  for (const KindName& row : kKinds) {
    if (row.kind == kind) return row.name;
  }
  RECKON_CHECK(false);
  return "";
}

std::optional<StateKind> kind_from_name(std::string_view name) {
  for (const KindName& row : kKinds) {
    if (row.name == name) return row.kind;
  }
  return std::nullopt;
}

uint64_t load(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

uint64_t aligned(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

uint64_t bytes_of(const StateRows& rows) {
  return static_cast<uint64_t>(rows.parts * rows.count * rows.row_bytes());
}

// ---- Writing ----

json header_of(const StateContents& contents, std::span<const StatePieces> pieces) {
  const StateIdentity& identity = contents.identity;
  json header = {{"model", identity.model},       {"weights", identity.weights},
                 {"backend", identity.backend},   {"isa", identity.isa},
                 {"numerics", identity.numerics}, {"tokens", contents.tokens},
                 {"buffers", json::array()}};
  if (contents.pending) header["pending"] = *contents.pending;
  if (contents.draft) {
    const DraftMark& draft = *contents.draft;
    header["draft"] = {{"first", draft.first}, {"rows", draft.rows}, {"next", draft.next}};
  }
  for (size_t i = 0; i < contents.buffers.size(); ++i) {
    const StateRows& rows = contents.buffers[i];
    Hasher hasher;
    for (const std::string_view piece : pieces[i]) hasher.add(piece);
    header["buffers"].push_back({{"name", rows.name},
                                 {"kind", kind_name(rows.kind)},
                                 {"type", dtype_name(rows.type)},
                                 {"parts", rows.parts},
                                 {"width", rows.width},
                                 {"first", rows.first},
                                 {"count", rows.count},
                                 {"sum", hasher.hex()}});
  }
  return header;
}

// The header with where each buffer begins, which depends on its own length: it grows, if at all,
// until the next multiple of 64 holds it.
std::string placed(json header, std::span<const StateRows> buffers) {
  uint64_t begin = 0;
  for (;;) {
    uint64_t at = begin;
    for (size_t i = 0; i < buffers.size(); ++i) {
      header["buffers"][i]["offset"] = at;
      at = aligned(at + bytes_of(buffers[i]));
    }
    std::string text = header.dump();
    const uint64_t end = aligned(kHead + text.size());
    if (end == begin) return text;
    begin = end;
  }
}

Status write_padding(NewFile& file, uint64_t written) {
  return file.write(std::string(aligned(written) - written, '\0'));
}

// ---- Reading ----

// An integer of `least` to `most`.
Result<int64_t> integer_of(const JsonNode& object, std::string_view key, int64_t least,
                           int64_t most) {
  TRY_ASSIGN(const int64_t value, object.integer(key));
  if (value >= least && value <= most) return value;
  return object.error(fmt::format("has a '{}' of {}; expected {} to {}", key, value, least, most));
}

Result<int32_t> token_of(const JsonNode& object, std::string_view key, int32_t least) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  TRY_ASSIGN(const int64_t token, integer_of(object, key, least, kMost));
  return static_cast<int32_t>(token);
}

Result<StateIdentity> identity_of(const JsonNode& header) {
  StateIdentity identity;
  TRY_ASSIGN(identity.model, header.string("model"));
  TRY_ASSIGN(identity.weights, header.string("weights"));
  TRY_ASSIGN(identity.backend, header.string("backend"));
  TRY_ASSIGN(identity.isa, header.string("isa"));
  TRY_ASSIGN(const JsonNode numerics, header.member("numerics"));
  if (!numerics.is_object()) return numerics.error("is no object");
  for (const auto& [key, value] : numerics.value().items()) {
    if (!value.is_string()) return numerics.error("has a value that is no string");
    identity.numerics[key] = value.get<std::string>();
  }
  return identity;
}

Result<std::vector<int32_t>> tokens_of(const JsonNode& header) {
  TRY_ASSIGN(const JsonNode array, header.member("tokens"));
  const json& value = array.value();
  std::vector<int32_t> tokens;
  if (value.is_array()) {
    for (const json& token : value) {
      if (!token.is_number_unsigned() || token.get<uint64_t>() > kLargestToken) break;
      tokens.push_back(token.get<int32_t>());
    }
  }
  if (tokens.empty() || tokens.size() != value.size()) {
    return array.error("is no array of one or more tokens");
  }
  return tokens;
}

Result<DraftMark> draft_of(const JsonNode& draft, int64_t position) {
  DraftMark mark;
  TRY_ASSIGN(mark.first, integer_of(draft, "first", 0, position - 1));
  TRY_ASSIGN(mark.rows, integer_of(draft, "rows", mark.first, position));
  TRY_ASSIGN(mark.next, token_of(draft, "next", -1));
  return mark;
}

// `size` is the file's, `position` the number of tokens.
Result<StateRows> rows_of(const JsonNode& entry, int64_t size, int64_t position) {
  StateRows rows;
  TRY_ASSIGN(rows.name, entry.string("name"));
  TRY_ASSIGN(const std::string kind_text, entry.string("kind"));
  TRY_ASSIGN(const std::string type_text, entry.string("type"));
  const std::optional<StateKind> kind = kind_from_name(kind_text);
  const std::optional<DType> type = dtype_from_name(type_text);
  if (!kind || !type || (*type != DType::kF32 && *type != DType::kF16)) {
    return entry.error("is of no known kind and type");
  }
  rows.kind = *kind;
  rows.type = *type;
  TRY_ASSIGN(rows.first, integer_of(entry, "first", 0, position));
  TRY_ASSIGN(rows.count, integer_of(entry, "count", 1, position + 1 - rows.first));
  // So small that no product below leaves 63 bits, and the whole is no larger than the file.
  TRY_ASSIGN(rows.width, integer_of(entry, "width", 1, size / reckon::row_bytes(*type, 1)));
  TRY_ASSIGN(rows.parts, integer_of(entry, "parts", 1, size / rows.row_bytes()));
  if (rows.count > size / (rows.parts * rows.row_bytes())) {
    return entry.error("is larger than the file");
  }
  return rows;
}

}  // namespace

Status StateFile::read_buffers(const JsonNode& header) {
  const std::string_view all = file_.bytes();
  const auto size = static_cast<int64_t>(all.size());
  const auto position = static_cast<int64_t>(contents_.tokens.size());
  TRY_ASSIGN(const JsonNode array, header.member("buffers"));
  TRY_ASSIGN(const std::vector<JsonNode> entries, array.elements());
  for (const JsonNode& entry : entries) {
    TRY_ASSIGN(StateRows rows, rows_of(entry, size, position));
    const auto bytes = static_cast<int64_t>(bytes_of(rows));
    TRY_ASSIGN(const int64_t offset, integer_of(entry, "offset", 0, size - bytes));
    TRY_ASSIGN(const std::string sum, entry.string("sum"));
    rows_.push_back(all.substr(static_cast<size_t>(offset), static_cast<size_t>(bytes)));
    if (hash_hex(rows_.back()) != sum) {
      return entry.error(fmt::format("has damaged rows of '{}'", printable(rows.name)));
    }
    contents_.buffers.push_back(std::move(rows));
  }
  return {};
}

Status StateFile::read_header(const JsonNode& header) {
  TRY_ASSIGN(contents_.identity, identity_of(header));
  TRY_ASSIGN(contents_.tokens, tokens_of(header));
  if (header.find("pending")) {
    TRY_ASSIGN(contents_.pending, token_of(header, "pending", 0));
  }
  if (const std::optional<JsonNode> draft = header.find("draft")) {
    TRY_ASSIGN(contents_.draft, draft_of(*draft, static_cast<int64_t>(contents_.tokens.size())));
  }
  return read_buffers(header);
}

Result<StateFile> StateFile::open(const std::string& path) {
  if (const std::string why = why_not_a_file(path); !why.empty()) {
    return usage_error(fmt::format("{}: {}", path, why));
  }
  TRY_ASSIGN(MappedFile file, MappedFile::open(path));
  return parse(std::move(file));
}

Result<StateFile> StateFile::parse(MappedFile file) {
  StateFile state(std::move(file));
  const std::string_view all = state.file_.bytes();
  const auto error = [&](std::string_view message) { return file_error(state.path(), message); };
  if (!all.starts_with(kMagic)) return error("expected a saved state, which begins with RKSTATE");
  if (all.size() < kHead) return error("the saved state is cut short");
  if (const uint64_t version = load(all, 8); version != kStateFileVersion) {
    return error(
        fmt::format("a saved state of format {}, from another version of Reckon; expected "
                    "{}",
                    version, kStateFileVersion));
  }
  const uint64_t whole = load(all, 16);
  if (all.size() < whole) {
    return error(fmt::format("the saved state is cut short: {} bytes of {}", all.size(), whole));
  }
  const uint64_t length = load(all, 24);
  if (whole != all.size() || length > all.size() - kHead) return error(kDamagedHead);
  const std::string_view text = all.substr(kHead, length);
  if (hash64(text) != load(all, 32)) return error(kDamagedHead);
  json header;
  TRY(parse_json_object(state.path(), "the header of the saved state", text, header));
  TRY(state.read_header(JsonNode(state.path(), header, "")));
  return state;
}

Status check_state_path(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    if (const std::string why = why_not_a_file(path); !why.empty()) {
      return usage_error(fmt::format("{}: {}", path, why));
    }
  }
  return NewFile::beside(path).write("");
}

Status write_state_file(const std::string& path, const StateContents& contents,
                        std::span<const StatePieces> pieces) {
  RECKON_CHECK(pieces.size() == contents.buffers.size());
  const std::string header = placed(header_of(contents, pieces), contents.buffers);
  uint64_t whole = aligned(kHead + header.size());
  for (const StateRows& rows : contents.buffers) whole += aligned(bytes_of(rows));
  std::string head(kMagic);
  for (const uint64_t number :
       {kStateFileVersion, whole, uint64_t{header.size()}, hash64(header)}) {
    head.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  NewFile file = NewFile::beside(path);
  TRY(file.write(head));
  TRY(file.write(header));
  TRY(write_padding(file, head.size() + header.size()));
  for (size_t i = 0; i < pieces.size(); ++i) {
    uint64_t written = 0;
    for (const std::string_view piece : pieces[i]) {
      TRY(file.write(piece));
      written += piece.size();
    }
    RECKON_CHECK(written == bytes_of(contents.buffers[i]));
    TRY(write_padding(file, written));
  }
  TRY(file.sync());
  return file.rename_to(path);
}

}  // namespace reckon::engine
