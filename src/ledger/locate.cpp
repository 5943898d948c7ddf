#include "ledger/locate.h"

#include <cstdlib>
#include <system_error>

#include "ledger/jsonl/files.h"

namespace reckon::ledger {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool holds_ledger(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / jsonl::kMarkerName, error)) return true;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (jsonl::is_ledger_file_name(it->path().filename().string())) return true;
  }
  return false;
}

Result<std::string> locate_ledger(const LocateInputs& inputs) {
  for (fs::path folder = inputs.working_folder; !folder.empty(); folder = folder.parent_path()) {
    if (holds_ledger(folder / "ledger")) return (folder / "ledger").string();
    if (folder == folder.parent_path()) break;
  }
  if (const fs::path data = inputs.xdg_data_home; data.is_absolute()) {
    return (data / "reckon" / "ledger").string();
  }
  if (const fs::path home = inputs.home; home.is_absolute()) {
    return (home / ".local" / "share" / "reckon" / "ledger").string();
  }
  return failed("no default ledger: neither XDG_DATA_HOME nor HOME is set; give --ledger a folder");
}

Result<std::string> state_folder() {
  if (const fs::path state = environment("XDG_STATE_HOME"); state.is_absolute()) {
    return (state / "reckon").string();
  }
  if (const fs::path home = environment("HOME"); home.is_absolute()) {
    return (home / ".local" / "state" / "reckon").string();
  }
  return failed("no place for what waits to be recorded: neither XDG_STATE_HOME nor HOME is set");
}

Result<std::string> default_ledger() {
  std::error_code error;
  const fs::path working_folder = fs::current_path(error);  // empty where it was removed
  return locate_ledger({working_folder, environment("XDG_DATA_HOME"), environment("HOME")});
}

}  // namespace reckon::ledger
