#include "kernels/cpu/variants.h"

#include <cstdint>

#include "kernels/cpu/attention_exact.h"
#include "kernels/cpu/attention_fast.h"
#include "kernels/cpu/causal_conv.h"
#include "kernels/cpu/delta_rule.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/expert_fast.h"
#include "kernels/cpu/expert_matmul.h"
#include "kernels/cpu/matmul_exact.h"
#include "kernels/cpu/matmul_fast.h"
#include "kernels/cpu/matmul_few.h"
#include "kernels/cpu/matmul_layout.h"
#include "kernels/cpu/matmul_split_k.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/rope_exact.h"
#include "kernels/panels.h"
#include "kernels/reference/variants.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

uint64_t scalar_matmul_bytes(const OpCall& call, const KernelParams& /*params*/, int /*threads*/) {
  return cpu::scalar_matmul_scratch(call.weight_type, call.rows, call.k).total;
}

uint64_t tiled_matmul_bytes(const OpCall& call, const KernelParams& params, int threads) {
  return cpu::tiled_matmul_scratch(call.weight_type, call.rows, call.k, params.tile_order, threads)
      .total;
}

uint64_t plane_matmul_bytes(const OpCall& call, const KernelParams& params, int threads) {
  return cpu::plane_matmul_scratch(call.weight_type, call.rows, call.k, params.tile_order, threads)
      .total;
}

template <int64_t kWeightTile>
KernelParams effective_matmul(const OpCall& call, const KernelParams& wanted,
                              const Device& /*device*/) {
  KernelParams params;
  params.tile_order = cpu::effective_tile_order(call.rows, call.n, kWeightTile, wanted.tile_order);
  return params;
}

// What vector kernels multiply in rows; others have panels, or are converted at load.
std::string supports_exact_matmul(const OpCall& call) {
  switch (call.weight_type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_1:
    case DType::kQ8_0:
    case DType::kP4:
    case DType::kP8:
    case DType::kI32:  // whose reason is below
      return supports_weight_rows(call);
    default:
      return "no exact kernel for weights of type " + std::string(dtype_name(call.weight_type));
  }
}

std::string supports_scalar_matmul(const OpCall& call) {
  switch (call.weight_type) {
    case DType::kQ4_0:
    case DType::kQ4_K:
    case DType::kQ6_K:
      return supports_weight_rows(call);
    default:
      return supports_exact_matmul(call);
  }
}

std::string supports_panels(const OpCall& call) {
  std::string why = supports_weight_rows(call);
  if (why.empty() && !call.in_panels) {
    why = "a weight of type " + std::string(dtype_name(call.weight_type)) +
          " that is not laid out in panels";
  }
  return why;
}

// Codes of up to 6 bits.
std::string supports_narrow_panels(const OpCall& call) {
  if (call.weight_type == DType::kQ8_0 || call.weight_type == DType::kP8) {
    return "it takes codes of up to 6 bits, not " + std::string(dtype_name(call.weight_type));
  }
  return supports_panels(call);
}

uint64_t panel_matmul_bytes(const OpCall& call, const KernelParams& /*params*/, int /*threads*/) {
  return cpu::panel_matmul_scratch(call.weight_type, call.rows, call.k);
}

uint64_t fast_matmul_bytes(const OpCall& call, const KernelParams& params, int threads) {
  return cpu::fast_matmul_scratch(call.rows, call.n, call.k, threads, params.tile).total;
}

uint64_t float_matmul_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::float_matmul_scratch(call.rows, call.n, call.k, threads).total;
}

uint64_t byte_matmul_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::byte_matmul_scratch(call.rows, call.n, call.k, threads).total;
}

std::string supports_nibble_panels(const OpCall& call) {
  if (call.weight_type == DType::kQ6_K) return "it takes codes of 4 bits, not q6_k";
  return supports_narrow_panels(call);
}

// Square is what auto takes.
KernelParams effective_fast_matmul(const OpCall& /*call*/, const KernelParams& wanted,
                                   const Device& /*device*/) {
  KernelParams params;
  if (wanted.tile != TileShape::kSquare) params.tile = wanted.tile;
  return params;
}

std::string fast_matmul_tiling(const OpCall& /*call*/) {
  return "fast_amx takes bands of its own";
}

int prefers_panels(const OpCall& /*call*/) {
  return 1;
}

