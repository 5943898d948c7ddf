// A file of a session's saved state: what its model needs to go on from where it stood.
//
//   bytes  what
//   8      "RKSTATE\n"
//   8      version of the format, kStateFileVersion
//   8      length of the file
//   8      length of the header
//   8      XXH3-64 of the header
//   ...    the header, JSON: "model", "weights", "backend", "isa" and "numerics" (StateIdentity),
//          "tokens", "pending" and "draft" where there are such, and "buffers" of "name", "kind",
//          "type", "parts", "width", "first", "count", "offset" (in the file) and "sum" (XXH3-128)
//   ...    the buffers, each at a multiple of 64: part by part the rows of the positions
//
// Integers are little-endian. A file gets its name when it is whole and on stable storage, so that
// a reader sees all of it or the one before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/mapped_file.h"
#include "models/model.h"
#include "tensor/dtype.h"

namespace reckon {

class JsonNode;

namespace engine {

inline constexpr uint64_t kStateFileVersion = 1;

// What decides the bytes of a state, but the tokens.
struct StateIdentity {
  std::string model;                            // Checkpoint::content_hash()
  std::string weights;                          // LoadedModel::weight_format()
  std::string backend;                          // "cpu"
  std::string isa;                              // that kernels may use at most
  std::map<std::string, std::string> numerics;  // switches that are not at their defaults

  friend bool operator==(const StateIdentity&, const StateIdentity&) = default;
};

// Where the head that drafts stands (DraftHead).
struct DraftMark {
  int64_t first = 0;  // position of the first row that it may read of the model's last pass
  int64_t rows = 0;   // of its cache
  int32_t next = -1;  // the token that the last of them was given
};

// Rows of one buffer, [parts, count, width]: those of positions [first, first + count).
struct StateRows {
  std::string name;
  models::StateKind kind = models::StateKind::kNone;
  DType type = DType::kF32;  // or f16
  int64_t parts = 1;
  int64_t width = 0;
  int64_t first = 0;
  int64_t count = 0;

  [[nodiscard]] int64_t row_bytes() const { return reckon::row_bytes(type, width); }
  friend bool operator==(const StateRows&, const StateRows&) = default;
};

struct StateContents {
  StateIdentity identity;
  std::vector<int32_t> tokens;     // that the session has run, one or more
  std::optional<int32_t> pending;  // that follows, and was not run
  std::optional<DraftMark> draft;
  std::vector<StateRows> buffers;  // with rows
};

class StateFile {
 public:
  // Reads and checks all of it. Usage errors where it is no file; else fails, naming the path,
  // where it is another kind of file, of another version, not whole or damaged.
  [[nodiscard]] static Result<StateFile> open(const std::string& path);
  [[nodiscard]] static Result<StateFile> parse(MappedFile file);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const StateContents& contents() const { return contents_; }
  // The rows of contents().buffers[buffer].
  [[nodiscard]] std::string_view rows(size_t buffer) const { return rows_[buffer]; }

 private:
  explicit StateFile(MappedFile file) : file_(std::move(file)) {}
  [[nodiscard]] Status read_header(const JsonNode& header);
  [[nodiscard]] Status read_buffers(const JsonNode& header);

  MappedFile file_;
  StateContents contents_;
  std::vector<std::string_view> rows_;
};

// Before long work whose state goes there: fails, naming the path, where no file can be made in its
// folder or what is there is none. Leaves everything as it is.
[[nodiscard]] Status check_state_path(const std::string& path);

// The rows of one buffer, in pieces.
using StatePieces = std::vector<std::string_view>;

// Puts a file in the place of the one at `path`; `pieces[i]` are the rows of contents.buffers[i].
// Where it fails, that one is as it was, and nothing else is left behind.
[[nodiscard]] Status write_state_file(const std::string& path, const StateContents& contents,
                                      std::span<const StatePieces> pieces);

}  // namespace engine
}  // namespace reckon
