#include "kernels/kernel.h"

#include "base/check.h"
#include "kernels/call.h"
#include "kernels/dispatch.h"

namespace reckon::kernels {
namespace {

template <typename Args>
void count(KernelContext& context, const char* variant, const char* source_hash, const Args& args,
           const KernelParams& params) {
  if (context.trace == nullptr) return;
  context.trace->stamp(variant, source_hash, call_of(args, context.trace->phase()), params);
}

}  // namespace

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

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const EmbeddingArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const RmsNormArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const MatmulArgs& args) {
  count(context, variant, source_hash, args, args.params);
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const RopeArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const AttentionArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const SwigluArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const GegluArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const AddBiasArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const ScaleArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const AddArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const SampleArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const AddRmsNormArgs& args) {
  count(context, variant, source_hash, args, {});
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const MatmulGroupArgs& args) {
  count(context, variant, source_hash, args, args.params);
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const MatmulSwigluArgs& args) {
  count(context, variant, source_hash, args, args.params);
}

void stamp(KernelContext& context, const char* variant, const char* source_hash,
           const RopeAttentionArgs& args) {
  count(context, variant, source_hash, args, {});
}

}  // namespace reckon::kernels
