// The exact gated delta rule on the CPU, row by row, and its order of operations. Columns of a
// state do not depend on each other, so that tasks and registers may share them out freely; with q
// and k normalised and decay and beta computed (delta_rule.cpp), column c of a row is
//
//   recalled[l] = sum of S[i][c] * k[i], i mod 2 = l, ascending, fma from +0
//   u = beta * (v[c] - decay * (recalled[0] + recalled[1]))
//   S[i][c] = fma(k[i], u, decay * S[i][c])
//   sum[l] = sum of S[i][c] * q[i], i mod 2 = l, ascending, fma from +0;  out = sum[0] + sum[1]
//
// Plain types only.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::cpu {

// What does not depend on the state, in scratch.
struct DeltaInputs {
  float* q = nullptr;       // [rows, key_heads, key_dim]
  float* k = nullptr;       // [rows, key_heads, key_dim]
  float* decay = nullptr;   // [rows, value_heads]
  float* beta = nullptr;    // [rows, value_heads]
  float* blocks = nullptr;  // [threads, key_dim, kMostBlockColumns], for states on their way
};

constexpr int64_t kMostBlockColumns = 64;  // of a state that a task takes

[[nodiscard]] uint64_t delta_scratch_bytes(int64_t rows, int64_t key_heads, int64_t value_heads,
                                           int64_t key_dim, int threads);
// Takes the call's scratch and fills it.
[[nodiscard]] DeltaInputs prepare_delta_inputs(const GatedDeltaRuleArgs& args,
                                               KernelContext& context);

// Of one row and value head: ln(decay), at most 0, and beta.
[[nodiscard]] float delta_log_decay(const GatedDeltaRuleArgs& args, int64_t row, int64_t head);
[[nodiscard]] float delta_beta(const GatedDeltaRuleArgs& args, int64_t row, int64_t head);

// AVX2 and FMA; value_dim in eights.
void gated_delta_rule_exact_avx2(const GatedDeltaRuleArgs& args, KernelContext& context);
[[nodiscard]] const char* gated_delta_rule_exact_avx2_hash();

// AVX-512; value_dim in sixteens.
void gated_delta_rule_exact_avx512(const GatedDeltaRuleArgs& args, KernelContext& context);
[[nodiscard]] const char* gated_delta_rule_exact_avx512_hash();

// Chunks of kDeltaChunk rows by AMX tiles of bfloat16 (gated_delta_rule_fast_amx.cpp); key_dim in
// thirty-twos, value_dim in sixteens.
constexpr int64_t kDeltaChunk = 32;
constexpr int64_t kDeltaTail = 16;  // rows, as many as a verify pass has at most
void gated_delta_rule_fast_amx(const GatedDeltaRuleArgs& args, KernelContext& context);
[[nodiscard]] const char* gated_delta_rule_fast_amx_hash();
[[nodiscard]] uint64_t fast_delta_scratch_bytes(int64_t key_heads, int64_t value_heads,
                                                int64_t key_dim, int64_t value_dim, int threads);

}  // namespace reckon::kernels::cpu
