// Binding a checkpoint's tensors to a model: each tensor is asked for once by name and shape, and
// what nobody asked for is an error, so that no weight is ever skipped unnoticed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "models/weight_placer.h"

namespace reckon::models {

// Rows [first, first + count) of a stored matrix of `rows` rows.
struct RowRange {
  std::string tensor;
  int64_t rows = 0;
  int64_t first = 0;
  int64_t count = 0;
};

enum class NormWeights : uint8_t { kPlain, kZeroCentred };
// How a checkpoint keeps the decay of delta nets: A_log, or -exp(A_log).
enum class DecayWeights : uint8_t { kLog, kNegated };

class WeightBinder {
 public:
  // Both must outlive the binder and every weight that it gives.
  WeightBinder(const Checkpoint& checkpoint, WeightPlacer& placer)
      : checkpoint_(checkpoint), placer_(placer) {}

  // A matrix [n, k], one that is looked up by rows, and one for both; their element type is the
  // placer's choice.
  // `experts` matrices may stand one below another, n being all of their rows.
  [[nodiscard]] Result<WeightRef> matrix(const std::string& name, int64_t n, int64_t k,
                                         int64_t experts = 1);
  [[nodiscard]] Result<WeightRef> embedding(const std::string& name, int64_t n, int64_t k);
  [[nodiscard]] Result<WeightRef> tied_embedding(const std::string& name, int64_t n, int64_t k);
  // A matrix of k columns made of rows of stored ones, in this order, for checkpoints that keep
  // together what a model reads apart, or apart what it reads together. `name` is what schemes and
  // messages call it; the tensors are of one type. They are copied at load, whatever it is.
  [[nodiscard]] Result<WeightRef> rearranged(const std::string& name,
                                             const std::vector<RowRange>& ranges, int64_t k,
                                             int64_t experts = 1);
  // A small table [n, k] as float32, from any plain type.
  [[nodiscard]] Result<WeightRef> table(const std::string& name, int64_t n, int64_t k);
  // A vector [k] as float32, from any plain type.
  [[nodiscard]] Result<WeightRef> vector(const std::string& name, int64_t k);
  // A norm's weight: a vector as it is, or 1 + what is stored.
  [[nodiscard]] Result<WeightRef> norm(const std::string& name, int64_t k, NormWeights weights);
  // A_log of delta nets [k]. What is stored negated is checked at load: a number above 0 is none.
  [[nodiscard]] Result<WeightRef> decay(const std::string& name, int64_t k, DecayWeights weights);
  // A tied head may still be stored; it must then be the embedding, byte for byte.
  [[nodiscard]] Status skip_tied_head(const std::string& embedding, const std::string& head);
  // A tensor that the model knows and does not read.
  void skip(const std::string& name) { used_.insert(name); }

  // Fails naming the first tensor that was neither bound, skipped nor is known to carry nothing
  // for text (stored rope frequencies, a vision tower). Gives how many tensors of a vision tower
  // there are.
  [[nodiscard]] Result<int64_t> finish(std::string_view family) const;

 private:
  [[nodiscard]] Result<WeightRef> bind(const std::string& name, WeightRole role, int64_t n,
                                       int64_t k, int64_t experts = 1);
  [[nodiscard]] Result<Weight> checked(const std::string& name, WeightRole role, int64_t n,
                                       int64_t k);
  // A vector of what `map` makes of each stored value.
  [[nodiscard]] Result<WeightRef> mapped(const std::string& name, int64_t k,
                                         Result<float> (*map)(float));

  const Checkpoint& checkpoint_;
  WeightPlacer& placer_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace reckon::models