// Many rows of an exact prefill go a little faster by tiles of unpacked rows. Verifies read panels
// at every width: a weight whose rows are not in a file is then kept once.
int prefers_panels_avx2(const OpCall& call) {
  return call.phase != Phase::kPrefill || call.rows <= cpu::kDirectRows ? 1 : -1;
}

// ---- kernels that cut K, and those of a few rows ----

int64_t exact_splits(const OpCall& call) {
  return cpu::exact_splits(call.weight_type, call.k);
}

int64_t fast_splits(const OpCall& call) {
  return cpu::fast_splits(call.k);
}

// "K=576 is 2 parts"
template <int64_t (*kSplits)(const OpCall&)>
std::string parts_of_k(const OpCall& call) {
  const int64_t parts = kSplits(call);
  return "K=" + std::to_string(call.k) + " is " +
         (parts == 1 ? "one part" : std::to_string(parts) + " parts");
}

uint64_t split_k_exact_bytes(const OpCall& call, const KernelParams& /*params*/, int /*threads*/) {
  return cpu::split_k_exact_scratch(call.weight_type, call.rows, call.n, call.k).total;
}

uint64_t split_k_fast_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::split_k_fast_scratch(call.rows, call.n, call.k, threads).total;
}

std::string supports_stream(const OpCall& call) {
  std::string why = supports_panels(call);
  if (why.empty() && (call.rows < cpu::kFewestStreamRows || call.rows > cpu::kMostStreamRows)) {
    why = std::string(cpu::kStreamAvx512) + " takes " + std::to_string(cpu::kFewestStreamRows) +
          " to " + std::to_string(cpu::kMostStreamRows) + " rows";
  }
  return why;
}

uint64_t stream_bytes(const OpCall& call, const KernelParams& /*params*/, int /*threads*/) {
  return cpu::stream_matmul_scratch(call.weight_type, call.rows, call.k);
}

std::string supports_few(const OpCall& call) {
  std::string why = supports_panels(call);
  if (why.empty() && call.rows > cpu::kMostFewRows) {
    why = "more than " + std::to_string(cpu::kMostFewRows) + " rows";
  }
  return why;
}

uint64_t few_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::few_matmul_scratch(call.k, threads).total;
}

// Above all that read panels in the same class.
int prefers_special(const OpCall& /*call*/) {
  return 2;
}

std::string supports_attention(const OpCall& call) {
  if (call.weight_type != DType::kF32) {
    return "a cache of " + std::string(dtype_name(call.weight_type)) + "; it reads f32";
  }
  if (call.groups < 1 || call.n % call.groups != 0) {
    return std::to_string(call.n) + " query heads do not divide into " +
           std::to_string(call.groups) + " groups";
  }
  return "";
}

uint64_t attention_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::attention_scratch_bytes(call.k, threads);
}

std::string supports_fast_attention(const OpCall& call) {
  std::string why = supports_attention(call);
  if (why.empty() && call.rows * call.n * call.k > INT32_MAX) {
    why = "more than 2^31 values of queries; it counts them in 32 bits";
  }
  return why;
}

uint64_t fast_attention_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::fast_attention_scratch_bytes(call.k, threads);
}

uint64_t float_attention_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::float_attention_scratch_bytes(call.k, threads);
}

uint64_t rope_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::rope_scratch_bytes(call.k, threads);
}

std::string supports_conv(const OpCall& call) {
  if (call.groups <= cpu::kMostTaps) return "";
  return std::to_string(call.groups) + " positions wide; it takes " +
         std::to_string(cpu::kMostTaps) + " at most";
}

template <int64_t kLanes>
std::string supports_delta_rule(const OpCall& call) {
  if (call.m % kLanes == 0) return "";
  return "value heads of " + std::to_string(call.m) + " are not a multiple of " +
         std::to_string(kLanes);
}

uint64_t delta_rule_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::delta_scratch_bytes(call.rows, call.groups, call.n, call.k, threads);
}

std::string supports_fast_delta_rule(const OpCall& call) {
  constexpr int64_t kFewest = cpu::kDeltaChunk + cpu::kDeltaTail;
  if (call.rows < kFewest) return "fewer than " + std::to_string(kFewest) + " rows";
  if (call.k % cpu::kDeltaChunk != 0) {
    return "key heads of " + std::to_string(call.k) + " are not a multiple of " +
           std::to_string(cpu::kDeltaChunk);
  }
  return supports_delta_rule<16>(call);
}

