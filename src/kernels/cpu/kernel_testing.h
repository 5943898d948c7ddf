// What the kernel tests share: random tensors of every weight type, errors, and a Runner that calls
// one table row as a session would, with exactly the scratch that the row declares.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "kernels/call.h"
#include "kernels/device.h"
#include "kernels/dispatch.h"
#include "kernels/panels.h"
#include "kernels/trace.h"
#include "kernels/variants.h"
#include "tensor/dtype.h"
#include "tensor/test_blocks.h"

namespace reckon::kernels::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  int64_t integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  // Normal values, the spread of rows and a few outliers much as in real activations.
  std::vector<float> floats(int64_t count, float deviation = 1.0F) {
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(engine_);
    for (size_t i = 7; i < values.size(); i += 97) values[i] *= 20;
    return values;
  }
  // [n, k] weights in the type's blocks.
  std::vector<uint8_t> weights(DType type, int64_t n, int64_t k);

 private:
  template <typename Block, typename Fill>
  void fill_blocks(std::vector<uint8_t>& bytes, const Fill& fill);

  std::mt19937_64 engine_;
};

template <typename Block, typename Fill>
void Random::fill_blocks(std::vector<uint8_t>& bytes, const Fill& fill) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Block)) {
    const Block block = fill();
    std::memcpy(bytes.data() + at, &block, sizeof block);
  }
}

inline std::vector<uint8_t> Random::weights(DType type, int64_t n, int64_t k) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n * row_bytes(type, k)));
  std::normal_distribution<float> normal(0, 0.1F);
  switch (type) {
    case DType::kF32:
      fill_blocks<float>(bytes, [&] { return normal(engine_); });
      break;
    case DType::kF16:
      fill_blocks<uint16_t>(bytes, [&] { return float_to_half(normal(engine_)); });
      break;
    case DType::kBF16:
      fill_blocks<uint16_t>(bytes, [&] { return float_to_bf16(normal(engine_)); });
      break;
    case DType::kQ8_0:
      fill_blocks<BlockQ8_0>(bytes, [&] {
        BlockQ8_0 block{float_to_half(0.001F * normal(engine_)), {}};
        for (int8_t& code : block.codes) code = static_cast<int8_t>(integer(-128, 127));
        return block;
      });
      break;
    case DType::kQ4_1:
      fill_blocks<BlockQ4_1>(bytes, [&] {
        const float scale = 0.1F * normal(engine_);
        BlockQ4_1 block{float_to_half(scale), float_to_half(-7.5F * scale), {}};
        for (uint8_t& code : block.codes) code = static_cast<uint8_t>(integer(0, 255));
        return block;
      });
      break;
    case DType::kP4:
      fill_blocks<BlockP4>(bytes, [&] {
        const float scale = 0.1F * normal(engine_);
        BlockP4 block{float_to_half(scale), float_to_half(-7.5F * scale), {}};
        for (uint8_t& code : block.codes) code = static_cast<uint8_t>(integer(0, 255));
        return block;
      });
      break;
    case DType::kP8:
      fill_blocks<BlockP8>(bytes, [&] {
        BlockP8 block{float_to_half(0.001F * normal(engine_)), {}};
        for (int8_t& code : block.codes) code = static_cast<int8_t>(integer(-127, 127));
        return block;
      });
      break;
    default:
      return RandomBlocks(engine_()).rows(type, n, k);
  }
  return bytes;
}

// ||value - expected|| / ||expected||, or ||value|| where nothing but zeros is expected.
inline double relative_error(const float* value, const float* expected, int64_t count) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double e = expected[i];
    difference += (static_cast<double>(value[i]) - e) * (static_cast<double>(value[i]) - e);
    norm += e * e;
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

// The call with its weight laid out in panels where it can be, as a model's is.
inline OpCall in_panels(OpCall call) {
  call.in_panels = has_panels(call.weight_type) && call.k % block_elements(call.weight_type) == 0;
  return call;
}

// Why this machine cannot run the row, or "".
inline std::string missing_isa(const Variant& row) {
  if (row.isa <= detect_cpu().best_isa) return "";
  return std::string(row.name) + " needs " + std::string(isa_name(row.isa));
}

class Runner {
 public:
  explicit Runner(int threads = 1) : pool_(threads) {}

  // Runs the row on the arguments. `wanted` is what a matmul is asked for.
  template <typename Args>
  void run(const Variant& row, Args args, KernelParams wanted = {}) {
    const Panels panels = panels_for(row, args);
    const OpCall call = call_of(args, Phase::kPrefill);
    const KernelParams params =
        row.effective == nullptr ? KernelParams{} : row.effective(call, wanted, detect_cpu());
    if constexpr (requires { args.params; }) args.params = params;
    const uint64_t bytes =
        row.scratch_bytes == nullptr ? 0 : row.scratch_bytes(call, params, pool_.threads());
    // Rounded up to the alignment, as aligned_alloc wants it; filled with NaNs, so that a kernel
    // that trusts its scratch is found out.
    const uint64_t rounded = (bytes + 63) / 64 * 64;
    const std::unique_ptr<void, void (*)(void*)> memory(
        rounded == 0 ? nullptr : std::aligned_alloc(64, rounded), std::free);
    if (memory != nullptr) std::memset(memory.get(), 0xff, rounded);
    KernelContext context;
    context.threads = &pool_;
    context.trace = &trace_;
    context.scratch = memory.get();
    context.scratch_bytes = context.declared_bytes = bytes;
    std::get<void (*)(const Args&, KernelContext&)>(row.function)(args, context);
  }

  [[nodiscard]] Trace& trace() { return trace_; }

 private:
  using Panels = std::vector<std::vector<uint8_t>>;

  // Gives the arguments what the row reads.
  template <typename Args>
  static Panels panels_for(const Variant& row, Args& args) {
    Panels panels;
    if constexpr (requires { args.in_panels; }) {
      args.in_panels = in_panels(call_of(args, Phase::kPrefill)).in_panels;
      if (row.layout == WeightLayout::kPanels) lay_out(args, panels);
    }
    return panels;
  }
  static void lay_out(MatmulArgs& args, Panels& panels) {
    args.panels = lay_out(args.weight, args, args.n, panels);
  }
  static void lay_out(ExpertMatmulSwigluArgs& args, Panels& panels) {
    args.gate_panels = lay_out(args.gate, args, args.experts * args.n, panels);
    args.up_panels = lay_out(args.up, args, args.experts * args.n, panels);
  }
  static void lay_out(ExpertMatmulCombineArgs& args, Panels& panels) {
    args.down_panels = lay_out(args.down, args, args.experts * args.n, panels);
  }
  template <typename Args>
  static const void* lay_out(const void* rows, const Args& args, int64_t n, Panels& panels) {
    panels.emplace_back(panel_bytes(args.weight_type, n, args.k));
    lay_out_panels(args.weight_type, rows, n, args.k, panels.back().data());
    return panels.back().data();
  }

  ThreadPool pool_;
  Trace trace_;
};

inline const Variant& reference_row(Op op) {
  for (const Variant& row : all_variants()) {
    if (row.op == op && row.numerics == NumericsClass::kReference) return row;
  }
  RECKON_CHECK(false);
}

}  // namespace reckon::kernels::testing
