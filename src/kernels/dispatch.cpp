#include "kernels/dispatch.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "kernels/call.h"

namespace reckon::kernels {
namespace {

template <typename Function, typename Args>
void run(const Choice& choice, const Args& args, KernelContext& context) {
  std::get<Function>(choice.variant->function)(args, context);
}

}  // namespace

Dispatcher::Dispatcher(Planner& planner, ThreadPool& threads, Trace& trace, void* scratch,
                       uint64_t scratch_bytes)
    : planner_(planner), context_{&threads, &trace, scratch, scratch_bytes, 0} {
  RECKON_CHECK(threads.threads() <= planner.threads());
  RECKON_CHECK(scratch != nullptr || scratch_bytes == 0);
  RECKON_CHECK(reinterpret_cast<uintptr_t>(scratch) % 64 == 0);
  set_phase(phase_);
}

void Dispatcher::set_phase(Phase phase) {
  phase_ = phase;
  context_.trace->set_phase(phase);
}

Result<const Choice*> Dispatcher::prepare(const OpCall& call) {
  TRY_ASSIGN(const Choice* choice, planner_.choose(call));
  if (choice->scratch_bytes > context_.scratch_bytes) {
    return refused(std::string(op_name(call.op)) + " " + shape_text(call) + " by " +
                   choice->variant->name + " needs " + format_bytes(choice->scratch_bytes) +
                   " of scratch, the session has " + format_bytes(context_.scratch_bytes));
  }
  context_.declared_bytes = choice->scratch_bytes;
  return choice;
}

Status Dispatcher::embedding(const Weight& table, std::span<const int32_t> tokens, Activation out) {
  RECKON_CHECK(std::all_of(tokens.begin(), tokens.end(),
                           [&](int32_t token) { return token >= 0 && token < table.n; }));
  const EmbeddingArgs args = embedding_args(table, tokens, out);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  run<EmbeddingFn>(*choice, args, context_);
  return {};
}

Status Dispatcher::rms_norm(Activation x, const Weight& weight, float epsilon, Activation out) {
  const RmsNormArgs args = rms_norm_args(x, weight, epsilon, out);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  run<RmsNormFn>(*choice, args, context_);
  return {};
}

Status Dispatcher::matmul(Activation x, const Weight& weight, Activation out) {
  MatmulArgs args = matmul_args(x, weight, out);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  args.params = choice->params;
  run<MatmulFn>(*choice, args, context_);
  return {};
}

Status Dispatcher::rope(Activation x, const Rope& rope, int64_t first_position) {
  const RopeArgs args = rope_args(x, rope, first_position);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  run<RopeFn>(*choice, args, context_);
  return {};
}

Status Dispatcher::attention(Activation q, Activation k, Activation v, const KvCache& cache,
                             int64_t first_position, float scale, Activation out) {
  const AttentionArgs args = attention_args(q, k, v, cache, first_position, scale, out);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  run<AttentionFn>(*choice, args, context_);
  return {};
}

Status Dispatcher::swiglu(Activation gate, Activation up, Activation out) {
  const SwigluArgs args = swiglu_args(gate, up, out);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  run<SwigluFn>(*choice, args, context_);
  return {};
}

Status Dispatcher::add(Activation x, Activation y, Activation out) {
  const AddArgs args = add_args(x, y, out);
  TRY_ASSIGN(const Choice* choice, prepare(call_of(args, phase_)));
  run<AddFn>(*choice, args, context_);
  return {};
}

}  // namespace reckon::kernels
