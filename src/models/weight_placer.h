// Where a model's weights live and in which element type: what a WeightBinder asks for each tensor.
//
// Two stages. While a model is built, plan() says for every tensor which type it will have and how
// many bytes it will take; nothing of the data is read and nothing is allocated, so that a memory
// plan can refuse first. load() then reads, converts and moves everything, once, and fills in the
// pointers behind the handles that the model got. No forward pass may run before, but a dry one.
//
// A placer belongs to one checkpoint and one model; both stages run on one thread at a time, and
// afterwards everything is immutable. The placer owns the memory that it took and outlives the
// model; the checkpoint outlives the placer.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "tensor/row_source.h"
#include "tensor/tensor.h"

namespace reckon::models {

// A model's handle of a weight: type and shape stand from plan() on, data from load() on. Reads as
// a Weight wherever one is taken.
class WeightRef {
 public:
  WeightRef() = default;
  explicit WeightRef(const Weight* weight) : weight_(weight) {}

  operator const Weight&() const {
    RECKON_CHECK(weight_ != nullptr);
    return *weight_;
  }

 private:
  const Weight* weight_ = nullptr;
};

enum class WeightRole : uint8_t {
  kEmbedding,      // a table looked up by rows
  kTiedEmbedding,  // one that is the head's matrix as well
  kMatrix,         // multiplied with activations
  kVector,         // a norm's and the like: always float32 in the end
};

struct PlacedWeight {
  std::string name;    // the tensor's, or what rearranged rows of several are called
  std::string tensor;  // the tensor's, or the first of them
  WeightRole role = WeightRole::kMatrix;
  Weight stored;             // in the checkpoint; no data where it has none in memory (synthetic)
  Weight placed;             // what the forward pass reads; no data before load()
  uint64_t bytes = 0;        // of memory that `placed` takes, with its alignment
  uint64_t panel_bytes = 0;  // how much of that are its panels (kernels/panels.h)
  std::shared_ptr<const RowSource> rows;  // of `stored`, in any type and strip; thread-safe
  // The place has no kernels for the type that was stored or asked for: `placed` has the nearest.
  bool converted = false;
};

// Bytes of the checkpoint that are done, of all that have to be converted, made or moved. Called
// now and then on the thread that loads, the last time with done == total.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

struct LoadOptions {
  int threads = 0;  // 0: every core that this process may use
  LoadProgress progress;
};

// Keeps rows between loads (packed_cache.h).
class RowCache {
 public:
  virtual ~RowCache() = default;
  // Called before anything is loaded: may replace the `rows` of weights by others that give the
  // same bytes for placed.type.
  virtual void attach(std::deque<PlacedWeight>& weights, const LoadOptions& options) = 0;
  // One line for each thing that did not go as it should, of attach().
  [[nodiscard]] virtual const std::vector<std::string>& notes() const = 0;
};

class WeightPlacer {
 public:
  WeightPlacer() = default;
  virtual ~WeightPlacer() = default;
  WeightPlacer(const WeightPlacer&) = delete;
  WeightPlacer& operator=(const WeightPlacer&) = delete;

  // Plans a place for the tensor. The handle stays valid as long as the placer. `rows` gives the
  // tensor's rows; without it they are those of stored.data. `tensor`: the name of (one of) the
  // tensors that they come from, where `name` is none. `experts`: how many matrices of as many rows
  // it is. Fails where the place has no such weights, naming the tensor.
  [[nodiscard]] Result<WeightRef> plan(const std::string& name, WeightRole role,
                                       const Weight& stored,
                                       std::shared_ptr<const RowSource> rows = nullptr,
                                       const std::string& tensor = "", int64_t experts = 1);
  // Once, after everything was planned; rows of `cache`, where there is one. Errors name the
  // tensor; then no weight has data.
  [[nodiscard]] Status load(const LoadOptions& options, RowCache* cache = nullptr);

  [[nodiscard]] const std::deque<PlacedWeight>& weights() const { return weights_; }
  // One line for each kind of conversion that nobody asked for, with what it costs in memory:
  // "converted 7 tensors from q5_k to p8, which has kernels here: +1.5 MiB". Of what was planned.
  [[nodiscard]] std::vector<std::string> notes() const;
  // What all planned weights take, and how much of it the placer has allocated by now (weights
  // that are read where the file is mapped are not).
  [[nodiscard]] uint64_t planned_bytes() const { return planned_bytes_; }
  [[nodiscard]] uint64_t planned_panel_bytes() const { return planned_panel_bytes_; }
  [[nodiscard]] virtual uint64_t allocated_bytes() const = 0;

 protected:
  struct Place {
    DType type = DType::kF32;  // that the weight will have; its shape stays
    uint64_t bytes = 0;
    bool converted = false;  // PlacedWeight::converted
    uint64_t panel_bytes = 0;
    bool panels_alone = false;
  };
  [[nodiscard]] virtual Result<Place> place(const std::string& name, WeightRole role,
                                            const Weight& stored, int64_t experts) const = 0;
  // Sets placed.data of every weight that keeps its rows, exactly as planned.
  [[nodiscard]] virtual Status fill(std::deque<PlacedWeight>& weights,
                                    const LoadOptions& options) = 0;

 private:
  std::deque<PlacedWeight> weights_;  // never moved: handles point into it
  uint64_t planned_bytes_ = 0;
  uint64_t planned_panel_bytes_ = 0;
  bool loaded_ = false;
};

}  // namespace reckon::models
