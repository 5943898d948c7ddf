#include "kernels/cuda/weight_loader.h"

#include <array>

#include "base/check.h"
#include "kernels/cuda/handles.h"
#include "kernels/cuda/tile_type.h"

namespace reckon::kernels::cuda {
namespace {

class CudaUpload final : public WeightUpload {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WeightUpload>> create(uint64_t stage_bytes) {
    std::unique_ptr<CudaUpload> upload(new CudaUpload());
    TRY_ASSIGN(upload->stream_, make_stream());
    for (Stage& stage : upload->stages_) {
      TRY_ASSIGN(stage.memory, make_pinned(stage_bytes));
      TRY_ASSIGN(stage.sent, make_event());
    }
    return std::unique_ptr<WeightUpload>(std::move(upload));
  }

  ~CudaUpload() override {
    if (stream_ != nullptr) static_cast<void>(cudaStreamSynchronize(stream_.get()));
  }

  Result<void*> stage() override {
    next_ = (next_ + 1) % stages_.size();
    TRY(status_of(cudaEventSynchronize(stages_[next_].sent.get()), "waiting for a stage"));
    return stages_[next_].memory.get();
  }

  Status send(void* destination, uint64_t bytes) override {
    const Stage& stage = stages_[next_];
    TRY(status_of(cudaMemcpyAsync(destination, stage.memory.get(), bytes, cudaMemcpyHostToDevice,
                                  stream_.get()),
                  "sending weights"));
    return status_of(cudaEventRecord(stage.sent.get(), stream_.get()), "marking a stage");
  }

  Status finish() override {
    return status_of(cudaStreamSynchronize(stream_.get()), "sending weights");
  }

 private:
  struct Stage {
    Pinned memory;
    Event sent;
  };
  CudaUpload() = default;

  std::array<Stage, 2> stages_;
  Stream stream_;
  size_t next_ = 0;
};

}  // namespace

std::optional<DType> CudaWeightLoader::kept_as(DType type) const {
  if (tile_type(type)) return type;
  if (type == DType::kI32) return std::nullopt;
  // The blocks of GGUF have no kernels here: half precision holds their values to 2^-11.
  return DType::kF16;
}

int64_t CudaWeightLoader::strip_rows() const {
  return kTileRows;
}

uint64_t CudaWeightLoader::strip_bytes(DType type, int64_t k) const {
  RECKON_CHECK(tile_type(type).has_value());
  return static_cast<uint64_t>(tile_bytes(*tile_type(type), kTileRows, k));
}

void CudaWeightLoader::lay_out(DType type, const void* rows, int64_t count, int64_t k,
                               void* out) const {
  RECKON_CHECK(tile_type(type).has_value());
  pack_tiles(*tile_type(type), rows, count, k, 0, strips_of(count), out);
}

Result<std::unique_ptr<WeightUpload>> CudaWeightLoader::begin(uint64_t stage_bytes) {
  return CudaUpload::create(stage_bytes);
}

}  // namespace reckon::kernels::cuda
