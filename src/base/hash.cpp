#include "base/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace reckon {

struct Hasher::State {
  XXH3_state_t* xxh;
};

uint64_t hash64(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Hasher::Hasher() : state_(new State{XXH3_createState()}) {
  RECKON_CHECK(state_->xxh != nullptr);
  XXH3_128bits_reset(state_->xxh);
}

Hasher::~Hasher() {
  XXH3_freeState(state_->xxh);
  delete state_;
}

Hasher& Hasher::add(std::string_view bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add_field(std::string_view text) {
  return add(text).add(std::string_view("\x1f", 1));
}

namespace {

std::array<uint8_t, 16> digest(const XXH3_state_t* state) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
  std::array<uint8_t, 16> bytes{};
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), bytes.begin());
  return bytes;
}

}  // namespace

std::string Hasher::hex() const {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest(state_->xxh)) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string Hasher::base32(size_t characters) const {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  RECKON_CHECK(characters <= 25);
  const auto bytes = digest(state_->xxh);
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    unsigned value = 0;
    for (size_t bit = i * 5; bit < i * 5 + 5; ++bit) {
      value = value * 2 + ((bytes[bit / 8] >> (7 - bit % 8)) & 1U);
    }
    text += kAlphabet[value];
  }
  return text;
}

std::string hash_hex(std::string_view bytes) {
  return Hasher().add(bytes).hex();
}

}  // namespace reckon
