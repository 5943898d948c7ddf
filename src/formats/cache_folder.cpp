#include "formats/cache_folder.h"

#include <cstdlib>

namespace reckon {
namespace {

std::string absolute_from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

}  // namespace

std::string cache_folder() {
  if (std::string own = absolute_from_environment("RECKON_CACHE"); !own.empty()) return own;
  const std::string caches = absolute_from_environment("XDG_CACHE_HOME");
  if (!caches.empty()) return caches + "/reckon";
  const std::string home = absolute_from_environment("HOME");
  return home.empty() ? "" : home + "/.cache/reckon";
}

}  // namespace reckon
