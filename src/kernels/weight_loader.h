// How a device keeps a model's weights, and the way there: rows as the host has them are laid out
// for the kernels (on any thread) and sent (in order).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "tensor/dtype.h"

namespace reckon::kernels {

// One load. Used from one thread.
class WeightUpload {
 public:
  virtual ~WeightUpload() = default;
  // Host memory of the size that the upload was made for, once what was sent from it before is
  // gone. Valid until send().
  [[nodiscard]] virtual Result<void*> stage() = 0;
  // Sends the first `bytes` of the last stage() to `destination` in the device's memory.
  [[nodiscard]] virtual Status send(void* destination, uint64_t bytes) = 0;
  // Waits until everything has arrived.
  [[nodiscard]] virtual Status finish() = 0;
};

class WeightLoader {
 public:
  virtual ~WeightLoader() = default;

  // The type in which a matrix stored as `type` is kept: the same, or the nearest that the kernels
  // compute with. None where there is no such type.
  [[nodiscard]] virtual std::optional<DType> kept_as(DType type) const = 0;

  // Matrices are laid out in strips of so many rows, each on its own and one after another.
  [[nodiscard]] virtual int64_t strip_rows() const = 0;
  [[nodiscard]] virtual uint64_t strip_bytes(DType type, int64_t k) const = 0;
  // Bytes of a matrix of n rows: every strip, the last one padded.
  [[nodiscard]] uint64_t matrix_bytes(DType type, int64_t n, int64_t k) const {
    return static_cast<uint64_t>((n + strip_rows() - 1) / strip_rows()) * strip_bytes(type, k);
  }
  // Lays out `count` rows (tensor/dtype.h) that begin a strip as that many strips, the last one
  // padded with zero rows. Pure and thread-safe.
  virtual void lay_out(DType type, const void* rows, int64_t count, int64_t k, void* out) const = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<WeightUpload>> begin(uint64_t stage_bytes) = 0;
};

}  // namespace reckon::kernels
