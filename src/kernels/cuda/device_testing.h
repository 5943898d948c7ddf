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
#include "kernels/cuda/placement_testing.h"
#include "kernels/cuda/queue.h"

namespace reckon::kernels::cuda::testing {

using kernels::testing::Random;

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
