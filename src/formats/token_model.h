// What turns a piece of text into token ids. Const and thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace reckon {

class TokenModel {
 public:
  TokenModel() = default;
  virtual ~TokenModel() = default;
  TokenModel(const TokenModel&) = delete;
  TokenModel& operator=(const TokenModel&) = delete;

  // Appends the ids of `piece`: valid UTF-8, not empty.
  virtual void tokenize(std::string_view piece, std::vector<int32_t>& ids) const = 0;
  // Appends the id of a byte that is no part of valid UTF-8: its own token where the vocabulary
  // has one, else the unknown token where there is one, else nothing.
  virtual void byte(uint8_t byte, std::vector<int32_t>& ids) const = 0;
};

inline constexpr int32_t kNoToken = -1;

}  // namespace reckon
