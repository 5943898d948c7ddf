// The reference kernels: each op in float32 and simple loops, the oracle of every other variant.
//
// No quantised activations, no vector code by hand, and every row computed as if it were alone.
// Formulas and argument meanings: kernels/kernel.h. Where a sum is not plain float32 in ascending
// order, the file says so. Each hash function returns the source hash of its file.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace reckon::kernels::reference {

inline constexpr const char* kName = "reference";

void embedding(const EmbeddingArgs& args, KernelContext& context);
void rms_norm(const RmsNormArgs& args, KernelContext& context);
void matmul(const MatmulArgs& args, KernelContext& context);
void rope(const RopeArgs& args, KernelContext& context);
void attention(const AttentionArgs& args, KernelContext& context);
void swiglu(const SwigluArgs& args, KernelContext& context);
void geglu(const GegluArgs& args, KernelContext& context);
void add(const AddArgs& args, KernelContext& context);
void add_bias(const AddBiasArgs& args, KernelContext& context);
void scale(const ScaleArgs& args, KernelContext& context);
void sample(const SampleArgs& args, KernelContext& context);

// Scratch that matmul needs: the activations transposed and a few float32 weight rows a thread.
[[nodiscard]] uint64_t matmul_scratch_bytes(int64_t rows, int64_t k, int threads);

[[nodiscard]] const char* embedding_hash();
[[nodiscard]] const char* rms_norm_hash();
[[nodiscard]] const char* matmul_hash();
[[nodiscard]] const char* rope_hash();
[[nodiscard]] const char* attention_hash();
[[nodiscard]] const char* swiglu_hash();
[[nodiscard]] const char* geglu_hash();
[[nodiscard]] const char* add_hash();
[[nodiscard]] const char* add_bias_hash();
[[nodiscard]] const char* scale_hash();
[[nodiscard]] const char* sample_hash();

}  // namespace reckon::kernels::reference
