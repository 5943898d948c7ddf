// A file of packed weights: the rows that RowSource::rows() gives for types of a QuantScheme, the
// same for every device.
//
//   bytes  what
//   8      "RKPACKED"
//   8      length of the header
//   8      XXH3-64 of the header
//   ...    the header, JSON: "model", "scheme" and "packing" (PackedKey), "data" (where the data
//          begin) and "tensors" of "name", "type", "n", "k", "offset" (into the data) and "sums"
//          (XXH3-64 of each run of packed_run_rows() rows)
//   ...    the data, each tensor at a multiple of 64
//
// Integers are little-endian. The beginning is written last and the file gets its name then, so
// that one that was cut short is none, and a reader sees a whole file or the one before. It is not
// flushed to stable storage: what a power failure leaves does not fit its checksums.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "formats/mapped_file.h"
#include "tensor/row_source.h"
#include "tensor/tensor.h"

namespace reckon::models {

// What decides the bytes of a packed file.
struct PackedKey {
  std::string model;   // Checkpoint::content_hash()
  std::string scheme;  // QuantScheme::id()
  int packing = 0;     // kPackingVersion
};

// Rows that share a checksum: about 1 MiB.
[[nodiscard]] int64_t packed_run_rows(DType type, int64_t k);

class PackedFile {
 public:
  // Maps the file and reads its header. Fails, naming the path, where it is not there, not whole or
  // damaged, or made for another key.
  [[nodiscard]] static Result<std::shared_ptr<const PackedFile>> open(const std::string& path,
                                                                      const PackedKey& key);

  // The tensor of this name, `wanted` with its data; without data where there is none of this type
  // and shape.
  [[nodiscard]] Weight find(const std::string& name, Weight wanted) const;
  // Reads every run of these tensors, which are there, in parallel. Fails naming the first that
  // does not fit its checksum.
  [[nodiscard]] Status verify(std::span<const std::string> names, ThreadPool& pool) const;

 private:
  struct Tensor {
    Weight weight;
    std::vector<uint64_t> sums;
  };
  explicit PackedFile(MappedFile file) : file_(std::move(file)) {}
  [[nodiscard]] Status read(const PackedKey& key);
  [[nodiscard]] Status read_tensors(std::string_view header, uint64_t begin);

  MappedFile file_;
  std::map<std::string, Tensor, std::less<>> tensors_;
};

// Rows of a tensor of a packed file, which they keep mapped; in the file's type only.
class PackedRows final : public RowSource {
 public:
  PackedRows(std::shared_ptr<const PackedFile> file, const Weight& weight)
      : file_(std::move(file)), rows_(weight), type_(weight.type) {}
  [[nodiscard]] Status rows(int64_t first, int64_t count, DType type, void* out) const override;

 private:
  std::shared_ptr<const PackedFile> file_;
  StoredRows rows_;
  DType type_;
};

struct PackedSource {
  std::string name;
  Weight packed;  // type and shape; no data
  const RowSource* rows = nullptr;
};

[[nodiscard]] uint64_t packed_file_bytes(const PackedKey& key,
                                         std::span<const PackedSource> sources);

// Called on the calling thread now and then, with weights that are done.
using PackedProgress = std::function<void(int64_t done_values)>;

// Asked when all is packed: an error where the sources are no longer what `key` says.
using PackedCheck = std::function<Status()>;

// Packs the tensors in parallel into a new file, which then takes the place of the one at `path`.
// On an error (a weight that cannot be packed, sources that are not still_valid, what the system
// said) that one is as it was and nothing else is left behind; what processes that were killed on
// the way have left is removed.
[[nodiscard]] Status write_packed_file(const std::string& path, const PackedKey& key,
                                       std::span<const PackedSource> sources, ThreadPool& pool,
                                       const PackedProgress& progress,
                                       const PackedCheck& still_valid = {});

}  // namespace reckon::models
