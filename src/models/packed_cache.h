// Packing a checkpoint once and not at every load: the packed file (packed_file.h) of a model and a
// scheme, kept beside the model (in its folder where that is one), or in the user's cache folder
// where nothing can be written there.
//
// Two processes may do this at once: each writes a file of its own, and the last one stays.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "formats/cache_folder.h"
#include "formats/checkpoint.h"
#include "models/packed_file.h"
#include "models/quant_scheme.h"
#include "models/weight_placer.h"

namespace reckon::models {

struct PackedCacheOptions {
  bool enabled = true;
  // Less than this is packed faster than anybody notices.
  uint64_t least_bytes = uint64_t{64} << 20;
  std::string folder = cache_folder();  // where the model's own will not do; "": nowhere
};

class PackedCache final : public RowCache {
 public:
  // The checkpoint outlives the cache.
  PackedCache(const Checkpoint& checkpoint, QuantScheme scheme, PackedCacheOptions options)
      : checkpoint_(checkpoint), scheme_(std::move(scheme)), options_(std::move(options)) {}

  // Lets every weight that the scheme packs read its rows from the packed file, after writing it
  // where there is none that fits. A file that is of no use or cannot be written, and one that is
  // not kept because the checkpoint changed on the way, is a note, and the rows stay what they
  // were. Nothing is cached of a synthetic checkpoint.
  void attach(std::deque<PlacedWeight>& weights, const LoadOptions& options) override;
  [[nodiscard]] const std::vector<std::string>& notes() const override { return notes_; }

  // Where the file is looked for and written, in this order.
  [[nodiscard]] std::vector<std::string> paths() const;

 private:
  [[nodiscard]] PackedKey key() const;
  [[nodiscard]] std::vector<PlacedWeight*> packed_by_scheme(
      std::deque<PlacedWeight>& weights) const;
  [[nodiscard]] bool read_any(std::span<PlacedWeight* const> weights, ThreadPool& pool);
  void write_any(std::span<PlacedWeight* const> weights, const LoadOptions& options,
                 ThreadPool& pool);

  const Checkpoint& checkpoint_;
  QuantScheme scheme_;
  PackedCacheOptions options_;
  std::vector<std::string> notes_;
};

}  // namespace reckon::models