uint64_t fast_delta_rule_bytes(const OpCall& call, const KernelParams& /*params*/, int threads) {
  return cpu::fast_delta_scratch_bytes(call.groups, call.n, call.k, call.m, threads);
}

// A panel belongs to one expert.
std::string supports_expert_panels(const OpCall& call) {
  std::string why = supports_panels(call);
  if (why.empty() && call.n % kPanelHeight != 0) {
    why = "experts of " + std::to_string(call.n) + " rows are not a multiple of a panel's " +
          std::to_string(kPanelHeight);
  }
  return why;
}

std::string supports_narrow_expert_panels(const OpCall& call) {
  const std::string why = supports_narrow_panels(call);
  return why.empty() ? supports_expert_panels(call) : why;
}

// By the rows of an expert where they spread evenly.
int prefers_expert_panels_avx2(const OpCall& call) {
  return call.rows * call.m <= cpu::kDirectRows * call.groups ? 1 : -1;
}

template <cpu::ActivationLayout kLayout>
uint64_t expert_bytes(const OpCall& call, const KernelParams& params, int threads) {
  return cpu::expert_matmul_scratch_bytes(kLayout, call, params, threads);
}

// Packed types, which have no panels.
std::string supports_fast_rows(const OpCall& call) {
  if (call.weight_type == DType::kP4 || call.weight_type == DType::kP8) return "";
  return "it takes packed weights, p4 or p8, not " + std::string(dtype_name(call.weight_type));
}

// Where the rows of a call are spread evenly over experts that unpacking costs more than tiles
// save.
template <int64_t kFewest>
std::string declines_few_rows(const OpCall& call) {
  if (call.rows * call.m >= kFewest * call.groups) return "";
  return "fewer than " + std::to_string(kFewest) + " rows an expert";
}

// Activations and weights of bfloat16 move the logits of small hybrids with packed weights by up to
// 1e-1 of a row, where 2e-2 is what the class promises (docs/numerics.md).
std::string declines_packed(const OpCall& call) {
  return pads_rows(call.weight_type) ? "bfloat16 would move small models by too much" : "";
}

// The exact kernel passes over the weights once, too, and unpacks nothing (ledger: unmeasured;
// docs/performance-cpu.md, A few rows). A verify that is to be fast stays fast.
template <int64_t kFewest>
std::string declines_short_prefill(const OpCall& call) {
  if (call.phase != Phase::kPrefill || call.rows >= kFewest) return "";
  return "fewer than " + std::to_string(kFewest) + " rows";
}

std::string declines_matmul(const OpCall& call) {
  const std::string why = declines_packed(call);
  return why.empty() ? declines_short_prefill<cpu::kFewestFastRows>(call) : why;
}

// Tiny random models would leave 2e-2 (gguf/tiny-llama-mixed: 3.1e-2).
std::string declines_small_bytes(const OpCall& call) {
  constexpr int64_t kFewestColumns = 512;
  if (pads_rows(call.weight_type) || call.k < kFewestColumns) {
    return "codes of 8 bits would move small models by too much";
  }
  return declines_short_prefill<cpu::kFewestAvx2Rows>(call);
}

std::string expert_tiling(const OpCall& call) {
  return "an expert has " + std::to_string(call.rows) + " rows at most";
}

Variant exact_row(Op op, const char* name, Isa isa, KernelFn function, const char* source_hash) {
  Variant variant;
  variant.op = op;
  variant.name = name;
  variant.numerics = NumericsClass::kExact;
  variant.isa = isa;
  variant.function = function;
  variant.source_hash = source_hash;
  return variant;
}

Variant matmul_row(const char* name, Isa isa, MatmulFn function, const char* source_hash) {
  Variant variant = exact_row(Op::kMatmul, name, isa, function, source_hash);
  variant.layout = WeightLayout::kRows;
  variant.supports = supports_exact_matmul;
  return variant;
}

// The row under another name, run by another function.
Variant run_by(Variant row, const char* name, KernelFn function, const char* source_hash) {
  row.name = name;
  row.function = function;
  row.source_hash = source_hash;
  return row;
}

// The two ops of experts by one file of kernels, like its matmul.
struct ExpertFunctions {
  ExpertMatmulSwigluFn swiglu;
  ExpertMatmulCombineFn combine;
};

