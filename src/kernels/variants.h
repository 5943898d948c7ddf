// The table of kernel variants: everything the plan may choose from.
//
// One explicit row a variant in reference/variants.cpp and cpu/variants.cpp; no self-registration.
// Rows are immutable and live for the process's life.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/device.h"
#include "kernels/kernel.h"
#include "kernels/op.h"

namespace reckon::kernels {

// In the order of Op; attention with and without a window has one type.
using KernelFn =
    std::variant<EmbeddingFn, RmsNormFn, MatmulFn, RopeFn, AttentionFn, SwigluFn, AddFn, SampleFn,
                 GegluFn, AddBiasFn, ScaleFn, CausalConvFn, GatedDeltaRuleFn, GatedRmsNormFn,
                 SplitGateFn, SigmoidGateFn, GatedAddFn, ConcatFn, RouteFn, ExpertMatmulSwigluFn,
                 ExpertMatmulCombineFn, AddRmsNormFn, MatmulGroupFn, MatmulSwigluFn,
                 RopeAttentionFn>;

// When the plan takes a row that no switch names.
enum class Use : uint8_t {
  kOfClass,  // where it is the best of its numerics class
  kNamed,    // never
  kSplitK,   // where prefill.split_k asks for it
  kStream,   // where decode.verify_kernel=stream asks for it
};

struct Variant {
  Op op = Op::kMatmul;
  const char* name = "";  // unique within its op; what the function stamps
  NumericsClass numerics = NumericsClass::kReference;
  Isa isa = Isa::kScalar;
  WeightLayout layout = WeightLayout::kNone;
  // "" where the variant can run the call, else why not (one line, no subject). Null: every call.
  std::string (*supports)(const OpCall& call) = nullptr;
  // Scratch for one call with these parameters on this many threads. Null: none.
  uint64_t (*scratch_bytes)(const OpCall& call, const KernelParams& params, int threads) = nullptr;
  // The parameters that make a difference for this call: what remains of `wanted` (for example
  // band8 with a single band becomes row). Null: none of them do.
  KernelParams (*effective)(const OpCall& call, const KernelParams& wanted,
                            const Device& device) = nullptr;
  KernelFn function;
  const char* source_hash = "";          // of the variant's source file, made at build time
  const char* ledger_id = "unmeasured";  // the entry that made or kept it the default
  // How the variant cuts a call, for the plan's reasons: "one band (N=576 is 5 tiles)". Null: it
  // has nothing to say.
  std::string (*tiling)(const OpCall& call) = nullptr;
  // Among rows of the same numerics class and instruction set that can run a call, the highest
  // wins, the first of the table among equals. Null: 0.
  int (*preference)(const OpCall& call) = nullptr;
  Use use = Use::kOfClass;
  // Of split-K rows: in how many parts K is multiplied.
  int64_t (*splits)(const OpCall& call) = nullptr;
  // "" where the plan takes the variant by itself, else why a stricter class is better for the call
  // (one line, no subject); a switch that names the variant overrules it. Null: always.
  std::string (*declines)(const OpCall& call) = nullptr;
  // The plan takes the variant by itself only where no wider instruction set may be used: with one,
  // kernels of a stricter class are faster.
  Isa widest = Isa::kAmx;
};

// Every variant for the CPU, reference rows first, then by instruction set ascending.
[[nodiscard]] std::span<const Variant> all_variants();
// The names that a switch may force, of every backend in this build.
[[nodiscard]] std::vector<std::string> variant_names(Op op);

[[nodiscard]] std::string_view op_name(Op op);  // "matmul"
[[nodiscard]] std::string_view phase_name(Phase phase);
[[nodiscard]] std::string_view numerics_name(NumericsClass numerics);
[[nodiscard]] std::string_view isa_name(Isa isa);
[[nodiscard]] std::string_view layout_name(WeightLayout layout);
[[nodiscard]] std::string_view tile_shape_name(TileShape shape);
[[nodiscard]] std::string params_text(const KernelParams& params);  // "tile_order=band8 graph"
[[nodiscard]] std::string shape_text(const OpCall& call);           // "512x1536x576 q4_1"

}  // namespace reckon::kernels
