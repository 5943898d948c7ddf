// What the tests of CUDA kernels share. DeviceTest skips where there is no GPU and has a Runner,
// which calls a kernel as a session would, on arguments that point at host memory: it sends what
// the kernel reads, lays weights out as tiles, and brings back what the kernel writes.
//
// So that faults show: every buffer lies in memory of its own, which compute-sanitizer watches to
// the byte; what is only written, and the scratch, hold NaNs before the call; what follows a
// written buffer must be untouched after it; tokens, positions and sampling parameters reach the
// kernel through its queue alone.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/call.h"
#include "kernels/cpu/kernel_testing.h"
#include "kernels/cuda/blaslt.h"
#include "kernels/cuda/gemv.h"
#include "kernels/cuda/handles.h"
#include "kernels/cuda/open.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/tile_type.h"

namespace reckon::kernels::cuda::testing {

using kernels::testing::Random;

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

class Runner {
 public:
  explicit Runner(const Device& device) : device_(device) {
    must(static_cast<cudaError_t>(gemv_prepare(&gemv_)), "preparing the matmul kernels");
    stream_ = made(make_stream());
    if (blaslt_available()) library_ = made(BlasLt::create());
    queue_.stream = stream_.get();
    queue_.matmul_library = library_.get();
    queue_.gemv = &gemv_;
  }

  // Whether the kernels of a call may overlap (Queue::overlap); they do to begin with.
  void set_overlap(bool overlap) { queue_.overlap = overlap; }
  [[nodiscard]] Trace& trace() { return trace_; }

  // A table row, with exactly the scratch that it declares. `wanted` is what a matmul is asked for.
  template <typename Args>
  void run(const Variant& row, Args args, KernelParams wanted = {}) {
    const OpCall call = call_of(args, Phase::kPrefill);
    const KernelParams params =
        row.effective == nullptr ? KernelParams{} : row.effective(call, wanted, device_);
    if constexpr (requires { args.params; }) args.params = params;
    const uint64_t bytes = row.scratch_bytes == nullptr ? 0 : row.scratch_bytes(call, params, 1);
    launch(std::get<void (*)(const Args&, KernelContext&)>(row.function), args, bytes);
  }

  // Any kernel(args, context).
  template <typename Kernel, typename Args>
  void launch(const Kernel& kernel, Args args, uint64_t scratch_bytes) {
    Placement placement;
    place(args, placement);
    DeviceBytes step(sizeof(StepInput));
    step.send(&placement.step, sizeof(StepInput));
    DeviceBytes tokens(placement.tokens.size() * sizeof(int32_t));
    tokens.send(placement.tokens.data(), placement.tokens.size() * sizeof(int32_t));
    const DeviceBytes scratch(scratch_bytes);
    queue_.input = static_cast<const StepInput*>(step.data());
    queue_.tokens = static_cast<const int32_t*>(tokens.data());
    KernelContext context;
    context.trace = &trace_;
    context.queue = &queue_;
    context.scratch = scratch.data();
    context.scratch_bytes = context.declared_bytes = scratch_bytes;
    must(cudaDeviceSynchronize(), "sending");
    kernel(args, context);
    must(cudaStreamSynchronize(stream_.get()), "running a kernel");
    if (!context.error.empty()) throw std::runtime_error(context.error);
    placement.bring_back();
  }

 private:
  template <typename T>
  static T made(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return std::move(*result);
  }

  const Device& device_;
  GemvDevice gemv_;
  Stream stream_;
  std::unique_ptr<BlasLt> library_;  // null where it is missing
  Queue queue_;
  Trace trace_;
};

// Normal values without outliers, as queries, keys and values are.
inline std::vector<float> normal_floats(int64_t count, float deviation, Random& random) {
  std::vector<float> values = random.floats(count, deviation);
  for (size_t i = 7; i < values.size(); i += 97) values[i] /= 20;
  return values;
}

template <typename T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Row by row; rows of a few values may cancel out to nearly nothing, so those go all together.
inline void expect_rows_close(const std::vector<float>& values, const std::vector<float>& expected,
                              int64_t rows, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  const auto size = static_cast<int64_t>(values.size());
  if (size / rows < 8) rows = 1;
  const int64_t columns = size / rows;
  for (int64_t r = 0; r < rows; ++r) {
    EXPECT_LE(kernels::testing::relative_error(values.data() + r * columns,
                                               expected.data() + r * columns, columns),
              tolerance)
        << "row " << r;
  }
}

class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<Backend*> opened = open_backend();
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    backend = *opened;
    device.emplace(backend->device());
  }

  // Calls check(row) for each of the device's rows of an op.
  void for_each_row(Op op, const std::function<void(const Variant&)>& check) const {
    for (const Variant& row : backend->variants()) {
      if (row.op != op) continue;
      SCOPED_TRACE(std::string(op_name(op)) + " by " + row.name);
      check(row);
    }
  }

  [[nodiscard]] const Variant& row_of(Op op, const std::string& name) const {
    for (const Variant& row : backend->variants()) {
      if (row.op == op && row.name == name) return row;
    }
    throw std::runtime_error("no " + std::string(op_name(op)) + " by " + name);
  }

  // Runs the row on `args`, which write to `outs`, with and without overlapping launches: both must
  // give the same bits, and stamp the row's own name and hash, once, with the call.
  template <typename Args>
  void run(const Variant& row, const Args& args, const std::vector<std::vector<float>*>& outs) {
    std::vector<std::vector<float>> before, apart;
    for (const std::vector<float>* out : outs) before.push_back(*out);
    device->set_overlap(false);
    device->trace().reset();
    device->run(row, args);
    expect_stamped(row, call_of(args, Phase::kPrefill));
    for (size_t i = 0; i < outs.size(); ++i) {
      apart.push_back(*outs[i]);
      *outs[i] = before[i];
    }
    device->set_overlap(true);
    device->run(row, args);
    for (size_t i = 0; i < outs.size(); ++i) {
      EXPECT_TRUE(same_bits(*outs[i], apart[i])) << "two runs differ";
    }
  }

  Backend* backend = nullptr;
  std::optional<Runner> device;
  kernels::testing::Runner host{2};

 private:
  void expect_stamped(const Variant& row, const OpCall& call) {
    const std::vector<TraceCount> rows = device->trace().rows();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].row.variant, row.name);
    EXPECT_EQ(rows[0].row.source_hash, row.source_hash);
    EXPECT_EQ(rows[0].row.op, op_name(row.op));
    EXPECT_EQ(rows[0].row.shape, shape_text(call));
    EXPECT_EQ(rows[0].count, 1U);
    EXPECT_FALSE(rows[0].launches.empty());
  }
};

}  // namespace reckon::kernels::cuda::testing
