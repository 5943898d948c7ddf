// Where a CUDA test's buffers lie: device memory that shows faults, and the copies of one call's
// arguments in it (device_testing.h says what for).
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/handles.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/tile_type.h"
#include "kernels/kernel.h"

namespace reckon::kernels::cuda::testing {

// Fails the running test with what the runtime says.
inline void must(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

// Device memory, every byte 0xff: as floats and halves, NaNs.
class DeviceBytes {
 public:
  explicit DeviceBytes(uint64_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, std::max<uint64_t>(bytes, 1)), "taking device memory");
    memory_.reset(memory);
    must(cudaMemset(memory, 0xff, bytes), "poisoning device memory");
  }
  [[nodiscard]] void* data() const { return memory_.get(); }
  void send(const void* from, uint64_t bytes) {
    must(cudaMemcpy(data(), from, bytes, cudaMemcpyHostToDevice), "sending");
  }
  [[nodiscard]] std::vector<char> bring() const {
    std::vector<char> bytes(bytes_);
    must(cudaMemcpy(bytes.data(), data(), bytes_, cudaMemcpyDeviceToHost), "bringing back");
    return bytes;
  }

 private:
  std::unique_ptr<void, Destroyer<void*, cudaFree>> memory_;
  uint64_t bytes_;
};

// The device's copies of one call's buffers. Each method swaps a host pointer for a device's; a
// buffer that is named twice (in place) is one.
class Placement {
 public:
  StepInput step;
  std::vector<int32_t> tokens;

  template <typename T>
  void read(T*& data, int64_t count) {
    place(data, count, true, false);
  }
  template <typename T>
  void write(T*& data, int64_t count) {
    place(data, count, false, true);
  }
  template <typename T>
  void read_write(T*& data, int64_t count) {
    place(data, count, true, true);
  }
  void weight(const void*& rows, DType type, int64_t n, int64_t k) {
    const TileType tiles = tile_type(type).value();
    std::vector<char> packed(static_cast<size_t>(tile_bytes(tiles, n, k)));
    pack_tiles(tiles, rows, n, k, 0, strips_of(n), packed.data());
    weights_.emplace_back(packed.size()).send(packed.data(), packed.size());
    rows = weights_.back().data();
  }

  // Copies what was written to the host's buffers and looks behind their ends.
  void bring_back() const {
    for (const auto& [host, buffer] : buffers_) {
      if (!buffer.written) continue;
      const std::vector<char> bytes = buffer.device->bring();
      std::memcpy(const_cast<void*>(host), bytes.data(), buffer.bytes);
      for (size_t i = buffer.bytes; i < bytes.size(); ++i) {
        if (bytes[i] == '\xff') continue;
        ADD_FAILURE() << "written " << i - buffer.bytes << " bytes behind a buffer's end";
        break;
      }
    }
  }

 private:
  static constexpr uint64_t kGuardBytes = 1024;
  struct Buffer {
    std::unique_ptr<DeviceBytes> device;
    uint64_t bytes = 0;
    bool written = false;
  };

  template <typename T>
  void place(T*& data, int64_t count, bool is_read, bool is_written) {
    Buffer& buffer = buffers_[data];
    const uint64_t bytes = static_cast<uint64_t>(count) * sizeof(T);
    if (buffer.device == nullptr) {
      // The guard would hide reads behind the end, so only what is written has one.
      buffer.device = std::make_unique<DeviceBytes>(bytes + (is_written ? kGuardBytes : 0));
      buffer.bytes = bytes;
      if (is_read) buffer.device->send(data, bytes);
    }
    if (buffer.bytes != bytes) throw std::logic_error("a buffer of two sizes");
    buffer.written = buffer.written || is_written;
    data = static_cast<T*>(buffer.device->data());
  }

  std::map<const void*, Buffer> buffers_;
  std::vector<DeviceBytes> weights_;
};

inline void place(EmbeddingArgs& a, Placement& to) {
  to.weight(a.table, a.weight_type, a.n, a.k);
  to.tokens.assign(a.tokens, a.tokens + a.rows);
  a.tokens = nullptr;
  to.write(a.out, a.rows * a.k);
}

inline void place(RmsNormArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.read(a.weight, a.k);
  to.write(a.out, a.rows * a.k);
}

inline void place(MatmulArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.weight(a.weight, a.weight_type, a.n, a.k);
  to.write(a.out, a.rows * a.n);
}

inline void place(RopeArgs& a, Placement& to) {
  to.read_write(a.x, a.rows * a.heads * a.head_dim);
  to.step.first_position = std::exchange(a.first_position, -1);
}

