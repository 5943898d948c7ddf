// 64- and 128-bit content hashes (XXH3) and their text forms. Not cryptographic: they identify
// files, plans and ledger lines and detect corruption; they do not resist an adversary.
// All functions are pure and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reckon {

[[nodiscard]] uint64_t hash64(std::string_view bytes);

// Streaming 128-bit hash over several pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& add(std::string_view bytes);
  // Adds text followed by a separator, so that ("ab","c") and ("a","bc") differ.
  Hasher& add_field(std::string_view text);
  [[nodiscard]] std::string hex() const;                      // 32 hexadecimal digits
  [[nodiscard]] std::string base32(size_t characters) const;  // at most 25, a-z and 2-7

 private:
  struct State;
  State* state_;
};

[[nodiscard]] std::string hash_hex(std::string_view bytes);  // Hasher().add(bytes).hex()

}  // namespace reckon
