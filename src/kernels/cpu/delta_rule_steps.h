// The walk of the gated delta rule over heads, columns and rows, for files compiled for one
// instruction set; `Vector` is its registers. The namespace has no name so that nothing in it can
// be shared with code for another.
//
// A task takes a block of columns of one head's state through all rows. The block is read from the
// caller's memory once and written there for each row whose state has to be kept. States of other
// rows stay in a block of the thread's own (of 128 keys 16 KB with AVX2, 32 KB with AVX-512), which
// the first-level cache holds; a slice of a state would fall on a part of the cache's sets only.
#pragma once

#include <cstdint>

#include "kernels/cpu/delta_rule.h"

namespace reckon::kernels::cpu {
namespace {

struct Job {
  const GatedDeltaRuleArgs* args;
  DeltaInputs inputs;
  int64_t blocks;  // of columns, a head
};

// A block of columns of a state, its rows `stride` apart.
struct Block {
  float* data;
  int64_t stride;
};

// One row of one head.
struct Step {
  const float* q;  // [key_dim]
  const float* k;  // [key_dim]
  const float* v;  // of the block's columns
  float* out;
  Block before, after;
  int64_t key_dim;
  float decay, beta;
};

// kCount registers of columns. The step is copied, since for all that a compiler knows a stored
// register might change it.
template <typename Vector, int kCount>
void step_columns(const Step& given) {
  const Step step = given;
  using Register = typename Vector::Register;
  Register sums[2][kCount];
  for (auto& lanes : sums) {
    for (Register& sum : lanes) sum = Vector::zero();
  }
  const auto recall = [&](int64_t i, Register* lanes) {
    const Register key = Vector::all(step.k[i]);
    for (int c = 0; c < kCount; ++c) {
      const Register state =
          Vector::load(step.before.data + i * step.before.stride + c * Vector::kLanes);
      lanes[c] = Vector::fma(state, key, lanes[c]);
    }
  };
  int64_t i = 0;
  for (; i + 2 <= step.key_dim; i += 2) {
    recall(i, sums[0]);
    recall(i + 1, sums[1]);
  }
  if (i < step.key_dim) recall(i, sums[0]);

  const Register decay = Vector::all(step.decay);
  Register update[kCount];
  for (int c = 0; c < kCount; ++c) {
    const Register recalled = Vector::mul(decay, Vector::add(sums[0][c], sums[1][c]));
    const Register v = Vector::load(step.v + c * Vector::kLanes);
    update[c] = Vector::mul(Vector::all(step.beta), Vector::sub(v, recalled));
    sums[0][c] = sums[1][c] = Vector::zero();
  }
  const auto write = [&](int64_t at, Register* lanes) {
    const Register key = Vector::all(step.k[at]);
    const Register query = Vector::all(step.q[at]);
    for (int c = 0; c < kCount; ++c) {
      const int64_t column = c * Vector::kLanes;
      const float* before = step.before.data + at * step.before.stride + column;
      const Register kept = Vector::mul(decay, Vector::load(before));
      const Register state = Vector::fma(key, update[c], kept);
      Vector::store(step.after.data + at * step.after.stride + column, state);
      lanes[c] = Vector::fma(state, query, lanes[c]);
    }
  };
  for (i = 0; i + 2 <= step.key_dim; i += 2) {
    write(i, sums[0]);
    write(i + 1, sums[1]);
  }
  if (i < step.key_dim) write(i, sums[0]);
  for (int c = 0; c < kCount; ++c) {
    Vector::store(step.out + c * Vector::kLanes, Vector::add(sums[0][c], sums[1][c]));
  }
}

// Blocks of up to 4 registers: 8 sums and 4 updates leave 4 of AVX2's 16.
constexpr int64_t kBlockRegisters = 4;

template <typename Vector>
void step_block(const Step& step, int64_t registers) {
  using Function = void (*)(const Step&);
  static constexpr Function kFunctions[kBlockRegisters] = {
      step_columns<Vector, 1>, step_columns<Vector, 2>, step_columns<Vector, 3>,
      step_columns<Vector, 4>};
  kFunctions[registers - 1](step);
}

// The block of the state after `rows` rows of the call, at `offset` in a state. It is kept where it
// is that before all rows, or among the last ones that there are slots for.
Block state_after(const GatedDeltaRuleArgs& args, int64_t rows, int64_t offset, float* own) {
  if (rows > 0 && rows <= args.rows - args.slots) return {own, kMostBlockColumns};
  const int64_t state = args.value_heads * args.key_dim * args.value_dim;
  const int64_t slot = (args.first_position + rows) % args.slots;
  return {args.states + slot * state + offset, args.value_dim};
}

// Task: a block of columns of one head.
template <typename Vector>
void run_block(void* argument, int64_t task, int thread) {
  const auto& job = *static_cast<const Job*>(argument);
  const GatedDeltaRuleArgs& args = *job.args;
  constexpr int64_t kColumns = kBlockRegisters * Vector::kLanes;
  const int64_t head = task / job.blocks;
  const int64_t first = task % job.blocks * kColumns;
  const int64_t left = args.value_dim - first;
  const int64_t columns = left < kColumns ? left : kColumns;
  const int64_t key_head = args.key_order == KeyHeadOrder::kTiled
                               ? head % args.key_heads
                               : head / (args.value_heads / args.key_heads);
  const int64_t keys = args.key_heads * args.key_dim;
  const int64_t values = args.value_heads * args.value_dim;
  const int64_t offset = head * args.key_dim * args.value_dim + first;
  Step step{};
  step.key_dim = args.key_dim;
  float* own = job.inputs.blocks + thread * args.key_dim * kMostBlockColumns;
  step.after = state_after(args, 0, offset, own);
  if (args.first_position == 0) {
    for (int64_t i = 0; i < args.key_dim; ++i) {
      for (int64_t c = 0; c < columns; ++c) step.after.data[i * step.after.stride + c] = 0;
    }
  }
  for (int64_t r = 0; r < args.rows; ++r) {
    step.q = job.inputs.q + r * keys + key_head * args.key_dim;
    step.k = job.inputs.k + r * keys + key_head * args.key_dim;
    step.v = args.qkv + r * (2 * keys + values) + 2 * keys + head * args.value_dim + first;
    step.out = args.out + r * values + head * args.value_dim + first;
    step.before = step.after;
    step.after = state_after(args, r + 1, offset, own);
    step.decay = job.inputs.decay[r * args.value_heads + head];
    step.beta = job.inputs.beta[r * args.value_heads + head];
    step_block<Vector>(step, columns / Vector::kLanes);
  }
}

template <typename Vector>
void run_delta_rule(const GatedDeltaRuleArgs& args, KernelContext& context) {
  constexpr int64_t kColumns = kBlockRegisters * Vector::kLanes;
  static_assert(kColumns <= kMostBlockColumns);
  Job job{&args, prepare_delta_inputs(args, context), (args.value_dim + kColumns - 1) / kColumns};
  parallel_for(context, args.value_heads * job.blocks, run_block<Vector>, &job);
}

}  // namespace
}  // namespace reckon::kernels::cpu
