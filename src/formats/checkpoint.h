// A model's checkpoint, read-only, the same for a GGUF file (or several, gguf_shards.h), for a
// Hugging Face folder (config.json and what safetensors_set.h reads) and for made-up weights in a
// model's real dimensions (formats/synthetic.h): what model families load from.
//
// Weights and strings point into mappings that live as long as the Checkpoint; moving it keeps
// them valid. A synthetic checkpoint has no weights in memory: their `data` is null, and rows()
// makes them. So it is with matrices in block FP8 (block_fp8.h), which read as f32 unless rows()
// is asked for another type. Everything is const after open() and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/mapped_file.h"
#include "tensor/row_source.h"
#include "tensor/tensor.h"

namespace reckon {

enum class CheckpointKind { kGguf, kHuggingFace, kSynthetic };
// "gguf", "huggingface", "synthetic"
[[nodiscard]] std::string_view checkpoint_kind_name(CheckpointKind kind);

struct CheckpointTensor {
  std::string name;
  std::string type_name;  // "q4_1", "bf16", "f8_e4m3", or an unsupported type as its file writes it
  std::vector<int64_t> shape;    // outermost first
  std::optional<Weight> weight;  // none where the element type is not supported
  uint64_t bytes = 0;
};

// The file of a checkpoint that changed most since it was opened; kNone where none did.
struct CheckpointChange {
  FileChange change = FileChange::kNone;
  std::string path;
};

class Checkpoint {
 public:
  // `path` is a GGUF file (any one where there are several), a folder or "synth:NAME" (see
  // model_path.h for names as users type them).
  [[nodiscard]] static Result<Checkpoint> open(const std::string& path);

  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  [[nodiscard]] CheckpointKind kind() const;
  [[nodiscard]] const std::string& path() const;  // as opened
  // For people, where it is synthetic: "synth:llama-8b (4 of 32 layers)"; else "".
  [[nodiscard]] const std::string& display_name() const;
  // GGUF general.architecture; the config's model_type without a trailing "_text".
  [[nodiscard]] const std::string& architecture() const;

  // Configuration values. GGUF: a metadata key as written ("llama.embedding_length"). Any other
  // kind: a key of config.json ("hidden_size"), looked up in text_config first where there is one,
  // then at the top; "a.b" is key b of object a; rope_theta is found in rope_parameters (or
  // rope_scaling), too, partial_rotary_factor there first. JSON null counts as absent. Each fails
  // where the key is absent (the _or forms give `fallback` then) or of another type, naming both.
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] Result<int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<double> number(std::string_view key) const;  // integers, too
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  [[nodiscard]] Result<std::vector<int64_t>> integers(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> strings(std::string_view key) const;
  [[nodiscard]] Result<int64_t> integer_or(std::string_view key, int64_t fallback) const;
  [[nodiscard]] Result<double> number_or(std::string_view key, double fallback) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string> string_or(std::string_view key, std::string fallback) const;

  // Tensors. A Weight's k is the innermost dimension and its n the product of the others (1 for a
  // vector). tensor() fails where the tensor is absent, of an unsupported element type or not
  // aligned to its elements; with n and k it also checks the shape. find() gives none where the
  // tensor is absent and fails as tensor() does otherwise.
  [[nodiscard]] bool has_tensor(std::string_view name) const;
  [[nodiscard]] Result<Weight> tensor(std::string_view name) const;
  [[nodiscard]] Result<Weight> tensor(std::string_view name, int64_t n, int64_t k) const;
  [[nodiscard]] Result<std::optional<Weight>> find(std::string_view name) const;
  [[nodiscard]] std::span<const CheckpointTensor> tensors() const;  // sorted by name
  [[nodiscard]] bool is_block_fp8(std::string_view name) const;
  // The rows of a tensor, from wherever they are; fails as tensor() does. The checkpoint outlives
  // the source.
  [[nodiscard]] Result<std::unique_ptr<const RowSource>> rows(std::string_view name) const;

  [[nodiscard]] const std::vector<std::string>& files() const;  // paths of every file read
  [[nodiscard]] uint64_t total_bytes() const;                   // of those files
  [[nodiscard]] CheckpointChange change() const;
  // XXH3-128 of every byte (32 hexadecimal digits): of the file itself for GGUF (what
  // `xxhsum -H2` prints), of all of them where there are several; of the files' names and hashes
  // for a folder, those of its tokenizer among them; of what decides the weights for a synthetic
  // one. Computed on first use, big files only where they changed since (file_hash.h).
  [[nodiscard]] const std::string& content_hash() const;
  // Hash of what decides shapes and arithmetic: tensor names, types and shapes, and the
  // configuration without its cosmetic keys. Equal for two sets of weights of one architecture.
  [[nodiscard]] const std::string& shape_hash() const;
  // Element types of the matrices, most bytes first: "q4_1+q8_0", "bf16".
  [[nodiscard]] const std::string& weight_format() const;

  // The GGUF file behind it, for readers of its tokenizer (of several the first); null where there
  // is none.
  [[nodiscard]] const GgufFile* gguf() const;
  // The text of config.json; "" for GGUF.
  [[nodiscard]] std::string_view config_text() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  friend class CheckpointBuilder;

  std::unique_ptr<State> state_;
};

}  // namespace reckon
