#include "kernels/kernel.h"

#include "base/check.h"
#include "kernels/call.h"
#include "kernels/dispatch.h"

namespace reckon::kernels {
void parallel_for(KernelContext& context, int64_t tasks,
                  void (*task)(void* argument, int64_t i, int thread), void* argument) {
  context.threads->parallel_for(tasks, task, argument);
}

int thread_count(const KernelContext& context) {
  return context.threads->threads();
}

void* scratch(KernelContext& context, uint64_t bytes) {
  RECKON_CHECK(bytes <= context.declared_bytes && bytes <= context.scratch_bytes);
  if (context.audit != nullptr) {
    context.audit->note({context.scratch, bytes, AccessKind::kReadWrite});
  }
  return context.scratch;
}

void* backend_queue(KernelContext& context) {
  return context.queue;
}

void fail(KernelContext& context, const char* message) {
  if (context.error.empty()) context.error = message;
}

template <typename Args>
void stamp(KernelContext& context, const char* variant, const char* source_hash, const Args& args) {
  if (context.trace == nullptr) return;
  KernelParams params;
  if constexpr (requires { args.params; }) params = args.params;
  context.trace->stamp(variant, source_hash, call_of(args, context.trace->phase()), params);
}

template void stamp(KernelContext&, const char*, const char*, const EmbeddingArgs&);
template void stamp(KernelContext&, const char*, const char*, const RmsNormArgs&);
template void stamp(KernelContext&, const char*, const char*, const MatmulArgs&);
template void stamp(KernelContext&, const char*, const char*, const RopeArgs&);
template void stamp(KernelContext&, const char*, const char*, const AttentionArgs&);
template void stamp(KernelContext&, const char*, const char*, const SwigluArgs&);
template void stamp(KernelContext&, const char*, const char*, const AddArgs&);
template void stamp(KernelContext&, const char*, const char*, const SampleArgs&);
template void stamp(KernelContext&, const char*, const char*, const GegluArgs&);
template void stamp(KernelContext&, const char*, const char*, const AddBiasArgs&);
template void stamp(KernelContext&, const char*, const char*, const ScaleArgs&);
template void stamp(KernelContext&, const char*, const char*, const CausalConvArgs&);
template void stamp(KernelContext&, const char*, const char*, const GatedDeltaRuleArgs&);
template void stamp(KernelContext&, const char*, const char*, const GatedRmsNormArgs&);
template void stamp(KernelContext&, const char*, const char*, const SplitGateArgs&);
template void stamp(KernelContext&, const char*, const char*, const SigmoidGateArgs&);
template void stamp(KernelContext&, const char*, const char*, const GatedAddArgs&);
template void stamp(KernelContext&, const char*, const char*, const ConcatArgs&);
template void stamp(KernelContext&, const char*, const char*, const RouteArgs&);
template void stamp(KernelContext&, const char*, const char*, const ExpertMatmulSwigluArgs&);
template void stamp(KernelContext&, const char*, const char*, const ExpertMatmulCombineArgs&);
template void stamp(KernelContext&, const char*, const char*, const AddRmsNormArgs&);
template void stamp(KernelContext&, const char*, const char*, const MatmulGroupArgs&);
template void stamp(KernelContext&, const char*, const char*, const MatmulSwigluArgs&);
template void stamp(KernelContext&, const char*, const char*, const RopeAttentionArgs&);

}  // namespace reckon::kernels
