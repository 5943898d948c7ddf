#include "kernels/cuda/step_input.h"

#include <algorithm>

namespace reckon::kernels::cuda {
namespace {

// A launch carries up to 4 KB of parameters.
constexpr size_t kFewTokens = 16;
constexpr size_t kManyTokens = 960;

template <size_t kTokens>
struct Tokens {
  int32_t at[kTokens];
};

// One block of kTokens threads.
template <size_t kTokens>
__global__ void write_input(const __grid_constant__ StepInput input,
                            const __grid_constant__ Tokens<kTokens> tokens, int count,
                            const Pick* picked, StepInput* to, int32_t* token_memory) {
  const int i = static_cast<int>(threadIdx.x);
  if (i == 0) *to = input;
  if (i < count) token_memory[i] = i == 0 && picked != nullptr ? picked->token : tokens.at[i];
}

template <size_t kTokens>
void launch_write(cudaStream_t stream, const StepInput& input, std::span<const int32_t> some,
                  const Pick* picked, StepInput* to, int32_t* token_memory) {
  Tokens<kTokens> tokens{};
  std::ranges::copy(some, tokens.at);
  write_input<kTokens><<<1, kTokens, 0, stream>>>(input, tokens, static_cast<int>(some.size()),
                                                  picked, to, token_memory);
}

}  // namespace

cudaError_t write_step_input(cudaStream_t stream, const StepInput& input,
                             std::span<const int32_t> tokens, const Pick* picked, StepInput* to,
                             int32_t* token_memory) {
  if (tokens.size() <= kFewTokens) {
    launch_write<kFewTokens>(stream, input, tokens, picked, to, token_memory);
    return cudaGetLastError();
  }
  while (!tokens.empty()) {
    const size_t count = std::min(tokens.size(), kManyTokens);
    launch_write<kManyTokens>(stream, input, tokens.first(count), picked, to, token_memory);
    tokens = tokens.subspan(count);
    token_memory += count;
    picked = nullptr;
  }
  return cudaGetLastError();
}

}  // namespace reckon::kernels::cuda