void add_expert_rows(std::vector<Variant>& table, const Variant& matmul,
                     const ExpertFunctions& functions, decltype(Variant::scratch_bytes) bytes) {
  Variant row = matmul;
  row.scratch_bytes = bytes;
  row.effective = nullptr;
  if (row.layout == WeightLayout::kPanels) {
    const bool narrow = row.supports == supports_narrow_panels;
    row.supports = narrow ? supports_narrow_expert_panels : supports_expert_panels;
    row.preference = narrow ? prefers_expert_panels_avx2 : prefers_panels;
  }
  row.op = Op::kExpertMatmulSwiglu;
  row.function = functions.swiglu;
  table.push_back(row);
  row.op = Op::kExpertMatmulCombine;
  row.function = functions.combine;
  table.push_back(row);
}

// `panels` and `fast` are the exact and the fast matmul over panels.
void add_special_matmuls(std::vector<Variant>& table, const Variant& panels, const Variant& fast) {
  Variant chunked =
      run_by(panels, cpu::kGemvChunked, cpu::matmul_gemv_chunked, cpu::matmul_gemv_chunked_hash());
  chunked.use = Use::kNamed;
  Variant split = run_by(panels, cpu::kSplitKExact, cpu::matmul_split_k_exact,
                         cpu::matmul_split_k_exact_hash());
  split.use = Use::kSplitK;
  split.splits = exact_splits;
  split.tiling = parts_of_k<exact_splits>;
  split.declines = declines_short_prefill<cpu::kFewestFastRows>;
  split.scratch_bytes = split_k_exact_bytes;
  Variant stream =
      run_by(panels, cpu::kStreamAvx512, cpu::matmul_stream, cpu::matmul_stream_hash());
  stream.numerics = NumericsClass::kFast;
  stream.use = Use::kStream;
  stream.supports = supports_stream;
  stream.scratch_bytes = stream_bytes;
  Variant split_fast =
      run_by(fast, cpu::kSplitKFast, cpu::matmul_split_k_fast, cpu::matmul_split_k_fast_hash());
  split_fast.use = Use::kSplitK;
  split_fast.declines = nullptr;  // it follows the kernel whose place it takes
  split_fast.splits = fast_splits;
  split_fast.tiling = parts_of_k<fast_splits>;
  split_fast.scratch_bytes = split_k_fast_bytes;
  Variant few = run_by(fast, cpu::kFastFewAmx, cpu::matmul_fast_few, cpu::matmul_fast_few_hash());
  few.supports = supports_few;
  few.scratch_bytes = few_bytes;
  few.preference = prefers_special;
  table.insert(table.end(), {chunked, split, stream, split_fast, few});
}

void add_fast_expert_rows(std::vector<Variant>& table) {
  Variant panels = exact_row(Op::kExpertMatmulSwiglu, cpu::kFastAmx, Isa::kAmx,
                             cpu::expert_swiglu_fast_amx, cpu::expert_fast_amx_hash());
  panels.numerics = NumericsClass::kFast;
  panels.layout = WeightLayout::kPanels;
  panels.supports = supports_expert_panels;
  panels.scratch_bytes = expert_bytes<cpu::ActivationLayout::kSlots>;
  panels.effective = cpu::effective_expert_params;
  panels.tiling = expert_tiling;
  panels.declines = declines_few_rows<16>;
  Variant rows = panels;
  rows.name = cpu::kFastRowsAmx;
  rows.layout = WeightLayout::kRows;
  rows.supports = supports_fast_rows;
  rows.function = cpu::expert_swiglu_fast_rows_amx;
  rows.source_hash = cpu::expert_fast_rows_amx_hash();
  table.insert(table.end(), {panels, rows});
  panels.op = rows.op = Op::kExpertMatmulCombine;
  panels.function = cpu::expert_combine_fast_amx;
  rows.function = cpu::expert_combine_fast_rows_amx;
  table.insert(table.end(), {panels, rows});
}

