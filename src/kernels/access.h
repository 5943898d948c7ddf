// What each op reads and writes: every buffer that a call's arguments name, beside call_of() in
// call.h. The declarations are the ops' contract in kernel.h said over again for a BufferAudit
// (audit.h); a field of an argument struct that points at data belongs here as well.
//
// Pure functions; no data is touched.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel.h"
#include "tensor/tensor.h"

namespace reckon::kernels {

enum class AccessKind : uint8_t { kRead, kWrite, kReadWrite };

// One buffer of a call: what a kernel may touch from `data` on. Weights count the bytes of their
// rows (a device's layout may have more), caches a whole layer.
struct Access {
  const void* data = nullptr;
  uint64_t bytes = 0;
  AccessKind kind = AccessKind::kRead;

  friend bool operator==(const Access&, const Access&) = default;
};

// In the order of the struct's fields. What is optional and missing is left out.
[[nodiscard]] std::vector<Access> accesses_of(const EmbeddingArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const RmsNormArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const MatmulArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const RopeArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const AttentionArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const SwigluArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const GegluArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const AddBiasArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const ScaleArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const AddArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const SampleArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const CausalConvArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const GatedDeltaRuleArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const GatedRmsNormArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const SplitGateArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const SigmoidGateArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const GatedAddArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const ConcatArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const RouteArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const ExpertMatmulSwigluArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const ExpertMatmulCombineArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const AddRmsNormArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const MatmulGroupArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const MatmulSwigluArgs& args);
[[nodiscard]] std::vector<Access> accesses_of(const RopeAttentionArgs& args);

// What the host reads where it is shown these values.
[[nodiscard]] Access host_read_of(Activation values);

}  // namespace reckon::kernels