inline void place(AttentionArgs& a, Placement& to) {
  to.read(a.q, a.rows * a.heads * a.head_dim);
  to.read(a.k, a.rows * a.kv_heads * a.head_dim);
  to.read(a.v, a.rows * a.kv_heads * a.head_dim);
  for (void** cache : {&a.cache_k, &a.cache_v}) {
    auto* bytes = static_cast<char*>(*cache);
    to.read_write(bytes, row_bytes(a.kv_type, a.kv_heads * a.capacity * a.head_dim));
    *cache = bytes;
  }
  to.write(a.out, a.rows * a.heads * a.head_dim);
  to.step.first_position = std::exchange(a.first_position, -1);
}

inline void place(SwigluArgs& a, Placement& to) {
  to.read(a.gate, a.rows * a.k);
  to.read(a.up, a.rows * a.k);
  to.write(a.out, a.rows * a.k);
}

inline void place(AddArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.read(a.y, a.rows * a.k);
  to.write(a.out, a.rows * a.k);
}

inline void place(SampleArgs& a, Placement& to) {
  to.read(a.logits, a.rows * a.n);
  to.write(a.picks, a.rows);
  to.step.temperature = std::exchange(a.temperature, -1);
  to.step.uniform = std::exchange(a.uniform, -1);
}

inline void place(AddRmsNormArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.read_write(a.residual, a.rows * a.k);
  to.read(a.weight, a.k);
  to.write(a.out, a.rows * a.k);
}

inline void place(MatmulGroupArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  for (int i = 0; i < a.count; ++i) {
    to.weight(a.parts[i].weight, a.weight_type, a.parts[i].n, a.k);
    to.write(a.parts[i].out, a.rows * a.parts[i].n);
  }
}

inline void place(MatmulSwigluArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.weight(a.gate, a.weight_type, a.n, a.k);
  to.weight(a.up, a.weight_type, a.n, a.k);
  to.write(a.out, a.rows * a.n);
}

inline void place(RopeAttentionArgs& a, Placement& to) {
  place(a.attention, to);
  if (a.q_norm != nullptr) to.read(a.q_norm, a.attention.head_dim);
  if (a.k_norm != nullptr) to.read(a.k_norm, a.attention.head_dim);
}

inline void place(CausalConvArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.channels);
  to.read(a.weight, a.channels * a.width);
  to.read_write(a.inputs, a.ring * a.channels);
  to.write(a.out, a.rows * a.channels);
  to.step.first_position = std::exchange(a.first_position, -1);
}

inline void place(GatedDeltaRuleArgs& a, Placement& to) {
  const int64_t v_width = a.value_heads * a.value_dim;
  to.read(a.qkv, a.rows * (2 * a.key_heads * a.key_dim + v_width));
  to.read(a.a, a.rows * a.value_heads);
  to.read(a.b, a.rows * a.value_heads);
  to.read(a.a_log, a.value_heads);
  to.read(a.dt_bias, a.value_heads);
  to.read_write(a.states, a.slots * a.key_dim * v_width);
  to.write(a.out, a.rows * v_width);
  to.step.first_position = std::exchange(a.first_position, -1);
}

inline void place(GatedRmsNormArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.read(a.z, a.rows * a.k);
  to.read(a.weight, a.k);
  to.write(a.out, a.rows * a.k);
}

inline void place(SplitGateArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.heads * 2 * a.dim);
  to.write(a.q, a.rows * a.heads * a.dim);
  to.write(a.gate, a.rows * a.heads * a.dim);
}

inline void place(SigmoidGateArgs& a, Placement& to) {
  to.read_write(a.x, a.rows * a.k);
  to.read(a.gate, a.rows * a.k);
}

inline void place(GatedAddArgs& a, Placement& to) {
  to.read(a.y, a.rows * a.k);
  to.read(a.gate, a.rows);
  to.read_write(a.out, a.rows * a.k);
}

inline void place(ConcatArgs& a, Placement& to) {
  to.read(a.a, a.rows * a.a_columns);
  to.read(a.b, a.rows * a.b_columns);
  to.write(a.out, a.rows * (a.a_columns + a.b_columns));
}

inline void place(RouteArgs& a, Placement& to) {
  to.read(a.logits, a.rows * a.experts);
  to.write(a.selection, a.rows * 2 * a.top_k);
}

inline void place(ExpertMatmulSwigluArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.k);
  to.read(a.selection, a.rows * 2 * a.top_k);
  to.weight(a.gate, a.weight_type, a.experts * a.n, a.k);
  to.weight(a.up, a.weight_type, a.experts * a.n, a.k);
  to.write(a.out, a.rows * a.top_k * a.n);
}

inline void place(ExpertMatmulCombineArgs& a, Placement& to) {
  to.read(a.x, a.rows * a.top_k * a.k);
  to.read(a.selection, a.rows * 2 * a.top_k);
  to.weight(a.down, a.weight_type, a.experts * a.n, a.k);
  to.write(a.out, a.rows * a.n);
}

}  // namespace reckon::kernels::cuda::testing
