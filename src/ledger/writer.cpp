#include "ledger/writer.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace reckon::ledger {
namespace {

constexpr size_t kLongestName = 64;

std::string user_name() {
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') return user;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16384);
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? found->pw_name : "";
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::string sanitize_writer(std::string_view name) {
  std::string clean;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    const char lower = upper ? static_cast<char>(c - 'A' + 'a') : c;
    const bool kept = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (kept) {
      clean += lower;
    } else if (!clean.empty() && clean.back() != '-') {
      clean += '-';
    }
    if (clean.size() == kLongestName) break;
  }
  while (!clean.empty() && clean.back() == '-') clean.pop_back();
  return clean;
}

bool is_writer_name(std::string_view name) {
  return !name.empty() && sanitize_writer(name) == name;
}

std::string default_writer() {
  if (const char* stated = std::getenv("RECKON_WRITER"); stated != nullptr) {
    if (std::string name = sanitize_writer(stated); !name.empty()) return name;
  }
  const std::string name = sanitize_writer(user_name() + "@" + host_name());
  return name.empty() ? "writer" : name;
}

}  // namespace reckon::ledger
