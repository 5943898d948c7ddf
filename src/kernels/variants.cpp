#include "kernels/variants.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "kernels/cpu/variants.h"
#include "kernels/cuda/open.h"
#include "kernels/reference/variants.h"
#include "tensor/dtype.h"

namespace reckon::kernels {

std::span<const Variant> all_variants() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> rows(reference_variants().begin(), reference_variants().end());
    const auto first_cpu = static_cast<std::ptrdiff_t>(rows.size());
    rows.insert(rows.end(), cpu_variants().begin(), cpu_variants().end());
    std::stable_sort(rows.begin() + first_cpu, rows.end(),
                     [](const Variant& a, const Variant& b) { return a.isa < b.isa; });
    return rows;
  }();
  return variants;
}

std::vector<std::string> variant_names(Op op) {
  std::vector<std::string> names;
  const auto add = [&](std::span<const Variant> table) {
    for (const Variant& variant : table) {
      const bool known = std::find(names.begin(), names.end(), variant.name) != names.end();
      if (variant.op == op && !known) names.emplace_back(variant.name);
    }
  };
  add(all_variants());
#if RECKON_CUDA
  add(cuda::variants());
#endif
  return names;
}

std::string_view op_name(Op op) {
  switch (op) {
    case Op::kEmbedding:
      return "embedding";
    case Op::kRmsNorm:
      return "rms_norm";
    case Op::kMatmul:
      return "matmul";
    case Op::kRope:
      return "rope";
    case Op::kAttention:
      return "attention";
    case Op::kSwiglu:
      return "swiglu";
    case Op::kAdd:
      return "add";
    case Op::kSample:
      return "sample";
    case Op::kGeglu:
      return "geglu";
    case Op::kAddBias:
      return "add_bias";
    case Op::kScale:
      return "scale";
    case Op::kWindowAttention:
      return "window_attention";
    case Op::kCausalConv:
      return "causal_conv";
    case Op::kGatedDeltaRule:
      return "gated_delta_rule";
    case Op::kGatedRmsNorm:
      return "gated_rms_norm";
    case Op::kSplitGate:
      return "split_gate";
    case Op::kSigmoidGate:
      return "sigmoid_gate";
    case Op::kGatedAdd:
      return "gated_add";
    case Op::kConcat:
      return "concat";
    case Op::kRoute:
      return "route";
    case Op::kExpertMatmulSwiglu:
      return "expert_matmul_swiglu";
    case Op::kExpertMatmulCombine:
      return "expert_matmul_combine";
    case Op::kAddRmsNorm:
      return "add_rms_norm";
    case Op::kMatmulGroup:
      return "matmul_group";
    case Op::kMatmulSwiglu:
      return "matmul_swiglu";
    case Op::kRopeAttention:
      return "rope_attention";
  }
  RECKON_CHECK(false);
}

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kPrefill:
      return "prefill";
    case Phase::kDecode:
      return "decode";
    case Phase::kVerify:
      return "verify";
  }
  RECKON_CHECK(false);
}

std::string_view numerics_name(NumericsClass numerics) {
  switch (numerics) {
    case NumericsClass::kReference:
      return "reference";
    case NumericsClass::kExact:
      return "exact";
    case NumericsClass::kFast:
      return "fast";
  }
  RECKON_CHECK(false);
}

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  RECKON_CHECK(false);
}

std::string_view layout_name(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kNone:
      return "none";
    case WeightLayout::kRows:
      return "rows";
    case WeightLayout::kPanels:
      return "panels";
    case WeightLayout::kTiles:
      return "tiles";
  }
  RECKON_CHECK(false);
}

std::string_view tile_shape_name(TileShape shape) {
  switch (shape) {
    case TileShape::kAuto:
      return "auto";
    case TileShape::kTall:
      return "tall";
    case TileShape::kWide:
      return "wide";
    case TileShape::kSquare:
      return "square";
  }
  RECKON_CHECK(false);
}

std::string params_text(const KernelParams& params) {
  std::vector<std::string> words;
  if (params.tile_order == TileOrder::kBand8) words.emplace_back("tile_order=band8");
  if (params.tile != TileShape::kAuto) {
    words.push_back("tile=" + std::string(tile_shape_name(params.tile)));
  }
  if (params.expert_tile != KernelParams{}.expert_tile) {
    words.push_back("expert_tile=" + std::to_string(params.expert_tile));
  }
  if (!params.skip_empty) words.emplace_back("skip_empty=off");
  if (params.graph) words.emplace_back("graph");
  return join(words, " ");
}

std::string shape_text(const OpCall& call) {
  const auto by = [](int64_t dimension) { return "x" + std::to_string(dimension); };
  const std::string rows = std::to_string(call.rows);
  switch (call.op) {
    case Op::kEmbedding:
    case Op::kMatmul:
    case Op::kMatmulGroup:
    case Op::kMatmulSwiglu:
      return rows + by(call.n) + by(call.k) + " " + std::string(dtype_name(call.weight_type));
    case Op::kExpertMatmulSwiglu:
    case Op::kExpertMatmulCombine:
      return rows + by(call.n) + by(call.k) + " experts=" + std::to_string(call.m) + "/" +
             std::to_string(call.groups) + " " + std::string(dtype_name(call.weight_type));
    case Op::kRope:
    case Op::kSplitGate:
      return rows + by(call.n) + by(call.k);
    case Op::kConcat:
      return rows + "x" + std::to_string(call.n) + "+" + std::to_string(call.k);
    case Op::kRoute:
      return rows + by(call.n) + " top=" + std::to_string(call.m);
    case Op::kCausalConv:
      return rows + by(call.k) + " width=" + std::to_string(call.groups);
    case Op::kGatedDeltaRule:
      return rows + by(call.n) + by(call.m) + " key_heads=" + std::to_string(call.groups) +
             by(call.k);
    case Op::kAttention:
    case Op::kWindowAttention:
    case Op::kRopeAttention:
      return rows + by(call.n) + by(call.k) + " kv_heads=" + std::to_string(call.groups) +
             (call.window == 0 ? "" : " window=" + std::to_string(call.window)) +
             (call.weight_type == DType::kF32
                  ? ""
                  : " kv_type=" + std::string(dtype_name(call.weight_type)));
    case Op::kSample:
      return rows + by(call.n);
    case Op::kRmsNorm:
    case Op::kSwiglu:
    case Op::kAdd:
    case Op::kGeglu:
    case Op::kAddBias:
    case Op::kScale:
    case Op::kGatedRmsNorm:
    case Op::kSigmoidGate:
    case Op::kGatedAdd:
    case Op::kAddRmsNorm:
      return rows + by(call.k);
  }
  RECKON_CHECK(false);
}

}  // namespace reckon::kernels