void add_recurrent_rows(std::vector<Variant>& table) {
  Variant conv = exact_row(Op::kCausalConv, cpu::kExactAvx2, Isa::kAvx2,
                           cpu::causal_conv_exact_avx2, cpu::causal_conv_exact_avx2_hash());
  conv.supports = supports_conv;
  Variant delta =
      exact_row(Op::kGatedDeltaRule, cpu::kExactAvx2, Isa::kAvx2, cpu::gated_delta_rule_exact_avx2,
                cpu::gated_delta_rule_exact_avx2_hash());
  delta.supports = supports_delta_rule<8>;
  delta.scratch_bytes = delta_rule_bytes;
  Variant wide_delta =
      exact_row(Op::kGatedDeltaRule, cpu::kExactAvx512, Isa::kAvx512,
                cpu::gated_delta_rule_exact_avx512, cpu::gated_delta_rule_exact_avx512_hash());
  wide_delta.supports = supports_delta_rule<16>;
  wide_delta.scratch_bytes = delta_rule_bytes;
  Variant fast_delta =
      exact_row(Op::kGatedDeltaRule, cpu::kFastAmx, Isa::kAmx, cpu::gated_delta_rule_fast_amx,
                cpu::gated_delta_rule_fast_amx_hash());
  fast_delta.numerics = NumericsClass::kFast;
  fast_delta.supports = supports_fast_delta_rule;
  fast_delta.scratch_bytes = fast_delta_rule_bytes;
  const Variant norm =
      exact_row(Op::kGatedRmsNorm, cpu::kExactAvx2, Isa::kAvx2, cpu::gated_rms_norm_exact_avx2,
                cpu::gated_rms_norm_exact_avx2_hash());
  const Variant gate = exact_row(Op::kSigmoidGate, cpu::kExactAvx2, Isa::kAvx2,
                                 cpu::sigmoid_gate_exact_avx2, cpu::sigmoid_gate_exact_avx2_hash());
  table.insert(table.end(), {conv, delta, wide_delta, fast_delta, norm, gate});
}

void add_norm_rows(std::vector<Variant>& table) {
  table.push_back(exact_row(Op::kRmsNorm, cpu::kExactAvx2, Isa::kAvx2, cpu::rms_norm_exact_avx2,
                            cpu::rms_norm_exact_avx2_hash()));
  table.push_back(exact_row(Op::kAddRmsNorm, cpu::kExactAvx2, Isa::kAvx2,
                            cpu::add_rms_norm_exact_avx2, cpu::rms_norm_exact_avx2_hash()));
  table.push_back(exact_row(Op::kAdd, cpu::kExactAvx2, Isa::kAvx2, cpu::add_exact_avx2,
                            cpu::add_exact_avx2_hash()));
}

