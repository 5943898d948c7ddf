// Binding a checkpoint's tensors to a model: each tensor is asked for once by name and shape, and
// what nobody asked for is an error, so that no weight is ever skipped unnoticed.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "tensor/tensor.h"

namespace reckon::models {

// Float32 copies of the few vectors that are stored otherwise (norms of a bf16 folder); weights
// point into it, so it lives as long as the model.
using WeightCopies = std::vector<std::unique_ptr<float[]>>;

class WeightBinder {
 public:
  // The checkpoint must outlive the binder and every weight that it gives.
  explicit WeightBinder(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  // A matrix [n, k] in the file's own element type, read in place.
  [[nodiscard]] Result<Weight> matrix(const std::string& name, int64_t n, int64_t k);
  // A vector [k] as float32: in place, or a copy where the file stores another plain type.
  [[nodiscard]] Result<Weight> vector(const std::string& name, int64_t k);
  // A tensor that the model knows and does not read.
  void skip(const std::string& name) { used_.insert(name); }

  // Fails naming the first tensor that was neither bound, skipped nor is known to carry nothing
  // for text (stored rope frequencies, a vision tower). Gives how many tensors of a vision tower
  // there are.
  [[nodiscard]] Result<int64_t> finish(std::string_view family) const;

  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // of everything bound
  [[nodiscard]] WeightCopies take_copies() { return std::move(copies_); }

 private:
  const Checkpoint& checkpoint_;
  std::set<std::string, std::less<>> used_;
  WeightCopies copies_;
  uint64_t bytes_ = 0;
};

}  // namespace reckon::models
