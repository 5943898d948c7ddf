#include "engine/random_tokens.h"

#include <random>

namespace reckon::engine {

std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary) {
  std::mt19937_64 random(42);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary)));
  }
  return tokens;
}

}  // namespace reckon::engine