std::vector<Variant> make_table() {
  Variant scalar = matmul_row(cpu::kExactScalar, Isa::kScalar, cpu::matmul_exact_scalar,
                              cpu::matmul_exact_scalar_hash());
  scalar.supports = supports_scalar_matmul;
  scalar.scratch_bytes = scalar_matmul_bytes;
  Variant avx2 = matmul_row(cpu::kExactAvx2, Isa::kAvx2, cpu::matmul_exact_avx2,
                            cpu::matmul_exact_avx2_hash());
  avx2.scratch_bytes = tiled_matmul_bytes;
  avx2.effective = effective_matmul<cpu::kWeightTile>;
  Variant avx512 = matmul_row(cpu::kExactAvx512, Isa::kAvx512, cpu::matmul_exact_avx512,
                              cpu::matmul_exact_avx512_hash());
  avx512.scratch_bytes = plane_matmul_bytes;
  avx512.effective = effective_matmul<cpu::kPlaneTile>;
  Variant panels =
      matmul_row(cpu::kExactPanelsAvx512, Isa::kAvx512, cpu::matmul_exact_panels_avx512,
                 cpu::matmul_exact_panels_avx512_hash());
  panels.layout = WeightLayout::kPanels;
  panels.supports = supports_panels;
  panels.scratch_bytes = panel_matmul_bytes;
  panels.preference = prefers_panels;
  Variant panels_avx2 = run_by(panels, cpu::kExactPanelsAvx2, cpu::matmul_exact_panels_avx2,
                               cpu::matmul_exact_panels_avx2_hash());
  panels_avx2.isa = Isa::kAvx2;
  panels_avx2.supports = supports_narrow_panels;
  panels_avx2.preference = prefers_panels_avx2;
  Variant fast = run_by(panels, cpu::kFastAmx, cpu::matmul_fast_amx, cpu::matmul_fast_amx_hash());
  fast.numerics = NumericsClass::kFast;
  fast.isa = Isa::kAmx;
  fast.declines = declines_matmul;
  fast.scratch_bytes = fast_matmul_bytes;
  fast.effective = effective_fast_matmul;
  fast.tiling = fast_matmul_tiling;
  Variant fast_avx2 =
      run_by(panels, cpu::kFastAvx2, cpu::matmul_fast_avx2, cpu::matmul_fast_avx2_hash());
  fast_avx2.numerics = NumericsClass::kFast;
  fast_avx2.isa = fast_avx2.widest = Isa::kAvx2;
  fast_avx2.supports = supports_narrow_panels;
  fast_avx2.declines = declines_short_prefill<cpu::kFewestAvx2Rows>;
  fast_avx2.scratch_bytes = float_matmul_bytes;
  Variant fast_bytes = run_by(fast_avx2, cpu::kFastBytesAvx2, cpu::matmul_fast_bytes_avx2,
                              cpu::matmul_fast_bytes_avx2_hash());
  fast_bytes.supports = supports_nibble_panels;
  fast_bytes.declines = declines_small_bytes;
  fast_bytes.scratch_bytes = byte_matmul_bytes;
  fast_bytes.preference = prefers_special;
  Variant attention = exact_row(Op::kAttention, cpu::kExactAvx2, Isa::kAvx2,
                                cpu::attention_exact_avx2, cpu::attention_exact_avx2_hash());
  attention.supports = supports_attention;
  attention.scratch_bytes = attention_bytes;
  Variant fast_attention = exact_row(Op::kAttention, "fast_avx512", Isa::kAvx512,
                                     cpu::attention_fast_avx512, cpu::attention_fast_avx512_hash());
  fast_attention.numerics = NumericsClass::kFast;
  fast_attention.supports = supports_fast_attention;
  fast_attention.scratch_bytes = fast_attention_bytes;
  const Variant swiglu = exact_row(Op::kSwiglu, cpu::kExactAvx2, Isa::kAvx2, cpu::swiglu_exact_avx2,
                                   cpu::swiglu_exact_avx2_hash());
  const Variant geglu = exact_row(Op::kGeglu, cpu::kExactAvx2, Isa::kAvx2, cpu::geglu_exact_avx2,
                                  cpu::geglu_exact_avx2_hash());
  Variant window = attention;
  window.op = Op::kWindowAttention;
  Variant fast_attention_avx2 =
      run_by(attention, "fast_avx2", cpu::attention_fast_avx2, cpu::attention_fast_avx2_hash());
  fast_attention_avx2.numerics = NumericsClass::kFast;
  fast_attention_avx2.widest = Isa::kAvx2;
  fast_attention_avx2.scratch_bytes = float_attention_bytes;
  Variant fast_window = fast_attention_avx2;
  fast_window.op = Op::kWindowAttention;
  Variant rope = exact_row(Op::kRope, cpu::kExactScalar, Isa::kScalar, cpu::rope_exact_scalar,
                           cpu::rope_exact_scalar_hash());
  rope.scratch_bytes = rope_bytes;
  std::vector<Variant> table = {scalar,     rope,        avx2,           panels_avx2,
                                avx512,     panels,      fast,           fast_avx2,
                                fast_bytes, attention,   fast_attention, fast_attention_avx2,
                                window,     fast_window, swiglu,         geglu};
  add_special_matmuls(table, panels, fast);
  add_recurrent_rows(table);
  add_norm_rows(table);
  using cpu::ActivationLayout;
  add_expert_rows(table, scalar,
                  {cpu::expert_swiglu_exact_scalar, cpu::expert_combine_exact_scalar},
                  expert_bytes<ActivationLayout::kRows>);
  add_expert_rows(table, avx2, {cpu::expert_swiglu_exact_avx2, cpu::expert_combine_exact_avx2},
                  expert_bytes<ActivationLayout::kTiles>);
  add_expert_rows(table, panels_avx2,
                  {cpu::expert_swiglu_exact_panels_avx2, cpu::expert_combine_exact_panels_avx2},
                  expert_bytes<ActivationLayout::kPanels>);
  add_expert_rows(table, avx512,
                  {cpu::expert_swiglu_exact_avx512, cpu::expert_combine_exact_avx512},
                  expert_bytes<ActivationLayout::kPlanes>);
  add_expert_rows(table, panels,
                  {cpu::expert_swiglu_exact_panels_avx512, cpu::expert_combine_exact_panels_avx512},
                  expert_bytes<ActivationLayout::kPanels>);
  add_fast_expert_rows(table);
  return table;
}

}  // namespace

std::span<const Variant> cpu_variants() {
  static const std::vector<Variant> table = make_table();
  return table;
}

}  // namespace reckon::kernels
