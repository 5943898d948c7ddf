// Prompts for work whose speed matters and whose text does not.
#pragma once

#include <cstdint>
#include <vector>

namespace reckon::engine {

// `count` tokens below `vocabulary`, always the same; a shorter list is the start of a longer one.
[[nodiscard]] std::vector<int32_t> random_tokens(int64_t count, int64_t vocabulary);

}  // namespace reckon::engine
