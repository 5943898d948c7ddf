#include "kernels/access.h"

#include "kernels/panels.h"
#include "tensor/dtype.h"

namespace reckon::kernels {
namespace {

Access values(const float* data, int64_t rows, int64_t columns, AccessKind kind) {
  return {data, static_cast<uint64_t>(rows * columns) * sizeof(float), kind};
}

Access read(const float* data, int64_t rows, int64_t columns) {
  return values(data, rows, columns, AccessKind::kRead);
}

Access write(const float* data, int64_t rows, int64_t columns) {
  return values(data, rows, columns, AccessKind::kWrite);
}

Access read_write(const float* data, int64_t rows, int64_t columns) {
  return values(data, rows, columns, AccessKind::kReadWrite);
}

Access read_weight(const void* data, DType type, int64_t n, int64_t k) {
  return {data, static_cast<uint64_t>(n * row_bytes(type, k)), AccessKind::kRead};
}

// The panels where the variant reads them.
Access read_matrix(const void* rows, const void* panels, DType type, int64_t n, int64_t k) {
  if (panels == nullptr) return read_weight(rows, type, n, k);
  return {panels, panel_bytes(type, n, k), AccessKind::kRead};
}

}  // namespace

std::vector<Access> accesses_of(const EmbeddingArgs& args) {
  return {read_weight(args.table, args.weight_type, args.n, args.k),
          {args.tokens, static_cast<uint64_t>(args.rows) * sizeof(int32_t), AccessKind::kRead},
          write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const RmsNormArgs& args) {
  return {read(args.x, args.rows, args.k), read(args.weight, 1, args.k),
          write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const MatmulArgs& args) {
  return {read(args.x, args.rows, args.k),
          read_matrix(args.weight, args.panels, args.weight_type, args.n, args.k),
          write(args.out, args.rows, args.n)};
}

std::vector<Access> accesses_of(const RopeArgs& args) {
  return {read_write(args.x, args.rows, args.heads * args.head_dim)};
}

// The cache is read as well as written: the rows' own keys and values come back from it.
std::vector<Access> accesses_of(const AttentionArgs& args) {
  const int64_t q_width = args.heads * args.head_dim;
  const int64_t kv_width = args.kv_heads * args.head_dim;
  const auto cache = [&](const void* data) -> Access {
    return {data, static_cast<uint64_t>(row_bytes(args.kv_type, args.capacity * kv_width)),
            AccessKind::kReadWrite};
  };
  return {read(args.q, args.rows, q_width),
          read(args.k, args.rows, kv_width),
          read(args.v, args.rows, kv_width),
          cache(args.cache_k),
          cache(args.cache_v),
          write(args.out, args.rows, q_width)};
}

std::vector<Access> accesses_of(const SwigluArgs& args) {
  return {read(args.gate, args.rows, args.k), read(args.up, args.rows, args.k),
          write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const GegluArgs& args) {
  return {read(args.gate, args.rows, args.k), read(args.up, args.rows, args.k),
          write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const AddBiasArgs& args) {
  return {read_write(args.x, args.rows, args.k), read(args.bias, 1, args.k)};
}

std::vector<Access> accesses_of(const ScaleArgs& args) {
  return {read_write(args.x, args.rows, args.k)};
}

std::vector<Access> accesses_of(const AddArgs& args) {
  return {read(args.x, args.rows, args.k), read(args.y, args.rows, args.k),
          write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const SampleArgs& args) {
  return {read(args.logits, args.rows, args.n),
          {args.picks, static_cast<uint64_t>(args.rows) * sizeof(Pick), AccessKind::kWrite}};
}

std::vector<Access> accesses_of(const CausalConvArgs& args) {
  return {read(args.x, args.rows, args.channels), read(args.weight, args.channels, args.width),
          read_write(args.inputs, args.ring, args.channels),
          write(args.out, args.rows, args.channels)};
}

std::vector<Access> accesses_of(const GatedDeltaRuleArgs& args) {
  const int64_t qk_width = 2 * args.key_heads * args.key_dim;
  const int64_t v_width = args.value_heads * args.value_dim;
  return {read(args.qkv, args.rows, qk_width + v_width),
          read(args.a, args.rows, args.value_heads),
          read(args.b, args.rows, args.value_heads),
          read(args.a_log, 1, args.value_heads),
          read(args.dt_bias, 1, args.value_heads),
          read_write(args.states, args.slots, args.key_dim * v_width),
          write(args.out, args.rows, v_width)};
}

std::vector<Access> accesses_of(const GatedRmsNormArgs& args) {
  return {read(args.x, args.rows, args.k), read(args.z, args.rows, args.k),
          read(args.weight, 1, args.k), write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const SplitGateArgs& args) {
  const int64_t width = args.heads * args.dim;
  return {read(args.x, args.rows, 2 * width), write(args.q, args.rows, width),
          write(args.gate, args.rows, width)};
}

std::vector<Access> accesses_of(const SigmoidGateArgs& args) {
  return {read_write(args.x, args.rows, args.k), read(args.gate, args.rows, args.k)};
}

std::vector<Access> accesses_of(const GatedAddArgs& args) {
  return {read(args.y, args.rows, args.k), read(args.gate, args.rows, 1),
          read_write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const ConcatArgs& args) {
  return {read(args.a, args.rows, args.a_columns), read(args.b, args.rows, args.b_columns),
          write(args.out, args.rows, args.a_columns + args.b_columns)};
}

std::vector<Access> accesses_of(const RouteArgs& args) {
  return {read(args.logits, args.rows, args.experts),
          write(args.selection, args.rows, 2 * args.top_k)};
}

// Any expert may be selected.
std::vector<Access> accesses_of(const ExpertMatmulSwigluArgs& args) {
  const int64_t n = args.experts * args.n;
  return {read(args.x, args.rows, args.k), read(args.selection, args.rows, 2 * args.top_k),
          read_matrix(args.gate, args.gate_panels, args.weight_type, n, args.k),
          read_matrix(args.up, args.up_panels, args.weight_type, n, args.k),
          write(args.out, args.rows * args.top_k, args.n)};
}

std::vector<Access> accesses_of(const ExpertMatmulCombineArgs& args) {
  const int64_t n = args.experts * args.n;
  return {read(args.x, args.rows * args.top_k, args.k),
          read(args.selection, args.rows, 2 * args.top_k),
          read_matrix(args.down, args.down_panels, args.weight_type, n, args.k),
          write(args.out, args.rows, args.n)};
}

std::vector<Access> accesses_of(const AddRmsNormArgs& args) {
  return {read(args.x, args.rows, args.k), read_write(args.residual, args.rows, args.k),
          read(args.weight, 1, args.k), write(args.out, args.rows, args.k)};
}

std::vector<Access> accesses_of(const MatmulGroupArgs& args) {
  std::vector<Access> accesses{read(args.x, args.rows, args.k)};
  for (int i = 0; i < args.count; ++i) {
    const MatmulPart& part = args.parts[i];
    accesses.push_back(read_weight(part.weight, args.weight_type, part.n, args.k));
    accesses.push_back(write(part.out, args.rows, part.n));
  }
  return accesses;
}

std::vector<Access> accesses_of(const MatmulSwigluArgs& args) {
  return {read(args.x, args.rows, args.k), read_weight(args.gate, args.weight_type, args.n, args.k),
          read_weight(args.up, args.weight_type, args.n, args.k),
          write(args.out, args.rows, args.n)};
}

// As attention, but q and k may be overwritten on the way.
std::vector<Access> accesses_of(const RopeAttentionArgs& args) {
  std::vector<Access> accesses = accesses_of(args.attention);
  for (Access& access : accesses) {
    const bool turned = access.data == args.attention.q || access.data == args.attention.k;
    if (turned && access.kind == AccessKind::kRead) access.kind = AccessKind::kReadWrite;
  }
  for (const float* norm : {args.q_norm, args.k_norm}) {
    if (norm != nullptr) accesses.push_back(read(norm, 1, args.attention.head_dim));
  }
  return accesses;
}

Access host_read_of(Activation values) {
  return read(values.data, values.rows, values.columns);
}

}  // namespace reckon::kernels
